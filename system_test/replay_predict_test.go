package system_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A span is the time in which one request was under way.
type span struct{ from, to time.Time }

// A band is how far a gap may be from the idle timeout without that it could
// be told which came first, the request or the sleep.
type band struct {
	early time.Duration // the client's clock sees a gap this much too short
	late  time.Duration // a sleep begins this much after its time
}

// predict tells how many cold starts a workload has to have that sleeps when
// nothing has been under way for idle: one for the first request, and one for
// each that comes after a gap that long. Gaps within the band count in most
// alone.
func predict(requests []span, idle time.Duration, b band) (least, most int) {
	ordered := slices.Clone(requests)
	slices.SortFunc(ordered, func(x, y span) int { return x.from.Compare(y.from) })
	var busy time.Time // until when
	for i, r := range ordered {
		gap := r.from.Sub(busy)
		if i == 0 || gap > idle+b.late {
			least++
		}
		if i == 0 || gap > idle-b.early {
			most++
		}
		if r.to.After(busy) {
			busy = r.to
		}
	}
	return least, most
}

// spansOf takes a trace at its word: every answer as long as it says.
func spansOf(calls []call, takes func(call) time.Duration) []span {
	t0 := time.Unix(0, 0)
	spans := make([]span, len(calls))
	for i, c := range calls {
		spans[i] = span{t0.Add(c.at), t0.Add(c.at + takes(c))}
	}
	return spans
}

func TestThePredictorKnowsTheColdStartsOfARealTrace(t *testing.T) {
	none := func(call) time.Duration { return 0 }
	code := spansOf(llmTrace(t, "llm-code.csv"), none)
	for idle, want := range map[time.Duration]int{time.Second: 141, 5 * time.Second: 58, 10 * time.Second: 46, 30 * time.Second: 26} {
		least, most := predict(code, idle, band{})
		assert.Equal(t, want, least, "idle timeout %s", idle)
		assert.Equal(t, want, most, "idle timeout %s", idle)
	}
	least, most := predict(spansOf(llmTrace(t, "llm-conversation.csv"), none), 5*time.Second, band{})
	assert.Equal(t, []int{1, 1}, []int{least, most}, "the control never sleeps")
}

func TestThePredictorCountsWhatIsUnderWayAsUse(t *testing.T) {
	at := func(from, to int) span {
		return span{time.Unix(int64(from), 0), time.Unix(int64(to), 0)}
	}
	for name, c := range map[string]struct {
		requests    []span
		least, most int
	}{
		"none":                        {nil, 0, 0},
		"one":                         {[]span{at(0, 1)}, 1, 1},
		"a long one covers a gap":     {[]span{at(0, 100), at(1, 2), at(105, 106)}, 1, 1},
		"a gap after the long one":    {[]span{at(0, 100), at(1, 2), at(115, 116)}, 2, 2},
		"in any order":                {[]span{at(115, 116), at(0, 100), at(1, 2)}, 2, 2},
		"a little before the timeout": {[]span{at(0, 1), at(10, 11)}, 1, 2},
		"a little after":              {[]span{at(0, 1), at(13, 14)}, 1, 2},
		"within the timeout":          {[]span{at(0, 1), at(9, 11)}, 1, 1},
	} {
		least, most := predict(c.requests, 10*time.Second, band{early: 2 * time.Second, late: 3 * time.Second})
		assert.Equal(t, []int{c.least, c.most}, []int{least, most}, name)
	}
}
