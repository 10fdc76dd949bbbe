package api_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/workload"
)

// turns gives events, each so many minutes after noon.
func turns(kinds map[int]workload.EventKind) []workload.Event {
	var events []workload.Event
	for minute, kind := range kinds {
		events = append(events, workload.Event{Workload: "wiki", Kind: kind, At: noon.Add(time.Duration(minute) * time.Minute)})
	}
	rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	return events
}

func TestDayIsDrawnFromTheTurnsInWhateverOrder(t *testing.T) {
	const ready, slept, failed, adopted = workload.EventReady, workload.EventSlept, workload.EventFailed, workload.EventAdopted
	day := 24 * 60
	for name, c := range map[string]struct {
		turns  map[int]workload.EventKind
		awake  bool
		parts  map[int]int // part -> percent; the others are 0
		asleep time.Duration
		cold   int
		failed []int
	}{
		"nothing known, asleep":   {nil, false, nil, 24 * time.Hour, 0, nil},
		"half a part":             {map[int]workload.EventKind{30: ready, 38: slept}, false, map[int]int{2: 53}, 24*time.Hour - 8*time.Minute, 1, nil},
		"over parts":              {map[int]workload.EventKind{10: ready, 40: slept}, false, map[int]int{0: 33, 1: 100, 2: 67}, 24*time.Hour - 30*time.Minute, 1, nil},
		"awake still":             {map[int]workload.EventKind{day - 20: ready}, true, map[int]int{94: 33, 95: 100}, 24*time.Hour - 20*time.Minute, 1, nil},
		"awake before":            {map[int]workload.EventKind{15: slept}, false, map[int]int{0: 100}, 24*time.Hour - 15*time.Minute, 0, nil},
		"woken the day before":    {map[int]workload.EventKind{-60: ready, 15: slept}, false, map[int]int{0: 100}, 24*time.Hour - 15*time.Minute, 0, nil},
		"failed":                  {map[int]workload.EventKind{31: failed, 33: failed, 100: failed}, false, map[int]int{}, 24 * time.Hour, 0, []int{2, 6}},
		"adopted":                 {map[int]workload.EventKind{0: adopted, 15: slept}, false, map[int]int{0: 100}, 24*time.Hour - 15*time.Minute, 0, nil},
		"of a clock that is fast": {map[int]workload.EventKind{day + 5: ready}, false, nil, 24 * time.Hour, 0, nil},
	} {
		h := api.NewHistory(0, 0)
		for range 2 { // they may come twice
			for _, e := range turns(c.turns) {
				h.Add(e)
			}
		}
		s := h.Day(noon.Add(24*time.Hour), map[string]bool{"wiki": c.awake})["wiki"]
		require.Len(t, s.Awake, 96, name)
		for i, percent := range s.Awake {
			assert.Equal(t, c.parts[i], percent, "%s: part %d", name, i)
		}
		assert.InDelta(t, c.asleep.Seconds(), s.AsleepSeconds, 1, name)
		assert.Equal(t, c.cold, s.ColdStarts, name)
		assert.Equal(t, c.failed, s.Failed, name)
	}
}

func TestDayTellsWhatMemoryWasFree(t *testing.T) {
	h := api.NewHistory(0, 0)
	add := func(hour int, kind workload.EventKind, gib int64) {
		h.Add(workload.Event{Workload: "wiki", Kind: kind, At: noon.Add(time.Duration(hour) * time.Hour), FreedBytes: gib << 30})
	}
	add(-2, workload.EventSlept, 3) // the day before: three GiB for the first hour of this one
	add(1, workload.EventReady, 0)
	add(2, workload.EventSlept, 2) // and two for eight
	add(10, workload.EventReady, 0)
	add(20, workload.EventSlept, 0) // nobody knows of these four
	s := h.Day(noon.Add(24*time.Hour), map[string]bool{"wiki": false})["wiki"]
	assert.InDelta(t, (3*1+2*8)*3600, s.FreedGiBSeconds, 1)
	assert.InDelta(t, 13*3600, s.AsleepSeconds, 1)
}

func TestDayOfABusyWorkloadIsBounded(t *testing.T) {
	h := api.NewHistory(0, 0)
	for i := range 5000 {
		kind := workload.EventReady
		if i%2 == 1 {
			kind = workload.EventSlept
		}
		h.Add(workload.Event{Workload: "wiki", Kind: kind, At: noon.Add(time.Duration(i) * time.Second)})
	}
	s := h.Day(noon.Add(5000*time.Second), map[string]bool{"wiki": false})["wiki"]
	assert.Equal(t, 500, s.ColdStarts, "half of the turns that are kept")
}

func TestDaysHasEveryWorkload(t *testing.T) {
	day := decode[api.Day](t, get(newFake(), "/api/v1/days").Body)
	assert.EqualValues(t, 900, day.BucketSeconds)
	require.Len(t, day.Workloads, 2)
	assert.Equal(t, 100, day.Workloads["wiki"].Awake[0], "awake, and nothing known of before")
	assert.Equal(t, 0, day.Workloads["blog"].Awake[95])
	f := newFake()
	f.err = api.ErrUnavailable
	assert.Equal(t, http.StatusServiceUnavailable, get(f, "/api/v1/days").Code)
}
