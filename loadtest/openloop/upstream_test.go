//go:build linux

package openloop_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/schedule"
)

// listener gives a socket that listens, with its address.
func listener(t *testing.T) (descriptor int, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	file, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return int(file.Fd()), l.Addr().String()
}

func TestTheUpstreamInTheGeneratorAnswersEachRequestAfterItsDelay(t *testing.T) {
	t.Parallel()
	for _, protocol := range []openloop.Protocol{openloop.KeepAlive, openloop.Fresh} {
		fd, address := listener(t)
		cfg := plainLoad(address, 500, 500)
		cfg.Protocol = protocol
		cfg.Targets[0].Expect = openloop.Expect{Echo: openloop.InBody, Length: 300}
		cfg.Upstream = &openloop.Upstream{Listener: fd, Delay: 3 * time.Millisecond, Size: 300}
		r := run(t, cfg)
		assert.Equal(t, int64(500), r.Measured.Outcomes["ok"], r.Errors)
		assert.Equal(t, int64(500), cfg.Upstream.Served)
		assert.GreaterOrEqual(t, r.Times.Service.Quantile(0), 3*time.Millisecond)
		assert.Zero(t, r.Unsolicited)
	}
}

// Others may ask it too: in pieces, several at once, and wrongly.
func TestTheUpstreamReadsRequestsHoweverTheyCome(t *testing.T) {
	t.Parallel()
	fd, address := listener(t)
	cfg := plainLoad(address, 1, 1)
	cfg.Schedule = schedule.Rates{Phases: []schedule.Phase{{Duration: 20 * time.Second}, {Duration: time.Second, From: 1, To: 1}}}
	cfg.Upstream = &openloop.Upstream{Listener: fd}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan error, 1)
	go func() { _, err := openloop.Run(ctx, cfg); ended <- err }()

	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	for _, piece := range []string{"GET / HTTP/1.1\r\nHost: a\r\nx-request-", "id: 0123456789abcdef\r\n\r", "\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nConnection: close\r\n\r\n"} {
		_, err = io.WriteString(conn, piece)
		require.NoError(t, err)
		time.Sleep(5 * time.Millisecond) // pieces of their own, on most machines
	}
	answers := bufio.NewReader(conn)
	for i := range 3 {
		answer, err := http.ReadResponse(answers, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		assert.Len(t, body, 16)
		assert.Equal(t, i == 0, string(body) == "0123456789abcdef")
	}
	_, err = answers.ReadByte()
	require.ErrorIs(t, err, io.EOF)

	for _, wrong := range []string{"Transfer-Encoding: chunked", "Content-Length: 3", "Content-Length: three", "Long: " + strings.Repeat("x", 64<<10)} {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\n%s\r\n\r\n", wrong)
		text, _ := io.ReadAll(conn) // reset, if it had not read all
		assert.Empty(t, text, "%.40s", wrong)
		_ = conn.Close()
	}
	end()
	require.NoError(t, <-ended)
}
