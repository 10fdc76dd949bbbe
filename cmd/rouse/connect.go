package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
)

// askWithin is how long a question that only reads may take.
const askWithin = 10 * time.Second

// client makes the client of the admin API that the flags, the environment or
// the configuration name.
func (g *globals) client() (*client.Client, error) {
	base, tokenFile := g.admin, g.tokenFile
	if base == "" {
		base = os.Getenv("ROUSE_ADMIN")
	}
	if tokenFile == "" {
		tokenFile = os.Getenv("ROUSE_TOKEN_FILE")
	}
	if base == "" {
		// A configuration with mistakes still says where its server listens;
		// one that was named and cannot be read is a mistake of the caller.
		c, err := g.load(nil)
		if err != nil && g.config != "" {
			return nil, err
		}
		base = dialable(c.Admin.Listen)
		if tokenFile == "" && os.Getenv("ROUSE_TOKEN") == "" {
			tokenFile = c.Admin.TokenFile // for this address alone
		}
	}
	token, err := readToken(tokenFile)
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.Config{Base: base, Token: token})
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	return c, nil
}

// dialable is where to reach what listens on an address.
func dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func readToken(file string) (string, error) {
	if file == "" {
		return os.Getenv("ROUSE_TOKEN"), nil
	}
	data, err := readFile(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// ask calls one thing of the admin API, for at most within (0: as long as it
// takes), and gives its error an exit code.
func ask[T any](ctx context.Context, g *globals, within time.Duration, call func(context.Context, *client.Client) (T, error)) (T, error) {
	var none T
	c, err := g.client()
	if err != nil {
		return none, err
	}
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	v, err := call(ctx, c)
	return v, apiError(err)
}

// apiError gives an error of the admin API its exit code, and says what the
// caller can do about it.
func apiError(err error) error {
	var p *api.ProblemDetails
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, client.ErrUnreachable):
		return fail(exitUnreachable, fmt.Errorf("%w (is it running? --admin or ROUSE_ADMIN names another address)", err))
	case errors.As(err, &p) && p.Status == http.StatusUnauthorized:
		return errors.New("the admin API asks for a token: name its file with --token-file or ROUSE_TOKEN_FILE")
	case errors.Is(err, api.ErrUnavailable):
		return fail(exitUnreachable, err)
	case errors.Is(err, api.ErrNotReady):
		return fail(exitNotReady, err)
	case errors.Is(err, api.ErrNoWorkload):
		return fail(exitNoWorkload, err)
	case errors.Is(err, api.ErrInUse):
		return fail(exitRefused, err)
	}
	return err
}

// completeName offers the names of workloads to the shell.
func (g *globals) completeName(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := ask(cmd.Context(), g, time.Second, func(ctx context.Context, c *client.Client) (api.WorkloadList, error) {
		return c.Workloads(ctx)
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, len(list.Workloads))
	for i, w := range list.Workloads {
		names[i] = w.Name
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
