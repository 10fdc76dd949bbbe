package tracing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/tracing"
	"github.com/rouse-dev/rouse/workload"
)

const sent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestATraceparentIsReadAndWritten(t *testing.T) {
	c, ok := tracing.Parse(sent)
	require.True(t, ok)
	assert.Equal(t, sent, c.String())
	for flags, sampled := range map[string]bool{"00": false, "01": true, "02": false, "03": true, "0a": false, "0b": true, "fe": false, "ff": true, "08": false, "09": true} {
		c, ok := tracing.Parse(sent[:53] + flags)
		require.True(t, ok)
		assert.Equal(t, sampled, c.Sampled, flags)
	}
	for _, wrong := range []string{"", "00", sent + "x", strings.ToUpper(sent), "ff" + sent[2:]} {
		_, ok := tracing.Parse(wrong)
		assert.False(t, ok, wrong)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sent)
	f.Add("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more")
	f.Fuzz(func(t *testing.T, s string) {
		c, ok := tracing.Parse(s)
		if ok != tracing.Valid(s) {
			t.Fatalf("%q: %v", s, ok)
		}
		if again, _ := tracing.Parse(c.String()); ok && again != c {
			t.Fatalf("%q: %+v, then %+v", s, c, again)
		}
	})
}

// A tracer keeps all or nothing of what begins here.
type tracer struct {
	keep  bool
	spans []tracing.Span
}

func (r *tracer) Samples(tracing.TraceID) bool { return r.keep }
func (r *tracer) Record(s *tracing.Span)       { r.spans = append(r.spans, *s) }

func TestAGatewayAddsItsPhasesToTheColdStart(t *testing.T) {
	at := time.Unix(100, 0)
	w := workload.Wake{ID: "w", Workload: "wiki", Generation: 3, Traceparent: sent, RequestedAt: at, ReceivedAt: at.Add(1), StartAt: at.Add(2), StartedAt: at.Add(3), ReadyAt: at.Add(4)}
	scaler, gateway := &tracer{}, &tracer{}
	tracing.RecordColdStart(scaler, &w, w.ReadyAt, "")
	w.OpenedAt, w.ReleasedAt = at.Add(5), at.Add(6)
	tracing.RecordOpening(gateway, &w)
	require.Len(t, scaler.spans, 5)
	require.Len(t, gateway.spans, 2)
	assert.Equal(t, "ready", gateway.spans[0].Name)
	assert.Equal(t, "release", gateway.spans[1].Name)
	for _, s := range gateway.spans {
		assert.Equal(t, scaler.spans[0].ID, s.Parent)
		assert.Equal(t, scaler.spans[0].Trace, s.Trace)
	}

	other := w
	other.Generation++
	assert.NotEqual(t, tracing.ColdStart(scaler, &w).Span, tracing.ColdStart(scaler, &other).Span, "one ask may lead to two")

	tracing.RecordColdStart(nil, &w, w.ReadyAt, "")
	tracing.RecordOpening(nil, &w)
	w.Traceparent = ""
	none := &tracer{}
	tracing.RecordColdStart(none, &w, w.ReadyAt, "")
	tracing.RecordOpening(none, &w)
	assert.Empty(t, none.spans)
}

// A record that somebody wrote by hand may have no times at all.
func TestARecordWithoutTimesDoesNoHarm(t *testing.T) {
	kept := &tracer{keep: true}
	ended := time.Now()
	tracing.RecordColdStart(kept, &workload.Wake{}, ended, "it was cut off")
	tracing.RecordOpening(kept, &workload.Wake{})
	require.Len(t, kept.spans, 1)
	assert.Equal(t, ended, kept.spans[0].Start)
	assert.Equal(t, ended, kept.spans[0].End)
}
