package events

import (
	"errors"
	"sync"
	"time"
)

const (
	// tellMost is how many troubles of one kind are logged in tellEvery; the
	// rest is counted.
	tellMost  = 5
	tellEvery = 10 * time.Second
	// tellWidth bounds what a log line repeats of a message, in bytes.
	tellWidth = 300
)

// skip tells of a message that is left out. All of them are counted, and so
// many logged that a flood of them does not flood the log.
func (b *Bus) skip(kind, subject string, err error) {
	why := "malformed"
	if errors.Is(err, ErrVersion) {
		why = "version"
	}
	b.metrics.errors.WithLabelValues(why).Inc()
	if untold, now := b.muffler.tells(kind + " " + why); now {
		b.log.Error("nats message skipped", "kind", kind, "subject", cut(subject, tellWidth),
			"error", cut(err.Error(), tellWidth), "more_before", untold)
	}
}

// warn is skip for what the connection itself is told.
func (b *Bus) warn(kind, message, subject string, err error) {
	b.metrics.errors.WithLabelValues(kind).Inc()
	if untold, now := b.muffler.tells(kind); now {
		b.log.Warn(message, "subject", cut(subject, tellWidth), "error", err, "more_before", untold)
	}
}

// A muffler keeps the same trouble from being told over and over. The zero
// value is ready; it is safe for concurrent use.
type muffler struct {
	mu     sync.Mutex
	topics map[string]*topic // kind of trouble -> what was told of it; guarded by mu
}

type topic struct {
	until  time.Time // when it may be told again, tellMost times
	told   int
	untold uint64 // since it was told last
}

// tells reports whether to tell of a topic now, and how often it was not told
// of since it was told last. Topics come from a small set.
func (m *muffler) tells(name string) (untold uint64, now bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.topics[name]
	if t == nil {
		if m.topics == nil {
			m.topics = map[string]*topic{}
		}
		t = &topic{}
		m.topics[name] = t
	}
	if at := time.Now(); at.After(t.until) {
		t.until, t.told = at.Add(tellEvery), 0
	}
	if t.told == tellMost {
		t.untold++
		return 0, false
	}
	t.told++
	untold, t.untold = t.untold, 0
	return untold, true
}
