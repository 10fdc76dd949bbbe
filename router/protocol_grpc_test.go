package router_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// interopCases are those of gRPC's interoperability suite that need neither
// credentials nor a balancer, by the names that its client gives them.
var interopCases = map[string]func(context.Context, *grpc.ClientConn){
	"empty_unary":                 withTest(interop.DoEmptyUnaryCall),
	"large_unary":                 withTest(interop.DoLargeUnaryCall),
	"client_streaming":            withTest(interop.DoClientStreaming),
	"server_streaming":            withTest(interop.DoServerStreaming),
	"ping_pong":                   withTest(interop.DoPingPong),
	"empty_stream":                withTest(interop.DoEmptyStream),
	"timeout_on_sleeping_server":  withTest(interop.DoTimeoutOnSleepingServer),
	"cancel_after_begin":          withTest(interop.DoCancelAfterBegin),
	"cancel_after_first_response": withTest(interop.DoCancelAfterFirstResponse),
	"custom_metadata":             withTest(interop.DoCustomMetadata),
	"status_code_and_message":     withTest(interop.DoStatusCodeAndMessage),
	"special_status_message":      withTest(interop.DoSpecialStatusMessage),
	"unimplemented_method":        interop.DoUnimplementedMethod,
	"unimplemented_service": func(ctx context.Context, conn *grpc.ClientConn) {
		interop.DoUnimplementedService(ctx, testpb.NewUnimplementedServiceClient(conn))
	},
}

func withTest(do func(context.Context, testpb.TestServiceClient, ...grpc.CallOption)) func(context.Context, *grpc.ClientConn) {
	return func(ctx context.Context, conn *grpc.ClientConn) { do(ctx, testpb.NewTestServiceClient(conn)) }
}

func TestGRPCInterop(t *testing.T) {
	for _, f := range fronts {
		t.Run(f.name, func(t *testing.T) {
			for name, do := range interopCases {
				t.Run(name, func(t *testing.T) {
					warmAndCold(t, interopServer, func(t *testing.T, rig *rig) {
						conn := rig.channel(t, f.scheme == "https")
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						defer cancel()
						verdicts.of(t, func() { do(ctx, conn) })
						if name == "timeout_on_sleeping_server" || name == "cancel_after_begin" {
							// They may be over before anything is sent.
							verdicts.of(t, func() { interop.DoEmptyUnaryCall(ctx, testpb.NewTestServiceClient(conn)) })
						}
					}, f.server(t))
				})
			}
		})
	}
}

// interopServer is the suite's own server.
func interopServer(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	testpb.RegisterTestServiceServer(server, interop.NewTestServer())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { server.Stop(); <-ended })
	return listener.Addr().String()
}

// channel connects gRPC's client to the rig.
func (r *rig) channel(t *testing.T, secure bool) *grpc.ClientConn {
	t.Helper()
	cred := insecure.NewCredentials()
	if secure {
		cred = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	conn, err := grpc.NewClient("passthrough:///"+r.addr, grpc.WithAuthority("wiki.test"), grpc.WithTransportCredentials(cred))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// verdicts hears what the suite has to say: it ends the process on a failure,
// by way of the logger.
var verdicts = func() *verdict {
	v := &verdict{LoggerV2: grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)}
	grpclog.SetLoggerV2(v) // before anything of gRPC's runs
	return v
}()

type verdict struct {
	grpclog.LoggerV2
	mu   sync.Mutex
	last string // guarded by mu
}

// of fails the test unless do comes to its end.
func (v *verdict) of(t *testing.T, do func()) {
	t.Helper()
	passed := make(chan bool, 1)
	go func() {
		ok := false
		defer func() { passed <- ok }()
		do()
		ok = true
	}()
	select {
	case ok := <-passed:
		v.mu.Lock()
		defer v.mu.Unlock()
		assert.True(t, ok, v.last)
	case <-time.After(2 * patience):
		t.Error("it came to no end")
	}
}

// Fatalln is what the suite's failures come to. It ends the goroutine, and so
// keeps the process.
func (v *verdict) Fatalln(args ...any) {
	v.mu.Lock()
	v.last = fmt.Sprintln(args...)
	v.mu.Unlock()
	runtime.Goexit()
}
