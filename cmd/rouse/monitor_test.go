package main

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/doctor"
	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/workload"
)

// opened is a station with these keys, and what it learns from NATS, until the
// test ends.
func opened(t *testing.T, name string, keys map[string]string) *station {
	t.Helper()
	keys["admin.listen"] = "127.0.0.1:0"
	cfg, err := (&globals{}).load(keys)
	require.NoError(t, err)
	s, err := open(t.Context(), role{cfg: cfg}, name, false)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.core.follow(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
		s.close()
	})
	return s
}

// names of the metrics that a process shows.
func metricNames(t *testing.T, g prometheus.Gatherer) []string {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	return names
}

// repository finds files of it after quiet has left its directory.
func repository(t *testing.T, name string) string {
	t.Helper()
	here, err := os.Getwd()
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(here, "..", "..", name))
	require.NoError(t, err)
	return string(data)
}

var natsMetric = regexp.MustCompile(`\b(?:rouse|jetstream|gnatsd)_[a-z_]+`)

func TestAlertsOnNATSAskForWhatIsShownAndAreExplained(t *testing.T) {
	text, docs := repository(t, "deploy/prometheus/nats-rules.yml"), repository(t, "docs/nats.md")
	quiet(t)
	s := opened(t, "rouse", map[string]string{"nats.store_dir": t.TempDir()})
	require.NoError(t, s.core.bus.PublishWake(t.Context(), "local", workload.Wake{Workload: "wiki"}))
	taken := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- s.core.bus.ServeWakes(ctx, "local", 1, func(context.Context, workload.Wake) events.Verdict {
			taken <- struct{}{}
			return events.Done()
		})
	}()
	<-taken
	require.NoError(t, s.core.bus.ReportActivity(t.Context(), workload.Activity{Gateway: "g"}))
	shown := metricNames(t, s.core.reg)
	cancel()
	require.NoError(t, <-served)

	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &rules))
	require.NotEmpty(t, rules.Groups)
	for _, rule := range rules.Groups[0].Rules {
		assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		assert.NotEmpty(t, rule.Annotations["description"], rule.Alert)
		assert.Contains(t, []string{"critical", "warning"}, rule.Labels["severity"], rule.Alert)
		assert.Contains(t, docs, "\n### "+rule.Alert+"\n", "it says what to do")
		for _, name := range natsMetric.FindAllString(rule.Expr, -1) {
			assert.Contains(t, shown, name, rule.Alert)
		}
	}
	for _, name := range regexp.MustCompile(`(?m)^### (Rouse\w+)$`).FindAllStringSubmatch(docs, -1) {
		assert.Contains(t, text, "alert: "+name[1]+"\n", "there is such an alert")
	}
}

func TestScalerShowsANATSServerElsewhereAndAGatewayDoesNot(t *testing.T) {
	quiet(t)
	server := opened(t, "rouse", map[string]string{"nats.store_dir": t.TempDir(), "nats.listen": "127.0.0.1:0"})
	elsewhere := map[string]string{"nats.url": server.server.URL()}
	gateway := opened(t, "gateway", elsewhere).core
	assert.NotContains(t, strings.Join(metricNames(t, gateway.reg), " "), "jetstream_")

	scaler := opened(t, "scaler", elsewhere).core
	require.NoError(t, scaler.monitorNATS())
	shown := metricNames(t, scaler.reg)
	assert.Contains(t, shown, "jetstream_stream_total_messages")
	assert.Contains(t, shown, "jetstream_server_total_streams")
	assert.NotContains(t, strings.Join(shown, " "), "gnatsd_")
	assert.NotContains(t, shown, "rouse_nats_store_free_bytes")
	assert.Contains(t, metricNames(t, server.core.reg), "gnatsd_varz_connections")
}

func TestTroubleOfNATSIsAmongTheProblems(t *testing.T) {
	quiet(t)
	s := opened(t, "rouse", map[string]string{"nats.store_dir": t.TempDir()})
	server := httptest.NewServer(api.New(api.Config{}, newBackend(s.core, nil, nil)))
	t.Cleanup(server.Close)
	status := func() string { return invoke(t, "status", "--admin", server.URL).stdout }
	assert.NotContains(t, status(), "PROBLEMS")

	closed := make(chan struct{})
	nc, err := nats.Connect("", nats.InProcessServer(s.server.Server), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	require.NoError(t, err)
	defer func() { nc.Close(); <-closed }()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_ = js.DeleteStream(t.Context(), "ROUSE_EVENTS") // again, if nobody listened yet
		return strings.Contains(status(), "nats stream ROUSE_EVENTS: it was deleted at ")
	}, 20*time.Second, 50*time.Millisecond)
}

func TestDoctorTellsOfTroubleOfNATS(t *testing.T) {
	trouble := workload.Problem{Kind: workload.ProblemNATS, Place: "nats stream ROUSE_WAKES", Message: "more than half of its servers are out of reach", Fix: "start them"}
	r, code := diagnose(t, &standIn{workloads: []api.Workload{wiki()}, problems: []workload.Problem{trouble}}, `docker: { host: "" }`)
	assert.Equal(t, exitOK, code, "a warning is no error")
	got := found(r, "nats_advisory")
	require.Len(t, got, 1)
	assert.Equal(t, doctor.Warning, got[0].Severity)
	assert.Equal(t, trouble.Place, got[0].Place)
	assert.Equal(t, trouble.Message, got[0].What)
	assert.Equal(t, trouble.Fix, got[0].Fix)
}
