package latency_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/latency"
)

func ExampleHistogram() {
	h := latency.New()
	for ms := range 100 {
		h.Record(time.Duration(ms+1) * time.Millisecond)
	}
	fmt.Println(h.Count(), h.Quantile(0.95).Round(time.Millisecond))
	// Output: 100 95ms
}

func TestASummaryIsWithinThreeDigits(t *testing.T) {
	h := latency.New()
	assert.Zero(t, h.Summary())
	for us := range 100_000 {
		h.Record(time.Duration(us+1) * time.Microsecond)
	}
	s := h.Summary()
	assert.Equal(t, int64(100_000), s.Count)
	for want, got := range map[float64]float64{0.001: s.Min, 50: s.P50, 50.0005: s.Mean, 90: s.P90, 95: s.P95, 99: s.P99, 99.9: s.P999, 100: s.Max} {
		assert.InEpsilon(t, want, got, 0.1)
		if want > 1 {
			assert.InEpsilon(t, want, got, 0.001)
		}
	}
}

func TestWhatIsOutOfRangeIsCountedAsItsEnd(t *testing.T) {
	h := latency.New()
	h.Record(-time.Second)
	h.Record(2 * time.Hour)
	assert.Equal(t, int64(2), h.Count())
	assert.InEpsilon(t, float64(time.Hour), float64(h.Quantile(1)), 0.001)
	assert.Equal(t, int64(1), h.Summary().Overflow)
	h.Reset()
	assert.Zero(t, h.Count())
	assert.Zero(t, h.Overflow)
}

func TestALogMergesToTheWhole(t *testing.T) {
	var text bytes.Buffer
	start := time.Unix(1_800_000_000, 0)
	log, err := latency.NewLog(&text, start, "times in nanoseconds")
	require.NoError(t, err)
	whole := latency.New()
	for second := range 3 {
		interval, other := latency.New(), latency.New()
		for k := range 100 {
			interval.Record(time.Duration(second*100+k) * time.Millisecond)
		}
		other.Record(time.Second)
		whole.Merge(interval)
		from := start.Add(time.Duration(second) * time.Second)
		require.NoError(t, log.Write("intended", from, from.Add(time.Second), interval))
		require.NoError(t, log.Write("service", from, from.Add(time.Second), other))
	}
	merged, err := latency.MergeLog(&text)
	require.NoError(t, err)
	require.Len(t, merged, 2)
	assert.Equal(t, whole.Summary(), merged["intended"].Summary())
	assert.Equal(t, int64(3), merged["service"].Count())
}

func TestADamagedLogIsAnError(t *testing.T) {
	_, err := latency.MergeLog(strings.NewReader("#[StartTime: 1 (seconds since epoch), x]\n\"StartTimestamp\"\n0.0,1.0,1.0,HISTdamaged\n"))
	assert.Error(t, err)
}

func TestTheTableIsInMilliseconds(t *testing.T) {
	h := latency.New()
	h.Record(250 * time.Millisecond)
	var text strings.Builder
	require.NoError(t, h.WriteTable(&text))
	assert.Contains(t, text.String(), "#[Max     =      250.")
}

func TestALogGivesItsIntervalsInOrder(t *testing.T) {
	var text bytes.Buffer
	start := time.UnixMilli(1_800_000_000_250)
	log, err := latency.NewLog(&text, start, "times in nanoseconds")
	require.NoError(t, err)
	for second := range 3 {
		h := latency.New()
		h.Record(time.Duration(second+1) * time.Millisecond)
		from := start.Add(time.Duration(second) * time.Second)
		require.NoError(t, log.Write("intended", from, from.Add(time.Second), h))
	}
	at := 0
	for interval, err := range latency.ReadLog(&text) {
		require.NoError(t, err)
		assert.Equal(t, "intended", interval.Tag)
		assert.WithinDuration(t, start.Add(time.Duration(at)*time.Second), interval.Start, time.Millisecond)
		assert.WithinDuration(t, interval.Start.Add(time.Second), interval.End, time.Millisecond)
		at++
		assert.InEpsilon(t, float64(at), latency.Milliseconds(interval.Quantile(1)), 0.001)
		if at == 2 {
			break
		}
	}
	assert.Equal(t, 2, at)
}

// Whatever the histogram, what it says of a quantile is within what its table
// says.
func TestATableBoundsEachQuantile(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 7, 100, 50_000} {
		h := latency.New()
		for range n {
			h.Record(time.Duration(source.ExpFloat64() * float64(time.Millisecond)))
		}
		var text bytes.Buffer
		require.NoError(t, h.WriteTable(&text))
		table, err := latency.ReadTable(&text)
		require.NoError(t, err)
		assert.Equal(t, h.Count(), table.Total)
		assert.InDelta(t, h.Summary().Mean, table.Mean, 0.001)
		for _, q := range []float64{0, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1} {
			low, high := table.Between(q)
			value := latency.Milliseconds(h.Quantile(q))
			assert.True(t, q == 0 || low <= value && value <= high, "%d, %g: %g is not in %g to %g", n, q, value, low, high)
			assert.InDelta(t, high, table.Quantile(q), 0.001)
			assert.Less(t, high-low, 1+0.5*value, "the bounds tell something")
		}
	}
	low, high := latency.Table{}.Between(0.5)
	assert.Zero(t, low+high)
}

func TestADamagedTableIsAnError(t *testing.T) {
	h := latency.New()
	h.Record(time.Millisecond)
	var text bytes.Buffer
	require.NoError(t, h.WriteTable(&text))
	for _, damaged := range []string{"", text.String()[:40], strings.Replace(text.String(), "Max     =", "Max     = x", 1), "1 2"} {
		_, err := latency.ReadTable(strings.NewReader(damaged))
		assert.Error(t, err, "%q", damaged)
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add(" Value\tPercentile\tTotalCount\t1/(1-Percentile)\n\n 0.1 0.0 1 1.00\n#[Max     = 0.1, Total count    = 1]\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := latency.ReadTable(strings.NewReader(text))
		if err == nil {
			table.Between(0.5)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	b.ReportAllocs()
	h := latency.New()
	for b.Loop() {
		h.Record(123456)
	}
}
