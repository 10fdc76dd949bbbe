// Package client asks a running Rouse over its admin API, in Go's types.
//
// It owns the paths and the reading of answers; the types are those of
// package api. It knows nothing of workloads beyond that, keeps no state, and
// never repeats a request by itself. An error of the server is an
// *api.ProblemDetails, so errors.Is finds api.ErrNoWorkload and its like; one
// of the way there wraps ErrUnreachable.
//
// A Client is safe for concurrent use. Every call ends with its context.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/api"
)

// ErrUnreachable is wrapped by the error of a call that got no answer, or none
// that Rouse gives.
var ErrUnreachable = errors.New("cannot reach Rouse")

// ErrEnded is wrapped, beside ErrUnreachable, when an event stream that had
// begun was cut.
var ErrEnded = errors.New("the event stream has ended")

// maxAnswer bounds an answer held in memory.
const maxAnswer = 64 << 20

// Config says where to ask, and as whom.
type Config struct {
	// Base is the admin listener's URL. A missing scheme means http.
	Base string
	// Token is the bearer token; empty sends none.
	Token string
	// HTTP sends the requests; nil takes http.DefaultClient. It should have no
	// timeout of its own: waits and event streams last.
	HTTP *http.Client
}

// A Client asks one Rouse.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// New checks the address and makes a Client; it does not connect.
func New(cfg Config) (*Client, error) {
	text := cfg.Base
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("%q is not the address of an admin listener: use http://host:port", cfg.Base)
	}
	if cfg.HTTP == nil {
		cfg.HTTP = http.DefaultClient
	}
	return &Client{base: base, token: cfg.Token, http: cfg.HTTP}, nil
}

// Base is the URL that the client asks.
func (c *Client) Base() string { return c.base.String() }

// Workloads lists all workloads and what is wrong with descriptions of them.
func (c *Client) Workloads(ctx context.Context) (api.WorkloadList, error) {
	return get[api.WorkloadList](ctx, c, nil, "workloads")
}

// Workload gives one; api.ErrNoWorkload if there is none of that name.
func (c *Client) Workload(ctx context.Context, name string) (api.Workload, error) {
	return get[api.Workload](ctx, c, nil, "workloads", name)
}

// Wake asks for a workload to be brought up, and with a wait blocks until it
// is ready: api.ErrNotReady when the wait is over first, api.ErrFailed when
// the start fails.
func (c *Client) Wake(ctx context.Context, name string, wait time.Duration) (api.Workload, error) {
	query := url.Values{}
	if wait > 0 {
		query.Set("wait", wait.String())
	}
	return call[api.Workload](ctx, c, http.MethodPost, query, "workloads", name, "wake")
}

// Sleep puts a workload to sleep and blocks until it sleeps; api.ErrInUse when
// its traffic kept it awake.
func (c *Client) Sleep(ctx context.Context, name string) (api.Workload, error) {
	return call[api.Workload](ctx, c, http.MethodPost, nil, "workloads", name, "sleep")
}

// Keep has a workload awake for span from now on, at most workload.MaxKeep; 0
// ends that. It is woken if it sleeps, and not waited for.
func (c *Client) Keep(ctx context.Context, name string, span time.Duration) (api.Workload, error) {
	return call[api.Workload](ctx, c, http.MethodPost, url.Values{"for": {span.String()}}, "workloads", name, "keep")
}

// Logs gives the last lines that a workload wrote, oldest first.
func (c *Client) Logs(ctx context.Context, name string, lines int) ([]string, error) {
	got, err := get[api.LogLines](ctx, c, url.Values{"lines": {strconv.Itoa(lines)}}, "workloads", name, "logs")
	return got.Lines, err
}

// Wakes lists the recent cold starts, newest first: of one workload, or with
// an empty name of all.
func (c *Client) Wakes(ctx context.Context, name string) ([]api.Wake, error) {
	query := url.Values{}
	if name != "" {
		query.Set("workload", name)
	}
	got, err := get[api.WakeList](ctx, c, query, "wakes")
	return got.Wakes, err
}

// WakeByID gives one cold start; api.ErrNoWake if it is not or no longer known.
func (c *Client) WakeByID(ctx context.Context, id string) (api.Wake, error) {
	return get[api.Wake](ctx, c, nil, "wakes", id)
}

// Config is the configuration in force as JSON, without its secrets.
func (c *Client) Config(ctx context.Context) (json.RawMessage, error) {
	return get[json.RawMessage](ctx, c, nil, "config")
}

// Health asks whether the process answers at all.
func (c *Client) Health(ctx context.Context) error {
	answer, err := c.send(ctx, http.MethodGet, c.base.JoinPath("healthz"))
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return c.problem(answer)
	}
	return nil
}

// Ready asks whether the process can do its work. One that says it cannot is
// no error: Readiness.Ready is false.
func (c *Client) Ready(ctx context.Context) (api.Readiness, error) {
	answer, err := c.send(ctx, http.MethodGet, c.base.JoinPath("readyz"))
	if err != nil {
		return api.Readiness{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
		return api.Readiness{}, c.problem(answer)
	}
	return decode[api.Readiness](c, answer)
}

func get[T any](ctx context.Context, c *Client, query url.Values, path ...string) (T, error) {
	return call[T](ctx, c, http.MethodGet, query, path...)
}

// call asks for one path under /api/v1 and reads the JSON of a 2xx answer.
func call[T any](ctx context.Context, c *Client, method string, query url.Values, path ...string) (T, error) {
	var none T
	answer, err := c.send(ctx, method, c.url(query, path...))
	if err != nil {
		return none, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode/100 != 2 {
		return none, c.problem(answer)
	}
	return decode[T](c, answer)
}

// url escapes each part of a path by itself: a name is never a path.
func (c *Client) url(query url.Values, path ...string) *url.URL {
	escaped := make([]string, len(path))
	for i, part := range path {
		escaped[i] = url.PathEscape(part)
	}
	u := c.base.JoinPath("api", "v1").JoinPath(escaped...)
	u.RawQuery = query.Encode()
	return u
}

func (c *Client) send(ctx context.Context, method string, u *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", u, err)
	}
	return c.do(request)
}

func (c *Client) do(request *http.Request) (*http.Response, error) {
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return answer, nil
}

// unreachable names the address once: that of the client's own errors is the
// whole URL of the request.
func (c *Client) unreachable(err error) error {
	var whole *url.Error
	if errors.As(err, &whole) {
		err = whole.Err
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.base, err)
}

func decode[T any](c *Client, answer *http.Response) (T, error) {
	var v T
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&v); err != nil {
		return v, c.unreachable(fmt.Errorf("read the answer: %w", err))
	}
	return v, nil
}

// problem reads an error answer. One that is not problem+json did not come
// from Rouse.
func (c *Client) problem(answer *http.Response) error {
	var p api.ProblemDetails
	err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&p)
	if err != nil || p.Type == "" {
		return c.unreachable(fmt.Errorf("something else answers there, with %s", answer.Status))
	}
	return &p
}
