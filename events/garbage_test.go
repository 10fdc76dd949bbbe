package events_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

// garbage is what no part of Rouse sends, to any subject.
func garbage(subject string) []*nats.Msg {
	var msgs []*nats.Msg
	noise := make([]byte, 300)
	_, _ = rand.Read(noise)
	for _, body := range []string{
		"", string(noise), "null", "7", `"text"`, "true", "{", `{"generation":`, "\xff\xfe", "{}}",
		`{"phase":7,"generation":"x","workload":[],"hosts":"a","loads":{},"lines":"many","kind":{},"idle_timeout":"soon","place":7,"at":1,"id":5}`,
		`{"phase":"dreaming","generation":1,"loads":7,"lines":-1,"idle_timeout":-1,"at":"never","trigger":[]}`,
		`{"phase":"ready","generation":18446744073709551616,"loads":[{"in_flight":-1}],"lines":1e400,"port":-1,"at":"x","requested_at":"x"}`,
		`{"phase":"ready","generation":18446744073709551615,"loads":[{"idle_ms":9223372036854775807}],"lines":-9,"port":1e99,"at":"x","published_at":0}`,
		`{"phase":"failed","retry_at":"9999-01-01T00:00:00Z","name":"x","node":""}`,
		strings.Repeat(`{"a":`, 1000), strings.Repeat("[", 7000),
	} {
		msgs = append(msgs, &nats.Msg{Subject: subject, Data: []byte(body)})
	}
	for _, kind := range []string{"wake", "state", "workload", "problems", "activity", "drain", "event", "ask"} {
		future := &nats.Msg{Subject: subject, Data: []byte(`{"phase":"ready"}`), Header: nats.Header{"ce-type": {"dev.rouse." + kind + ".v2"}}}
		msgs = append(msgs, future)
	}
	for _, size := range []int{9 << 10, 65 << 10, 1<<20 - 100} { // above a wake's bound, above a value's, at the server's
		msgs = append(msgs, &nats.Msg{Subject: subject, Data: bytes.Repeat([]byte{'x'}, size)})
	}
	return msgs
}

// A rogue speaks NATS by hand.
func rogue(t *testing.T, s *eventstest.Server) *nats.Conn {
	t.Helper()
	closed := make(chan struct{})
	nc, err := nats.Connect(s.URL(), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close(); <-closed })
	return nc
}

// lines counts what is logged.
type lines struct {
	mu   sync.Mutex
	text []string // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(p))
	return len(p), nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.text...)
}

func counted(t *testing.T, reg *prometheus.Registry, kind string) float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "rouse_nats_errors_total" && m.GetLabel()[0].GetValue() == kind {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// A party is a gateway and a scaler who do all that they do, and what they
// say of it.
type party struct {
	server          *eventstest.Server
	gateway, scaler *events.Bus
	reg             *prometheus.Registry
	log             *lines

	view     *view
	woken    <-chan workload.Wake
	lists    <-chan []workload.Workload
	problems chan []workload.Problem
	activity chan workload.Activity
	history  chan workload.Event
}

func assemble(t *testing.T) *party {
	t.Helper()
	p := &party{
		server: eventstest.Start(t), reg: prometheus.NewRegistry(), log: &lines{},
		problems: make(chan []workload.Problem, 10_000), activity: make(chan workload.Activity, 10_000),
		history: make(chan workload.Event, 10_000),
	}
	log := slog.New(slog.NewTextHandler(p.log, nil))
	connect := func(name string) *events.Bus {
		return p.server.Connect(events.Config{URL: p.server.URL(), Name: name, Role: name, Logger: log, Registerer: p.reg})
	}
	p.scaler, p.gateway = connect("scaler"), connect("gateway")
	p.view, p.lists, p.woken = follow(t, p.gateway), lists(t, p.gateway), wakesOf(t, p.scaler, "n")
	background(t, func(ctx context.Context) error {
		return p.gateway.FollowProblems(ctx, func(ps []workload.Problem) { p.problems <- ps })
	})
	background(t, func(ctx context.Context) error {
		return p.scaler.FollowActivity(ctx, func(a workload.Activity, _ time.Time) { p.activity <- a })
	})
	background(t, func(ctx context.Context) error {
		return p.gateway.FollowEvents(ctx, events.EventFilter{}, func(e workload.Event) { p.history <- e })
	})
	gate(t, p.gateway, "gateway", 0)
	background(t, func(ctx context.Context) error {
		return p.scaler.ServeSleep(ctx, "n", func(context.Context, string) error { return nil })
	})
	background(t, func(ctx context.Context) error {
		return p.scaler.ServeLogs(ctx, "n", func(context.Context, string, int) ([]string, error) { return []string{"a line"}, nil })
	})
	require.NoError(t, p.scaler.ReplaceWorkloads(t.Context(), "n", named("shop", "wiki")))
	awaitNames(t, p.lists, "n/shop", "n/wiki")
	return p
}

// await reads until what is wanted has come.
func await[T any](t *testing.T, c <-chan T, want func(T) bool) {
	t.Helper()
	for end := time.Now().Add(patience); !want(receive(t, c, time.Until(end))); {
		// something else; what is wanted has to come all the same
	}
}

// The deeds of a party: each does one thing that is asked of the subject, the
// i-th time, and waits until it has arrived at the other side.
func (p *party) deeds(t *testing.T) map[string]func(i int) {
	return map[string]func(int){
		"wake": func(i int) {
			id := fmt.Sprint("w", i)
			eventually(t, patience, func() bool { // asked again and again, as a gate does
				_ = p.gateway.PublishWake(t.Context(), "n", workload.Wake{ID: id, Workload: "wiki"})
				select {
				case w := <-p.woken:
					return w.ID == id
				case <-time.After(20 * time.Millisecond):
					return false
				}
			}, "the wake arrives")
		},
		"state": func(i int) {
			for end := time.Now().Add(patience); ; {
				now, err := p.scaler.State(t.Context(), "wiki")
				if err != nil && now.Revision == 0 { // nothing to write on: what another version wrote is by hand to remove
					require.ErrorIs(t, err, events.ErrVersion)
					stream, err := admin(t, p.server).Stream(t.Context(), "KV_ROUSE_STATE")
					require.NoError(t, err)
					require.NoError(t, stream.Purge(t.Context()))
				}
				now.Workload, now.Phase, now.Failures = "wiki", workload.Ready, i
				if _, err = p.scaler.PutState(t.Context(), now); err == nil {
					break
				}
				require.True(t, time.Now().Before(end), err)
			}
			eventually(t, patience, func() bool { return p.view.of("wiki").Failures == i }, "the state arrives")
		},
		"workload": func(i int) {
			ws := named("shop", "wiki")
			ws[1].Port = i
			require.NoError(t, p.scaler.ReplaceWorkloads(t.Context(), "n", ws))
			await(t, p.lists, func(ws []workload.Workload) bool {
				require.Subset(t, names(ws), []string{"n/shop"}, "the others stay")
				return len(ws) == 2 && ws[1].Port == i
			})
		},
		"problems": func(i int) {
			require.NoError(t, p.scaler.ReplaceProblems(t.Context(), "n", []workload.Problem{{Place: fmt.Sprint(i)}}))
			await(t, p.problems, func(ps []workload.Problem) bool { return len(ps) == 1 && ps[0].Place == fmt.Sprint(i) })
		},
		"activity": func(i int) {
			require.NoError(t, p.gateway.PublishActivity(workload.Activity{Gateway: "gw", Loads: []workload.Load{{Workload: "wiki", InFlight: i}}}))
			await(t, p.activity, func(a workload.Activity) bool { return len(a.Loads) == 1 && a.Loads[0].InFlight == i })
		},
		"drain": func(i int) {
			got, err := p.scaler.Drain(within(t, patience), "wiki", uint64(i), []string{"gateway"})
			require.NoError(t, err)
			assert.Equal(t, "gateway", got[0].Gateway)
		},
		"event": func(i int) {
			record(t, p.scaler, "wiki", workload.EventReady, uint64(i))
			await(t, p.history, func(e workload.Event) bool { return e.Workload == "wiki" && e.Generation == uint64(i) })
			past, err := p.gateway.Events(t.Context(), events.EventFilter{Last: 1})
			require.NoError(t, err)
			assert.Equal(t, uint64(i), past[0].Generation)
		},
		"sleep": func(int) { require.NoError(t, p.gateway.AskSleep(within(t, patience), "n", "wiki")) },
		"logs": func(int) {
			got, err := p.gateway.AskLogs(within(t, patience), "n", "wiki", 1)
			require.NoError(t, err)
			assert.Equal(t, []string{"a line"}, got)
		},
	}
}

// Garbage on every subject: nobody panics, what is good before, between and
// after it arrives, and it is counted, and told a bounded number of times.
func TestGarbageOnAnySubjectHarmsNothingGood(t *testing.T) {
	for subject, tc := range map[string]struct {
		deed string
		// heard: what the server lets through is counted as malformed or of
		// another version. 0 where it is not for anybody.
		heard int
	}{
		"rouse.v1.wake.n.wiki":      {"wake", 20},
		"rouse.v1.wake.n.a=2e":      {"wake", 20},
		"rouse.v1.wake.n.==":        {"wake", 20},
		"$KV.ROUSE_STATE.wiki":      {"state", 20},
		"$KV.ROUSE_STATE.other":     {"state", 20},
		"$KV.ROUSE_STATE.a.b":       {"state", 20},
		"$KV.ROUSE_WORKLOADS.wiki":  {"workload", 20},
		"$KV.ROUSE_WORKLOADS.=zz":   {"workload", 20},
		"$KV.ROUSE_PROBLEMS.n":      {"problems", 20},
		"rouse.v1.state.wiki":       {"state", 20},
		"rouse.v1.workload.wiki":    {"workload", 20},
		"rouse.v1.problems.n":       {"problems", 20},
		"rouse.v1.recorded.wiki.x":  {"event", 20},
		"rouse.v1.heard.gw":         {"activity", 20},
		"rouse.v1.activity.gw":      {"activity", 20},
		"rouse.v1.activity.=FF":     {"activity", 20},
		"rouse.v1.drain.wiki":       {"drain", 20},
		"rouse.v1.drain.=4":         {"drain", 20},
		"rouse.v1.event.wiki.ready": {"event", 20},
		"rouse.v1.event.=.=GG":      {"event", 20},
		"rouse.v1.sleep.n.wiki":     {"sleep", 10},
		"rouse.v1.logs.n.wiki":      {"logs", 20},
		"rouse.v1.logs.n.%":         {"logs", 20},
		"rouse.v1.nothing":          {"wake", 0},
		"$JS.API.STREAM.INFO.ROUSE": {"wake", 0},
	} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			p := assemble(t)
			deed, hostile := p.deeds(t)[tc.deed], rogue(t, p.server)
			deed(1)
			for i, msg := range garbage(subject) {
				insert(t, hostile, msg)
				if i%5 == 4 {
					require.NoError(t, hostile.Flush())
					deed(2 + i)
				}
			}
			require.NoError(t, hostile.Flush())
			deed(1000)
			eventually(t, patience, func() bool {
				return counted(t, p.reg, "malformed")+counted(t, p.reg, "version") >= float64(tc.heard)
			}, "it is counted")
			for kind, told := range skips(p.log.all()) {
				assert.LessOrEqual(t, told, 20, "%s: by two processes, five malformed and five of another version each", kind)
			}
			assert.NoError(t, p.gateway.Err())
			assert.NoError(t, p.scaler.Err())
		})
	}
}

// insert publishes, and a wake until the stream has room for it: there may be
// one of that name.
func insert(t *testing.T, nc *nats.Conn, msg *nats.Msg) {
	t.Helper()
	if !strings.HasPrefix(msg.Subject, "rouse.v1.wake.") {
		require.NoError(t, nc.PublishMsg(msg))
		return
	}
	eventually(t, patience, func() bool {
		answer, err := nc.RequestMsg(msg, patience)
		return err == nil && !bytes.Contains(answer.Data, []byte("maximum messages per subject"))
	}, "there is room")
}

// skips counts the lines that tell of a skipped message, by kind.
func skips(log []string) map[string]int {
	told := map[string]int{}
	for _, line := range log {
		if _, rest, ok := strings.Cut(line, `msg="nats message skipped" kind=`); ok {
			kind, _, _ := strings.Cut(rest, " ")
			told[kind]++
		}
	}
	return told
}

// A flood of garbage neither fills the log nor stops what is good.
func TestAFloodOfGarbageIsToldOnce(t *testing.T) {
	p := assemble(t)
	hostile := rogue(t, p.server)
	deeds := p.deeds(t)
	stop := background(t, func(ctx context.Context) error {
		for i := 0; ctx.Err() == nil; i++ {
			for _, subject := range []string{"rouse.v1.activity.gw", "rouse.v1.drain.wiki", "rouse.v1.state.wiki", "rouse.v1.event.shop.ready", "rouse.v1.wake.n.wiki"} {
				if err := hostile.Publish(subject, []byte("garbage")); err != nil {
					return err
				}
			}
			if i%10 == 0 {
				time.Sleep(20 * time.Millisecond) // some two thousand in a second
			}
		}
		return nil
	})
	for i := 1; i <= 10; i++ {
		for _, name := range []string{"wake", "state", "activity", "drain", "event"} {
			deeds[name](i)
		}
	}
	eventually(t, patience, func() bool { return counted(t, p.reg, "malformed") > 1000 }, "it is a flood")
	stop()
	assert.Less(t, len(p.log.all()), 200)
}

// What a writer puts into headers does not pass for the server's: neither an
// end of the history nor another sequence, subject or kind.
func TestHeadersOfAWriterAreNotTheServers(t *testing.T) {
	p := assemble(t)
	hostile := rogue(t, p.server)
	deeds := p.deeds(t)
	for i, h := range []nats.Header{
		{"Status": {"404"}}, {"Status": {"204"}}, {"Status": {"503"}}, {"Status": {"500"}, "Description": {"x"}},
		{"Nats-Sequence": {"garbage"}}, {"Nats-Sequence": {"18446744073709551615"}}, {"Nats-Time-Stamp": {"never"}},
		{"Nats-Subject": {"rouse.v1.event.wiki.failed"}}, {"Nats-Num-Pending": {"0"}}, {"Nats-Last-Sequence": {"9999"}},
		{"KV-Operation": {"DEL"}}, {"Nats-Rollup": {"all"}}, {"Nats-Marker-Reason": {"MaxAge"}},
	} {
		for _, subject := range []string{"rouse.v1.event.wiki.released", "$KV.ROUSE_STATE.other", "$KV.ROUSE_WORKLOADS.wiki", "rouse.v1.activity.gw"} {
			require.NoError(t, hostile.PublishMsg(&nats.Msg{Subject: subject, Header: h})) // the server's own have no body
			typed := maps.Clone(h)
			typed["ce-type"] = []string{"dev.rouse.event.v1"}
			require.NoError(t, hostile.PublishMsg(&nats.Msg{Subject: subject, Header: typed, Data: []byte(`{"phase":"asleep"}`)}))
		}
		require.NoError(t, hostile.Flush())
		deeds["event"](100 + i)
		deeds["state"](100 + i)
		deeds["workload"](100 + i)
		deeds["activity"](100 + i)
	}
	past, err := p.gateway.Events(t.Context(), events.EventFilter{})
	require.NoError(t, err)
	kinds := map[workload.EventKind]int{}
	for _, e := range past {
		kinds[e.Kind]++
	}
	assert.Equal(t, map[workload.EventKind]int{"ready": 13, "released": 10}, kinds, "the history is whole, and no kind is forged")
	late := follow(t, p.scaler)
	eventually(t, patience, func() bool { return late.of("wiki").Failures == 112 }, "a late follower reads all of it")
}

// A client may send headers that are none; the server stores them.
func TestHeadersThatAreNoneAreSkipped(t *testing.T) {
	p := assemble(t)
	deeds := p.deeds(t)
	const header = "NATS/1.0\r\nno colon at all\r\n\r\n"
	conn := p.server.Raw()
	for _, subject := range []string{"$KV.ROUSE_STATE.wiki", "$KV.ROUSE_WORKLOADS.wiki", "rouse.v1.event.wiki.released", "rouse.v1.activity.gw", "rouse.v1.drain.wiki", "rouse.v1.wake.n.wiki", "rouse.v1.logs.n.wiki"} {
		_, err := fmt.Fprintf(conn, "HPUB %s %d %d\r\n%s{}\r\n", subject, len(header), len(header)+2, header)
		require.NoError(t, err)
	}
	eventually(t, patience, func() bool {
		_, err := p.scaler.State(t.Context(), "wiki")
		return errors.Is(err, events.ErrMalformed)
	}, "they are stored, and not over what comes next")
	for name, deed := range deeds {
		deed(7)
		assert.NoError(t, p.gateway.Err(), name)
		assert.NoError(t, p.scaler.Err(), name)
	}
	late := follow(t, p.scaler)
	eventually(t, patience, func() bool { return late.of("wiki").Failures == 7 }, "a late follower reads all of it")
}

// What another version wrote stays: a process that does not know its meaning
// neither reads it as something else nor writes over it.
func TestAStateOfAnotherVersionIsLeftAlone(t *testing.T) {
	p := assemble(t)
	before := mustPut(t, p.scaler, workload.State{Workload: "wiki", Phase: workload.Ready, Generation: 3})
	eventually(t, patience, func() bool { return p.view.of("wiki").Generation == 3 }, "it is known")
	msg := &nats.Msg{Subject: "$KV.ROUSE_STATE.wiki", Header: nats.Header{"ce-type": {"dev.rouse.state.v2"}}, Data: []byte(`{"phase":"ready","generation":4}`)}
	_, err := rogue(t, p.server).RequestMsg(msg, patience)
	require.NoError(t, err)

	_, err = p.scaler.State(t.Context(), "wiki")
	require.ErrorIs(t, err, events.ErrVersion)
	assert.ErrorContains(t, err, "dev.rouse.state.v2, and this process reads dev.rouse.state.v1")
	_, err = p.scaler.PutState(t.Context(), before)
	require.ErrorIs(t, err, events.ErrConflict)
	eventually(t, patience, func() bool { return counted(t, p.reg, "version") > 1 }, "it is counted")
	assert.Equal(t, uint64(3), p.view.of("wiki").Generation, "a gateway goes on with what it knew")

	stream, err := admin(t, p.server).Stream(t.Context(), "KV_ROUSE_STATE")
	require.NoError(t, err)
	stored, err := stream.GetLastMsgForSubject(t.Context(), "$KV.ROUSE_STATE.wiki")
	require.NoError(t, err)
	assert.Equal(t, string(msg.Data), string(stored.Data))
}

// A state that nobody can read is written over, by a generation above all
// that there were.
func TestAStateThatNobodyCanReadIsReplaced(t *testing.T) {
	p := assemble(t)
	for generation := range uint64(5) {
		mustPut(t, p.scaler, workload.State{Workload: "wiki", Phase: workload.Ready, Generation: generation})
	}
	_, err := rogue(t, p.server).Request("$KV.ROUSE_STATE.wiki", []byte("garbage"), patience)
	require.NoError(t, err)
	now, err := p.scaler.State(t.Context(), "wiki")
	require.ErrorIs(t, err, events.ErrMalformed)
	assert.Equal(t, workload.Asleep, now.Phase)
	assert.Greater(t, now.Generation, uint64(4))
	now.Phase, now.Generation = workload.Waking, now.Generation+1
	_, err = p.scaler.PutState(t.Context(), now)
	require.NoError(t, err)
	eventually(t, patience, func() bool { return p.view.of("wiki").Phase == workload.Waking }, "gateways go on from there")
}

// A gateway of another version is a gateway: it has to be asked before
// anything is stopped.
func TestActivityOfAnotherVersionIsASignOfLife(t *testing.T) {
	p := assemble(t)
	require.NoError(t, rogue(t, p.server).PublishMsg(&nats.Msg{
		Subject: "rouse.v1.activity.newer", Header: nats.Header{"ce-type": {"dev.rouse.activity.v2"}}, Data: []byte(`{"loads":"elsewhere"}`),
	}))
	await(t, p.activity, func(a workload.Activity) bool {
		return a.Gateway == "newer" && len(a.Loads) == 0 && !a.Leaving
	})
}

// Answers that cannot be read are no answers: the drain waits for a good one,
// and whoever asks a scaler is told at once.
func TestAnswersThatCannotBeReadAreNone(t *testing.T) {
	p := assemble(t)
	hostile := rogue(t, p.server)
	reply := func(msg *nats.Msg) {
		for _, bad := range garbage(msg.Reply) {
			_ = hostile.PublishMsg(bad)
		}
		_ = hostile.Publish(msg.Reply, []byte(`{"gateway":"late","in_flight":-1,"queued":1}`))
		_ = hostile.Flush()
	}
	for _, subject := range []string{"rouse.v1.drain.wiki", "rouse.v1.logs.other.wiki"} {
		_, err := hostile.Subscribe(subject, reply)
		require.NoError(t, err)
	}
	require.NoError(t, hostile.Flush())
	got, err := p.scaler.Drain(within(t, time.Second), "wiki", 1, []string{"gateway", "late"})
	require.ErrorContains(t, err, "no answer from late")
	require.Len(t, got, 1)
	assert.Equal(t, workload.Drained{Gateway: "gateway", Queued: 1}, got[0])
	assert.Positive(t, counted(t, p.reg, "malformed"))

	begun := time.Now()
	_, err = p.gateway.AskLogs(within(t, patience), "other", "wiki", 1)
	require.ErrorIs(t, err, events.ErrMalformed)
	assert.Less(t, time.Since(begun), prompt)
}

// A trigger that is not known is a request: the names in metrics stay few.
func TestAnUnknownTriggerIsARequest(t *testing.T) {
	p := assemble(t)
	require.NoError(t, p.gateway.PublishWake(t.Context(), "n", workload.Wake{Workload: "wiki", Trigger: "telepathy"}))
	assert.Equal(t, workload.TriggerRequest, receive(t, p.woken, patience).Trigger)
}
