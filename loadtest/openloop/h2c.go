//go:build linux

package openloop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/loadtest/http1"
)

// A streamConn is one connection of HTTP/2, made again when it has ended.
type streamConn struct {
	address   string
	dialled   func()
	transport *http.Transport

	mu   sync.Mutex // guards conn
	conn *http.ClientConn
}

func newStreamConn(address string, dialled func()) *streamConn {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &streamConn{
		address: address, dialled: dialled,
		transport: &http.Transport{Protocols: protocols, DisableCompression: true},
	}
}

func (c *streamConn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close() // nothing of it is of interest any more
	}
}

func (c *streamConn) get(ctx context.Context) (*http.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil && c.conn.Err() == nil {
		return c.conn, nil
	}
	c.dialled()
	conn, err := c.transport.NewClientConn(ctx, "http", c.address)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	return conn, nil
}

// ask sends a request and judges its answer; with an error, the end has the
// outcome.
func (c *streamConn) ask(ctx context.Context, j job) (end, error) {
	conn, err := c.get(ctx)
	if err != nil {
		if errors.Is(err, unix.ECONNREFUSED) {
			return end{outcome: Refused}, err
		}
		return end{outcome: Unreachable}, err
	}
	request, err := newRequest(ctx, j)
	if err != nil {
		return end{outcome: Malformed}, err
	}
	answer, err := conn.RoundTrip(request)
	if err != nil {
		return end{outcome: Cut}, err
	}
	defer answer.Body.Close()
	var check check
	check.reset(j.target, j.id)
	if _, err := io.Copy(&check, answer.Body); err != nil {
		return end{outcome: Cut}, err
	}
	return end{
		outcome: check.judge(answer.StatusCode, []byte(answer.Header.Get("X-Request-ID"))),
		status:  answer.StatusCode,
		added:   added([]byte(strings.Join(answer.Header.Values("Server-Timing"), ","))),
	}, nil
}

func newRequest(ctx context.Context, j job) (*http.Request, error) {
	asked := j.target.template.Request
	var body io.Reader = http.NoBody
	if n := len(asked.Body); n >= http1.IDLength {
		body = io.MultiReader(bytes.NewReader(j.id[:]), bytes.NewReader(asked.Body[http1.IDLength:]))
	} else if n > 0 {
		body = bytes.NewReader(asked.Body)
	}
	request, err := http.NewRequestWithContext(ctx, asked.Method, "http://"+asked.Host+asked.Path, body)
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(len(asked.Body))
	for _, line := range asked.Header {
		name, value, _ := strings.Cut(line, ":")
		request.Header.Add(name, strings.TrimSpace(value))
	}
	request.Header.Set("X-Request-ID", string(j.id[:]))
	return request, nil
}
