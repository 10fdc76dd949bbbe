package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

const (
	// dayLength is how far back a Strip goes, and bucketLength how long each
	// of its parts is.
	dayLength    = 24 * time.Hour
	bucketLength = 15 * time.Minute
	buckets      = int(dayLength / bucketLength)
	// maxTurns bounds what is remembered of one workload's day; of one that
	// does more, the oldest are forgotten.
	maxTurns = 1000
)

// A turn is a moment at which a workload came up or went down.
type turn struct {
	at    time.Time
	kind  workload.EventKind
	freed int64 // bytes of memory
}

// awake reports what it is after the turn.
func (t turn) awake() bool { return t.kind == workload.EventReady || t.kind == workload.EventAdopted }

// A day is the turns of one workload, the oldest first.
type day struct{ turns []turn }

// note takes an event in for the strips.
func (h *History) note(e workload.Event) {
	switch e.Kind {
	case workload.EventReady, workload.EventAdopted, workload.EventSlept, workload.EventFailed:
	default:
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.days[e.Workload]
	if d == nil {
		d = &day{}
		h.days[e.Workload] = d
	}
	d.add(turn{e.At, e.Kind, e.FreedBytes})
}

// add keeps the order, whatever the one they come in, and each but once.
func (d *day) add(t turn) {
	i, found := slices.BinarySearchFunc(d.turns, t, func(a, b turn) int { return a.at.Compare(b.at) })
	if found && d.turns[i].kind == t.kind {
		return
	}
	d.turns = slices.Insert(d.turns, i, t)
	last := d.turns[len(d.turns)-1].at
	old := len(d.turns) - maxTurns
	for old < 0 || old < len(d.turns)-1 && last.Sub(d.turns[old].at) > 2*dayLength {
		old++
	}
	if old > 0 {
		d.turns = slices.Delete(d.turns, 0, old)
	}
}

// A Strip is one workload's last 24 hours in parts of 15 minutes, the oldest
// first, as far as the history goes; before its first turn it
// was awake if that put it to sleep.
type Strip struct {
	// Awake is how much of each part it was awake, in percent.
	Awake []int `json:"awake"`
	// Failed are the indexes of parts in which a start failed.
	Failed []int `json:"failed,omitempty"`
	// AsleepSeconds is how long it slept in all.
	AsleepSeconds float64 `json:"asleep_seconds"`
	// FreedGiBSeconds is the memory that it did not take while it slept, as far
	// as it is known what it took before.
	FreedGiBSeconds float64 `json:"freed_gib_seconds"`
	// ColdStarts is how often it came up.
	ColdStarts int `json:"cold_starts"`
}

// strip draws the 24 hours before now of a workload that is awake now, or not.
func (d *day) strip(now time.Time, awake bool) Strip {
	from := now.Add(-dayLength)
	s := Strip{Awake: make([]int, buckets)}
	up := make([]time.Duration, buckets)
	end := now
	for i := len(d.turns) - 1; i >= 0 && end.After(from); i-- {
		t := d.turns[i]
		if t.at.After(now) {
			continue
		}
		spread(up, from, t.at, end, t.awake())
		s.FreedGiBSeconds += float64(t.freed) / (1 << 30) * end.Sub(latest(t.at, from)).Seconds()
		s.mark(t, from)
		end, awake = t.at, t.kind == workload.EventSlept // of what was before, if this is the first
	}
	spread(up, from, from, end, awake)
	asleep := dayLength
	for i, d := range up {
		s.Awake[i] = int((100*d + bucketLength/2) / bucketLength)
		asleep -= d
	}
	s.AsleepSeconds = max(0, asleep).Seconds()
	slices.Sort(s.Failed)
	s.Failed = slices.Compact(s.Failed)
	return s
}

// mark counts a turn.
func (s *Strip) mark(t turn, from time.Time) {
	if t.at.Before(from) {
		return
	}
	switch t.kind {
	case workload.EventReady:
		s.ColdStarts++
	case workload.EventFailed:
		s.Failed = append(s.Failed, min(int(t.at.Sub(from)/bucketLength), buckets-1))
	}
}

// spread adds the time from begin to end to the parts that it lies in.
func spread(up []time.Duration, from, begin, end time.Time, awake bool) {
	if !awake {
		return
	}
	if begin.Before(from) {
		begin = from
	}
	for i := int(begin.Sub(from) / bucketLength); i < len(up); i++ {
		low, high := from.Add(time.Duration(i)*bucketLength), from.Add(time.Duration(i+1)*bucketLength)
		if !low.Before(end) {
			return
		}
		if low.Before(begin) {
			low = begin
		}
		if high.After(end) {
			high = end
		}
		up[i] += max(0, high.Sub(low))
	}
}

// Day draws the 24 hours before now of each workload that is given, with
// whether it is awake now.
func (h *History) Day(now time.Time, awake map[string]bool) map[string]Strip {
	h.mu.Lock()
	defer h.mu.Unlock()
	strips := make(map[string]Strip, len(awake))
	for name, up := range awake {
		d := h.days[name]
		if d == nil {
			d = &day{}
		}
		strips[name] = d.strip(now, up)
	}
	return strips
}

// A Day is the answer of GET /api/v1/days.
type Day struct {
	// From is when the strips begin.
	From          time.Time        `json:"from"`
	BucketSeconds float64          `json:"bucket_seconds"`
	Workloads     map[string]Strip `json:"workloads"`
}

// days tells of the last 24 hours of all workloads.
func (s *server) days(w http.ResponseWriter, r *http.Request) error {
	list, err := s.list(r)
	if err != nil {
		return err
	}
	awake := make(map[string]bool, len(list.Workloads))
	for i := range list.Workloads {
		phase := list.Workloads[i].Phase
		awake[list.Workloads[i].Name] = phase == workload.Ready || phase == workload.Draining
	}
	now := time.Now()
	return reply(w, http.StatusOK, Day{From: now.Add(-dayLength), BucketSeconds: bucketLength.Seconds(), Workloads: s.backend.Day(now, awake)})
}
