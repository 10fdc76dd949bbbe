package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/api"
)

// adminGrace is how long a call of the admin API may go on at the end.
const adminGrace = 2 * time.Second

// listen opens an address before anything is started, so that one that is
// taken is known at once.
func listen(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (stop what uses %s, or set another address)", key, err, address)
	}
	return l, nil
}

// serveAdmin answers on the admin listener until ctx ends.
func serveAdmin(c *core, l net.Listener, b api.Backend) (part, error) {
	token, err := adminToken(c.cfg.Admin)
	if err != nil {
		return nil, err
	}
	handler := api.New(api.Config{Token: token, Gatherer: c.reg, Logger: c.log, Version: programBuild().Version}, b)
	return func(ctx context.Context) error {
		s := &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       2 * time.Minute,
			ErrorLog:          slog.NewLogLogger(c.log.Handler(), slog.LevelWarn),
			BaseContext:       func(net.Listener) context.Context { return ctx },
		}
		return serveUntil(ctx, s, l)
	}, nil
}

func serveUntil(ctx context.Context, s *http.Server, l net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), adminGrace)
	defer cancel()
	if s.Shutdown(grace) != nil {
		_ = s.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func adminToken(cfg AdminConfig) (string, error) {
	if cfg.TokenFile == "" {
		return "", nil
	}
	data, err := readFile(cfg.TokenFile)
	if err != nil {
		return "", fail(exitConfig, fmt.Errorf("admin.token_file: %w", err))
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fail(exitConfig, fmt.Errorf("admin.token_file: %s is empty", cfg.TokenFile))
	}
	return token, nil
}
