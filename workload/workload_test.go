package workload_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

func TestEveryContainerNameIsAWorkloadName(t *testing.T) {
	for _, name := range []string{"a", "wiki", "my_app-1", "p_web_1", "A.b-c_9", strings.Repeat("x", workload.MaxName)} {
		assert.NoError(t, workload.ValidName(name), name)
	}
}

func TestABadNameIsRefusedWithTheReason(t *testing.T) {
	for name, part := range map[string]string{
		"":                                      "empty",
		".hidden":                               "byte 1",
		"-x":                                    "byte 1",
		"a b":                                   "byte 2",
		"a/b":                                   "byte 2",
		"a*":                                    "byte 2",
		"wiki>":                                 "byte 5",
		"grün":                                  "byte 3",
		strings.Repeat("x", workload.MaxName+1): "the limit is 80",
	} {
		err := workload.ValidName(name)
		require.ErrorIs(t, err, workload.ErrName, name)
		assert.Contains(t, err.Error(), part)
	}
}

func TestReadinessReadsWhatItWrites(t *testing.T) {
	for _, s := range []string{"auto", "tcp", "docker", "http:/", "http:/healthz?deep=1"} {
		r, err := workload.ParseReadiness(s)
		require.NoError(t, err)
		assert.Equal(t, s, r.String())
	}
	for _, s := range []string{"", "http", "http:", "http:healthz", "TCP", "https:/"} {
		_, err := workload.ParseReadiness(s)
		assert.Error(t, err, s)
	}
}

func TestPhasesKeepTheirNamesOnTheWire(t *testing.T) {
	for _, p := range workload.Phases() {
		b, err := json.Marshal(workload.State{Workload: "x", Phase: p})
		require.NoError(t, err)
		var s workload.State
		require.NoError(t, json.Unmarshal(b, &s))
		assert.Equal(t, p, s.Phase)
	}
	var p workload.Phase
	assert.ErrorContains(t, p.UnmarshalText([]byte("napping")), `"napping"`)
	_, err := workload.Phase(99).MarshalText()
	assert.Error(t, err)
}

func TestAStateOfNothingLeavesItsEmptyPartsOut(t *testing.T) {
	b, err := json.Marshal(workload.State{Workload: "x", Revision: 7})
	require.NoError(t, err)
	for _, absent := range []string{"reason", "wake", "replicas", "lease_until", "retry_at", "evision"} {
		assert.NotContains(t, string(b), absent)
	}
}

func TestStepsAreThePhasesWithBothEnds(t *testing.T) {
	t0 := time.Unix(1000, 0)
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	w := workload.Wake{RequestedAt: at(0), PublishedAt: at(1), ReceivedAt: at(2), StartAt: at(5), StartedAt: at(605), ReadyAt: at(620)}
	var got []string
	for _, s := range w.Steps() {
		got = append(got, fmt.Sprint(s.Phase, " ", s.Duration))
	}
	assert.Equal(t, []string{"wake 2ms", "queue 3ms", "start 600ms", "probe 15ms"}, got)

	w.OpenedAt = at(610) // another machine's clock, behind
	steps := w.Steps()
	assert.Equal(t, workload.PhaseReady, steps[4].Phase)
	assert.Zero(t, steps[4].Duration)

	assert.Empty(t, (&workload.Wake{}).Steps())
}

func TestReasonIsOneLine(t *testing.T) {
	assert.Equal(t, "exited with code 3: it ended on its own",
		workload.Reason{Code: workload.ReasonExited, ExitCode: 3, Detail: "it ended on its own", Log: []string{"x"}}.String())
	assert.Equal(t, "idle", workload.Reason{Code: workload.ReasonIdle}.String())
	assert.Empty(t, workload.Reason{}.String())
}

func TestAContainerBelongsToOneWorkload(t *testing.T) {
	c := workload.Container{Name: "p-web-1", Project: "p", Service: "web", Labels: map[string]string{"enable": "true"}}
	assert.Equal(t, "web", c.WorkloadName())
	assert.True(t, (&workload.Workload{Name: "web"}).Selects(c))
	assert.True(t, (&workload.Workload{Name: "other", Service: "web"}).Selects(c))
	assert.True(t, (&workload.Workload{Name: "other", Container: "p-web-1"}).Selects(c))
	assert.False(t, (&workload.Workload{Name: "web", Container: "p-web-2"}).Selects(c))

	c.Labels = map[string]string{"enable": "yes", "name": "shop"}
	assert.Equal(t, "shop", c.WorkloadName())
	assert.False(t, (&workload.Workload{Name: "shop"}).Selects(c), "no opt-in")
}

func TestAProblemNamesPlaceAndFix(t *testing.T) {
	p := workload.Problem{Place: "rouse.yaml:3:5", Message: `unknown key "hots"`, Fix: `did you mean "host"?`}
	assert.EqualError(t, p, `rouse.yaml:3:5: unknown key "hots" (did you mean "host"?)`)
}

func ExampleWake_Steps() {
	t0 := time.Unix(0, 0)
	w := workload.Wake{RequestedAt: t0, ReceivedAt: t0.Add(time.Millisecond), StartAt: t0.Add(time.Millisecond), StartedAt: t0.Add(400 * time.Millisecond)}
	for _, s := range w.Steps() {
		fmt.Println(s.Phase, s.Duration)
	}
	// Output:
	// wake 1ms
	// queue 0s
	// start 399ms
}
