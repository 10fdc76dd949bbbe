package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

func TestTokensOfNames(t *testing.T) {
	for name, token := range map[string]string{
		"wiki": "wiki", "my_App-2": "my_App-2", "": "=", "a.b": "a=2Eb", "=": "=3D", "*": "=2A", "a b>": "a=20b=3E", "ü": "=C3=BC",
	} {
		assert.Equal(t, token, encodeToken(name))
		back, err := decodeToken(token)
		require.NoError(t, err)
		assert.Equal(t, name, back)
	}
	for _, token := range []string{"", "a.b", "=2", "=2e", "=41", "a b", "==", "a="} {
		_, err := decodeToken(token)
		require.ErrorIs(t, err, errToken, token)
	}
}

func FuzzToken(f *testing.F) {
	for _, s := range []string{"", "wiki", "a.b", "=", "=2E", "*.>", "\x00\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token := encodeToken(s)
		if strings.ContainsAny(token, ".*> \t\r\n") || token == "" {
			t.Fatalf("%q is not one token", token)
		}
		if back, err := decodeToken(token); err != nil || back != s {
			t.Fatalf("%q became %q, %v", s, back, err)
		}
		if name, err := decodeToken(s); err == nil && encodeToken(name) != s {
			t.Fatalf("%q and %q are both %q", s, encodeToken(name), name)
		}
	})
}

// FuzzDecode feeds every decoder: none may panic, a decoded message is about
// what its subject says, and what is refused says why. A state that cannot be
// read leaves a revision to write on.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"workload":"x","phase":"ready","unknown":[{}]}`, `[]`, `null`, `"`, `{"phase":7}`,
		`{"generation":1,"wake":{"id":"w"},"at":"2026-01-02T03:04:05Z","loads":[{"workload":"a"}]}`,
	} {
		f.Add("a=2Eb", body, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")
	}
	f.Add("wiki", `{"phase":"ready","generation":18446744073709551615,"failures":-1}`, "", "dev.rouse.state.v1")
	f.Add("wiki", `{"phase":"dreaming"}`, "", "dev.rouse.state.v2")
	f.Add("gw", `{"loads":[{"in_flight":-1,"idle_ms":9223372036854775807}]}`, "", "dev.rouse.activity.v2")
	f.Fuzz(func(t *testing.T, token, body, trace, version string) {
		name, nameErr := decodeToken(token)
		about := func(got string, err error) {
			if err == nil && (nameErr != nil || got != name) {
				t.Fatalf("about %q instead of %q", got, name)
			}
			if err != nil && nameErr == nil && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) {
				t.Fatalf("refused with %v", err)
			}
		}
		data, h := []byte(body), nats.Header{headerTrace: {trace}}
		typed := func(kind string) nats.Header { // as it should be, or as the input has it
			h := nats.Header{headerTrace: {trace}, headerType: {typeOf(kind)}}
			if version != "" {
				h[headerType] = []string{version}
			}
			return h
		}
		w, err := decodeWake(subjectWake+".n."+token, h, data)
		about(w.Workload, err)
		if w.Traceparent != "" && !validTrace(w.Traceparent) {
			t.Fatalf("trace %q", w.Traceparent)
		}
		s, err := decodeState(record{subject: keyStates + "." + token, header: typed("state"), data: data, seq: 3})
		about(s.Workload, err)
		if errors.Is(err, ErrMalformed) && nameErr == nil && (s.Revision != 3 || s.Phase != workload.Asleep) {
			t.Fatalf("no way to replace it: %+v", s)
		}
		if err == nil && (s.Generation > maxGeneration || s.Failures < 0) {
			t.Fatalf("impossible: %+v", s)
		}
		spec, err := decodeWorkload(record{subject: keyWorkloads + "." + token, header: typed("workload"), data: data})
		about(spec.Name, err)
		node, _, err := decodeProblems(record{subject: keyProblems + "." + token, header: typed("problems"), data: data})
		about(node, err)
		a, err := decodeActivity(subjectActivity+"."+token, typed("activity"), data)
		about(a.Gateway, err)
		for _, l := range a.Loads {
			if err == nil && (l.InFlight < 0 || l.Queued < 0 || max(l.KeepMS, -l.KeepMS) > 100*365*24*3600*1000 || time.Duration(l.IdleMS)*time.Millisecond < -time.Millisecond) {
				t.Fatalf("impossible: %+v", l)
			}
		}
		e, err := decodeEvent(record{subject: subjectEvent + "." + token + ".ready", header: typed("event"), data: data})
		about(e.Workload, err)
		drained, _, err := decodeDrain(&nats.Msg{Subject: subjectDrain + "." + token, Header: typed("drain"), Data: data})
		about(drained, err)
		asked, ask, err := decodeAsk(subjectLogs, &nats.Msg{Subject: subjectLogs + ".n." + token, Header: typed("ask"), Data: data})
		about(asked, err)
		if err == nil && (ask.Lines < 0 || ask.within() <= 0) {
			t.Fatalf("impossible: %+v", ask)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add("7", "2026-01-02T03:04:05Z", "$KV.ROUSE_STATE.wiki", "DEL")
	f.Add("-1", "", "", "")
	f.Fuzz(func(t *testing.T, seq, at, subject, operation string) {
		r, err := newRecord(&nats.Msg{Header: nats.Header{
			"Nats-Sequence": {seq}, "Nats-Time-Stamp": {at}, "Nats-Subject": {subject}, "KV-Operation": {operation},
		}})
		if err == nil && fmt.Sprint(r.seq) != strings.TrimLeft(seq, "0") && r.seq != 0 {
			t.Fatalf("%q became %d", seq, r.seq)
		}
		_ = r.deleted()
	})
}

func TestViolationEndsWhomItConcerns(t *testing.T) {
	g := &guards{inbox: "_INBOX_x"}
	exact, done := g.guard(t.Context(), "a.b")
	defer done()
	below, done := g.guard(t.Context(), "a.>")
	defer done()
	other, done := g.guard(t.Context(), "a.bc")
	defer done()
	assert.False(t, g.tell(errors.New(`nats: permissions violation: Permissions Violation for Publish to "a.b"`)))
	require.ErrorIs(t, context.Cause(exact), ErrDenied)
	require.ErrorIs(t, context.Cause(below), ErrDenied)
	require.NoError(t, other.Err())
	require.ErrorIs(t, g.err(), ErrDenied)
	g.forget()
	require.NoError(t, g.err())
}

func TestExpectedViolationIsNoFault(t *testing.T) {
	g := &guards{inbox: "_INBOX_x"}
	ctx, done := g.expect(t.Context(), "a.b")
	defer done()
	assert.True(t, g.tell(errors.New(`Permissions Violation for Publish to "a.b"`)))
	require.ErrorIs(t, context.Cause(ctx), ErrDenied)
	require.NoError(t, g.err())
}

func TestLossEndsRequestsAndNothingElse(t *testing.T) {
	g := &guards{inbox: "_INBOX_x"}
	request, done := g.brief(t.Context(), "a")
	defer done()
	loop, done := g.guard(t.Context(), "a")
	defer done()
	g.lose()
	require.ErrorIs(t, context.Cause(request), ErrDisconnected)
	require.NoError(t, loop.Err())
	assert.False(t, neverSent(context.Cause(request)), "it may have been carried out")
}

func TestLogsKeepTheirEnd(t *testing.T) {
	assert.Nil(t, lastLines(nil, 10))
	assert.Equal(t, []string{"b", "c"}, lastLines([]string{"aaaaaaaa", "b", "c"}, 8))
	assert.Equal(t, []string{"aaaa"}, lastLines([]string{"aaaaaaaa"}, 4))
	assert.Equal(t, []string{"", ""}, lastLines([]string{"", ""}, 4))
}

func TestLargestReasonFitsItsStream(t *testing.T) {
	worst := strings.Repeat("\x01", 1<<20)
	data, err := json.Marshal(workload.State{Reason: trimReason(workload.Reason{Detail: worst, Log: []string{worst}})})
	require.NoError(t, err)
	assert.Less(t, len(data), maxValue-8<<10)
}

func BenchmarkMessage(b *testing.B) {
	bus := &Bus{source: "/rouse/gateway/g1"}
	w := workload.Wake{ID: "w", Workload: "wiki", Trigger: workload.TriggerRequest, Gateway: "g1", Generation: 3}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bus.message("rouse.v1.wake.n.wiki", envelope{kind: "wake", about: w.Workload}, w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeState(b *testing.B) {
	data, err := json.Marshal(workload.State{Workload: "wiki", Phase: workload.Ready, Replicas: []workload.Replica{{ID: "a", Address: "10.0.0.2:80"}}})
	if err != nil {
		b.Fatal(err)
	}
	r := record{subject: keyStates + ".wiki", header: nats.Header{headerType: {typeOf("state")}}, data: data, seq: 3}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeState(r); err != nil {
			b.Fatal(err)
		}
	}
}
