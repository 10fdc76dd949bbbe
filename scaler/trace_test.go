package scaler_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/tracing"
	"github.com/rouse-dev/rouse/workload"
)

const asked = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// A tracer keeps the spans of every trace, or of those alone that came so.
type tracer struct {
	none  bool
	mu    sync.Mutex
	spans []tracing.Span // guarded by mu
}

func (r *tracer) Samples(tracing.TraceID) bool { return !r.none }

func (r *tracer) Record(s *tracing.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, *s)
}

// below lists the spans of a parent.
func (r *tracer) below(parent tracing.SpanID) (found []tracing.Span) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.Parent == parent {
			found = append(found, s)
		}
	}
	return found
}

func names(spans []tracing.Span) (names []string) {
	for _, s := range spans {
		names = append(names, s.Name)
	}
	return names
}

func traced(name string) workload.Wake {
	w := ask(name)
	w.Traceparent, w.RequestedAt = asked, time.Now()
	return w
}

func TestAColdStartIsTracedBelowTheRequestThatAsked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kept := &tracer{none: true}
		n := w.scaler(scaler.Config{Tracer: kept}, spec("wiki"))
		begun := time.Now()
		require.Equal(t, scaler.Done, n.Wake(t.Context(), traced("wiki")).Kind)
		parent, _ := tracing.Parse(asked)
		starts := kept.below(parent.Span)
		require.Len(t, starts, 1)
		start := starts[0]
		assert.Equal(t, parent.Trace, start.Trace)
		assert.Equal(t, "cold start", start.Name)
		assert.False(t, start.Failed)
		assert.WithinDuration(t, begun, start.Start, 0)
		assert.Contains(t, start.Attributes, tracing.Flag("faas.coldstart", true))
		assert.Contains(t, start.Attributes, tracing.Text("rouse.trigger", "request"))
		phases := kept.below(start.ID)
		assert.Equal(t, []string{"wake", "queue", "start", "probe"}, names(phases))
		for i, p := range phases {
			assert.Equal(t, parent.Trace, p.Trace)
			if i > 0 {
				assert.WithinDuration(t, phases[i-1].End, p.Start, 0, "one after the other")
			}
		}
		assert.Equal(t, 100*time.Millisecond, phases[2].End.Sub(phases[2].Start))
		assert.WithinDuration(t, start.End, phases[3].End, 0)
		assert.Equal(t, start.ID, tracing.ColdStart(kept, w.state("wiki").Wake).Span, "whoever has the record knows its name")
	})
}

func TestAFailedColdStartIsTracedToThePhaseInWhichItFailed(t *testing.T) {
	for name, c := range map[string]struct {
		plan plan
		want []string
	}{
		"start": {plan{startErr: errors.New("port is taken"), start: 100 * time.Millisecond}, []string{"wake", "queue", "start"}},
		"probe": {plan{exitAfter: 200 * time.Millisecond, exitCode: 3, boot: time.Hour}, []string{"wake", "queue", "start", "probe"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				kept := &tracer{}
				*w.engine.plan("wiki") = c.plan
				n := w.scaler(scaler.Config{Tracer: kept}, spec("wiki"))
				v := n.Wake(t.Context(), traced("wiki"))
				require.Equal(t, scaler.Permanent, v.Kind)
				parent, _ := tracing.Parse(asked)
				start := kept.below(parent.Span)[0]
				assert.True(t, start.Failed)
				assert.Equal(t, v.Reason, start.Reason)
				phases := kept.below(start.ID)
				require.Equal(t, c.want, names(phases))
				last := len(phases) - 1
				assert.True(t, phases[last].Failed)
				assert.WithinDuration(t, start.End, phases[last].End, 0)
				assert.False(t, slices.ContainsFunc(phases[:last], func(s tracing.Span) bool { return s.Failed }))
			})
		})
	}
}

func TestADependencyIsTracedBelowWhoNeedsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kept := &tracer{}
		app, db := spec("app"), spec("db")
		app.DependsOn = []string{"db"}
		n := w.scaler(scaler.Config{Tracer: kept}, app, db)
		require.Equal(t, scaler.Done, n.Wake(t.Context(), traced("app")).Kind)
		start := tracing.ColdStart(kept, w.state("app").Wake)
		assert.ElementsMatch(t, []string{"cold start", "wake", "queue", "start", "probe"}, names(kept.below(start.Span)))
		needed := tracing.ColdStart(kept, w.state("db").Wake)
		assert.Equal(t, start.Trace, needed.Trace)
		assert.Equal(t, []string{"queue", "start", "probe"}, names(kept.below(needed.Span))[1:])
	})
}

// Nobody asked by a request: the trace begins with the cold start.
func TestAColdStartWithoutARequestIsATraceOfItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kept := &tracer{}
		n := w.scaler(scaler.Config{Tracer: kept}, spec("wiki"))
		n.wake(t, "wiki")
		starts := kept.below(tracing.SpanID{})
		require.Equal(t, []string{"cold start"}, names(starts))
		assert.NotZero(t, starts[0].Trace)
	})
}

func TestAColdStartThatIsNotKeptIsNotTraced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kept := &tracer{none: true}
		app, db := spec("app"), spec("db")
		app.DependsOn = []string{"db"}
		n := w.scaler(scaler.Config{Tracer: kept}, spec("wiki"), app, db)
		n.wake(t, "wiki")
		left := traced("app")
		left.Traceparent = left.Traceparent[:53] + "00"
		require.Equal(t, scaler.Done, n.Wake(t.Context(), left).Kind)
		synctest.Wait()
		assert.Empty(t, kept.spans)
		assert.Equal(t, "00", w.state("db").Wake.Traceparent[53:])
	})
}
