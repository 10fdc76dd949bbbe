package simulation

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A trace is what happened, in the time of the simulation.
type trace struct {
	begun time.Time

	mu    sync.Mutex
	lines []line // guarded by mu
}

// A line is put together only when somebody wants to read it.
type line struct {
	at     time.Duration
	who    string
	format string
	args   []any
}

func (l line) String() string {
	return fmt.Sprintf("%15s  %-7s %s", fmt.Sprintf("%.9f", l.at.Seconds()), l.who, fmt.Sprintf(l.format, l.args...))
}

// note adds a line. What it is given must not change afterwards.
func (t *trace) note(who, format string, args ...any) {
	at := time.Since(t.begun)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{at, who, format, args})
}

// canonical gives the trace with the lines of one instant in a fixed order:
// what happens at one instant on several goroutines has no order of its own.
func (t *trace) canonical() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]string, len(t.lines))
	for i, l := range t.lines {
		out[i] = l.String()
	}
	for from := 0; from < len(t.lines); {
		to := from + 1
		for to < len(t.lines) && t.lines[to].at == t.lines[from].at {
			to++
		}
		slices.Sort(out[from:to])
		from = to
	}
	return out
}

func (t *trace) String() string { return strings.Join(t.canonical(), "\n") }
