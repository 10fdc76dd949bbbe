package probe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/scaler/probe"
	"github.com/rouse-dev/rouse/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ scaler.Prober = (*probe.Prober)(nil)

// listen serves each connection with serve, one after the other, and gives
// its address and what the server read last of each: io.EOF is a clean end.
func listen(t *testing.T, network string, serve func(net.Conn)) (address string, ends <-chan error) {
	t.Helper()
	l, err := net.Listen(network, map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"}[network])
	if err != nil && network == "tcp6" {
		t.Skip("no IPv6 on this machine:", err)
	}
	require.NoError(t, err)
	ch, done := make(chan error, 100), make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			_, err = io.Copy(io.Discard, c)
			if err == nil {
				err = io.EOF
			}
			ch <- err
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String(), ch
}

func try(kind string, forwarded bool, address string) error {
	ready, err := workload.ParseReadiness(kind)
	if err != nil {
		return err
	}
	w := workload.Workload{Name: "wiki", Hosts: []string{"*.example.com", "wiki.example.com"}, Ready: ready}
	ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
	defer cancel()
	return probe.New().Probe(ctx, w, workload.Replica{ID: "1", Address: address, Forwarded: forwarded})
}

func TestAConnectionProvesAnAddressOfItsOwn(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6"} {
		t.Run(network, func(t *testing.T) {
			address, ends := listen(t, network, func(net.Conn) {})
			for _, kind := range []string{"auto", "tcp", "docker"} {
				require.NoError(t, try(kind, false, address))
				assert.Equal(t, io.EOF, <-ends, "closed without a reset")
			}
		})
	}
}

func TestAClosedPortIsNotReady(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	l.Close()
	for _, kind := range []string{"auto", "tcp", "http:/"} {
		for _, forwarded := range []bool{false, true} {
			assert.ErrorContains(t, try(kind, forwarded, address), "refused")
		}
	}
}

// What a published port does while nobody listens behind it.
func TestAForwarderThatReachesNobodyIsNotReady(t *testing.T) {
	address, _ := listen(t, "tcp4", func(c net.Conn) { c.Close() })
	for _, kind := range []string{"auto", "tcp", "http:/"} {
		assert.Error(t, try(kind, true, address), kind)
	}
}

func TestAForwarderThatKeepsSilentProvesNothingButTCP(t *testing.T) {
	address, ends := listen(t, "tcp4", func(net.Conn) {})
	require.NoError(t, try("tcp", true, address))
	assert.Equal(t, io.EOF, <-ends)
	err := try("auto", true, address)
	require.ErrorContains(t, err, "no answer")
	assert.True(t, errors.Is(err, os.ErrDeadlineExceeded), err)
}

func TestThroughAForwarderAnyAnswerCounts(t *testing.T) {
	for name, answer := range map[string]string{
		"an error":       "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
		"not found":      "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/2 alone":   "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"without an end": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			address, ends := listen(t, "tcp4", func(c net.Conn) {
				buf := make([]byte, 4096)
				n, _ := c.Read(buf)
				assert.Contains(t, string(buf[:n]), "Host: wiki.example.com\r\n")
				io.WriteString(c, answer)
			})
			require.NoError(t, try("auto", true, address))
			assert.Equal(t, io.EOF, <-ends, "closed without a reset")
		})
	}
}

func TestAPathIsReadyWithSuccessOrARedirect(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || r.Host != "wiki.example.com" {
			t.Errorf("asked for %s of %s", r.URL, r.Host)
		}
		var code int
		fmt.Sscan(r.URL.Query().Get("code"), &code)
		w.Header().Set("Location", "http://192.0.2.1/never-followed")
		w.WriteHeader(code)
		if code != http.StatusNoContent && code != http.StatusNotModified {
			io.WriteString(w, strings.Repeat("x", 10_000))
		}
	}))
	defer srv.Close()
	address := srv.Listener.Addr().String()
	for code, ready := range map[int]bool{200: true, 204: true, 302: true, 304: true, 401: false, 404: false, 500: false, 503: false} {
		err := try(fmt.Sprintf("http:/healthz?code=%d", code), code%2 == 0, address)
		if ready {
			assert.NoError(t, err, code)
		} else {
			assert.ErrorContains(t, err, fmt.Sprint(code), code)
		}
	}
}

func TestATryIsOverWhenItsTimeIs(t *testing.T) {
	address, ends := listen(t, "tcp4", func(net.Conn) {})
	err := try("http:/", false, address)
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.Equal(t, io.EOF, <-ends)
}

func TestATryEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	address, _ := listen(t, "tcp4", func(net.Conn) { cancel() })
	ready := workload.Readiness{Kind: workload.ReadyHTTP, Path: "/"}
	err := probe.New().Probe(ctx, workload.Workload{Ready: ready}, workload.Replica{Address: address})
	assert.Error(t, err)
}

func TestAnEndlessAnswerIsReadyWithItsHead(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close()
	assert.NoError(t, try("http:/events", false, srv.Listener.Addr().String()))
}

func ExampleProber_Probe() {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	w := workload.Workload{Name: "wiki", Ready: workload.Readiness{Kind: workload.ReadyAuto}}
	r := workload.Replica{ID: "1", Address: srv.Listener.Addr().String()}
	fmt.Println(probe.New().Probe(context.Background(), w, r))
	// Output: <nil>
}

func BenchmarkProbeRefused(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	address := l.Addr().String()
	l.Close()
	p, r := probe.New(), workload.Replica{Address: address}
	w := workload.Workload{Ready: workload.Readiness{Kind: workload.ReadyAuto}}
	b.ReportAllocs()
	for b.Loop() {
		if p.Probe(context.Background(), w, r) == nil {
			b.Fatal("ready")
		}
	}
}

func BenchmarkProbeAccepted(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	defer func() { l.Close(); <-done }()
	p, r := probe.New(), workload.Replica{Address: l.Addr().String()}
	w := workload.Workload{Ready: workload.Readiness{Kind: workload.ReadyAuto}}
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Probe(context.Background(), w, r); err != nil {
			b.Fatal(err)
		}
	}
}
