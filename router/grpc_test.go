package router_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rouse-dev/rouse/workload"
)

// echoStream is a service with one call, a stream in both directions. It uses
// the health service's messages, to need none of its own.
var echoStream = grpc.ServiceDesc{
	ServiceName: "test.Echo", HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{StreamName: "Talk", ServerStreams: true, ClientStreams: true, Handler: talk}},
}

func talk(_ any, s grpc.ServerStream) error {
	for {
		var m healthpb.HealthCheckRequest
		switch err := s.RecvMsg(&m); {
		case errors.Is(err, io.EOF):
			s.SetTrailer(metadata.Pairs("x-end", "over"))
			return nil
		case err != nil:
			return err
		case m.Service == "fail":
			return status.Error(codes.DataLoss, "as asked")
		}
		if err := s.SendMsg(&healthpb.HealthCheckRequest{Service: "echo " + m.Service}); err != nil {
			return err
		}
	}
}

// grpcUpstream is a real gRPC server; it speaks HTTP/2 alone.
func grpcUpstream(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	server.RegisterService(&echoStream, nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { server.Stop(); <-ended })
	return listener.Addr().String()
}

func (r *rig) grpc(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+r.addr, grpc.WithAuthority("wiki.test"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestGRPCUnaryWarmAndCold(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.coldStart(grpcUpstream(t), 0, 0)
	check := healthpb.NewHealthClient(rig.grpc(t))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, cold := range []string{"?1", ""} {
		var header metadata.MD
		answer, err := check.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header))
		require.NoError(t, err)
		assert.Equal(t, healthpb.HealthCheckResponse_SERVING, answer.Status)
		got := ""
		if values := header.Get("rouse-cold-start"); len(values) > 0 {
			got = values[0]
		}
		assert.Equal(t, cold, got, "call %d", i)
	}
	_, err := check.Check(ctx, &healthpb.HealthCheckRequest{Service: "unknown"})
	assert.Equal(t, codes.NotFound, status.Code(err), "an answer of trailers alone")
}

func TestGRPCStreamsBothWays(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, grpcUpstream(t))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	open := func() grpc.ClientStream {
		s, err := rig.grpc(t).NewStream(ctx, &echoStream.Streams[0], "/test.Echo/Talk")
		require.NoError(t, err)
		return s
	}
	s := open()
	for i := range 5 { // each is answered before the next is sent
		require.NoError(t, s.SendMsg(&healthpb.HealthCheckRequest{Service: fmt.Sprint(i)}))
		var m healthpb.HealthCheckRequest
		require.NoError(t, s.RecvMsg(&m))
		assert.Equal(t, fmt.Sprint("echo ", i), m.Service)
	}
	rig.inFlight("wiki", 1)
	require.NoError(t, s.CloseSend())
	require.ErrorIs(t, s.RecvMsg(&healthpb.HealthCheckRequest{}), io.EOF)
	assert.Equal(t, []string{"over"}, s.Trailer().Get("x-end"))

	s = open()
	require.NoError(t, s.SendMsg(&healthpb.HealthCheckRequest{Service: "fail"}))
	assert.Equal(t, codes.DataLoss, status.Code(s.RecvMsg(&healthpb.HealthCheckRequest{})))
	rig.inFlight("wiki", 0)
}

func TestGRPCSeesThatAWorkloadDoesNotWake(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.HoldTimeout = 50 * time.Millisecond }))
	_, err := healthpb.NewHealthClient(rig.grpc(t)).Check(t.Context(), &healthpb.HealthCheckRequest{})
	assert.Equal(t, codes.Unavailable, status.Code(err))
}

// h2c is a client that speaks HTTP/2 over cleartext from the first byte.
func h2c() *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: protocols}
}

func TestPlainHTTP2GoesToTheWorkloadAsHTTP1(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Proto", r.Proto)
		w.Header().Set("Trailer", "X-End")
		echo(w, r)
		w.Header().Set("X-End", "over")
	}))
	transport := h2c()
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(rig.request(t.Context(), http.MethodPost, "wiki.test", "/", io.LimitReader(pattern{}, 1<<20)))
	require.NoError(t, err)
	assert.Equal(t, 2, res.ProtoMajor)
	assert.Equal(t, "HTTP/1.1", res.Header.Get("X-Proto"))
	assert.Len(t, body(t, res), 1<<20)
	assert.Equal(t, "over", res.Trailer.Get("X-End"))
}

func TestHTTP2ClientThatLeavesWhileHeldFreesItsPlace(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	transport := h2c()
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	req := rig.request(ctx, http.MethodPost, "wiki.test", "/", pattern{})
	go func() {
		_, err := transport.RoundTrip(req)
		ended <- err
	}()
	rig.queued("wiki", 1)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	rig.queued("wiki", 0)
	rig.entry(func(e entry) bool { return e.Status == 499 })
}
