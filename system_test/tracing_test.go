package system_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/tracing/otlp/otlptest"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

// family is the spans of a trace by name, "KIND NAME".
func family(t *testing.T, spans []otlptest.Span, trace string) map[string]otlptest.Span {
	t.Helper()
	all := map[string]otlptest.Span{}
	for _, s := range spans {
		if s.Trace == trace {
			name := s.Kind + " " + s.Name
			require.NotContains(t, all, name)
			all[name] = s
		}
	}
	return all
}

// getTraced asks for a path of tool in the client's trace, and returns the
// trace context that the workload saw.
func getTraced(t *testing.T, n *node, flags string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.traffic+"/some/path", nil)
	require.NoError(t, err)
	req.Host = "tool.localhost"
	req.Header.Set("Traceparent", "00-"+clientTrace+"-"+clientSpan+"-"+flags)
	resp, err := client.Do(req)
	require.NoError(t, err)
	body := drainAll(resp)
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	var seen struct{ Headers http.Header }
	require.NoError(t, json.Unmarshal([]byte(body), &seen))
	require.Len(t, seen.Headers["Traceparent"], 1)
	return seen.Headers["Traceparent"][0]
}

// One request to a sleeping workload is one trace, from the client's span to
// the workload's, through gateway, NATS and scaler: in one process, and in
// three.
func TestAColdRequestIsOneTrace(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(t *testing.T, tracing string) *node{
		"one process": func(t *testing.T, tracing string) *node {
			return start(t, plan{role: "up", dir: t.TempDir(), config: tracing + noDocker + processConfig(t, "tool", "", "--startup", "200ms")})
		},
		"three processes": func(t *testing.T, tracing string) *node {
			addr := freeAddr(t)
			start(t, plan{role: "nats", dir: t.TempDir(), config: fmt.Sprintf("nats: { listen: %q, store_dir: %q }\n", addr, t.TempDir())})
			url := fmt.Sprintf("nats: { url: \"nats://%s\" }\n", addr)
			start(t, plan{role: "scaler", dir: t.TempDir(), config: tracing + url + noDocker + processConfig(t, "tool", "", "--startup", "200ms")})
			gateway := start(t, plan{role: "gateway", dir: t.TempDir(), config: tracing + url})
			waitRoute(t, gateway, "tool")
			return gateway
		},
	} {
		t.Run(name, func(t *testing.T) {
			collector := otlptest.Start(t)
			n := run(t, fmt.Sprintf("tracing: { endpoint: %q, sample: 0 }\n", collector.URL())) // the client's is kept all the same
			seen := getTraced(t, n, "01")

			const spans = 10
			all := family(t, collector.Await("the whole trace", func(s []otlptest.Span) bool { return len(s) >= spans }), clientTrace)
			require.Len(t, all, spans)
			request := all["server GET tool"]
			parents := map[string]string{"server GET tool": clientSpan}
			for _, name := range []string{"internal hold", "client GET tool", "internal cold start"} {
				parents[name] = request.ID
			}
			for _, phase := range []string{"wake", "queue", "start", "probe", "ready", "release"} {
				parents["internal "+phase] = all["internal cold start"].ID
			}
			for name, parent := range parents {
				assert.Equal(t, parent, all[name].Parent, name)
				assert.False(t, all[name].Failed, name)
				assert.False(t, all[name].End.Before(all[name].Start), name)
			}
			assert.Equal(t, "00-"+clientTrace+"-"+all["client GET tool"].ID+"-01", seen)
			assert.Equal(t, true, request.Attributes["faas.coldstart"])
			assert.Equal(t, true, all["internal cold start"].Attributes["faas.coldstart"])
			assert.Equal(t, "rouse", request.Resource["service.name"])

			getTraced(t, n, "01")
			warm := collector.Await("the warm request", func(s []otlptest.Span) bool { return len(s) >= spans+2 })[spans:]
			require.Len(t, warm, 2)
			for _, s := range warm {
				if s.Kind == "server" {
					assert.Equal(t, false, s.Attributes["faas.coldstart"])
				}
			}
			assert.Equal(t, "00-"+clientTrace+"-"+clientSpan+"-00", getTraced(t, n, "00"), "not kept, so not touched")
			n.stop() // which sends what is left
			assert.Len(t, collector.Spans(), spans+2)
		})
	}
}

// Neither requests nor the stop wait for a collector that takes connections
// and says nothing.
func TestACollectorThatHangsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	n := start(t, plan{role: "up", dir: t.TempDir(), env: []string{"OTEL_EXPORTER_OTLP_TIMEOUT=3600000"},
		config: fmt.Sprintf("tracing: { endpoint: %q }\n", "http://"+l.Addr().String()) + noDocker + processConfig(t, "tool", "")})
	for range 3000 { // more spans than there is room for
		require.Equal(t, http.StatusOK, n.get("tool.localhost", "/").status)
	}
	resp, err := client.Get(n.admin + "/metrics")
	require.NoError(t, err)
	page := drainAll(resp)
	assert.Regexp(t, `rouse_trace_spans_total\{result="full"\} [1-9]`, page)
	n.stop() // fails the test if that takes a minute
}

func TestTracingWithoutACollectorIsRefused(t *testing.T) {
	code, out := refuse(t, plan{role: "up", dir: t.TempDir(), config: "tracing: { endpoint: env }\n" + noDocker})
	assert.Equal(t, 3, code, out)
	assert.Contains(t, out, "tracing.endpoint: neither OTEL_EXPORTER_OTLP_ENDPOINT nor")
	code, out = refuse(t, plan{role: "up", dir: t.TempDir(), config: "tracing: { endpoint: \"http://user:secret@collector:4318\", sample: 2 }\n" + noDocker})
	assert.Equal(t, 3, code, out)
	assert.NotContains(t, out, "secret")
	assert.Contains(t, out, `tracing.sample: "2" is not a number from 0 to 1 (write 0.1 for a tenth)`)
	assert.True(t, strings.Contains(out, "OTEL_EXPORTER_OTLP_HEADERS"), out)
}
