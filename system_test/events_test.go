package system_test

import (
	"maps"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

// An eventLog counts what the engine tells of while it happens: what it
// remembers for those who ask later is no more than 256 events.
type eventLog struct {
	mu   sync.Mutex
	seen map[string]map[string]int // action -> container -> how often; guarded by mu
}

// watchEvents listens for events of some containers until the test ends.
func watchEvents(t *testing.T, of filters.KeyValuePair) *eventLog {
	t.Helper()
	l := &eventLog{seen: map[string]map[string]int{}}
	messages, errs := dockertest.Client(t).Events(t.Context(), events.ListOptions{
		Filters: filters.NewArgs(filters.Arg("type", "container"), of),
	})
	go func() {
		for {
			select {
			case m := <-messages:
				l.add(string(m.Action), m.Actor.ID)
			case <-errs:
				return
			}
		}
	}()
	return l
}

func (l *eventLog) add(action, container string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[action] == nil {
		l.seen[action] = map[string]int{}
	}
	l.seen[action][container]++
}

// each gives how often the action was seen of each container.
func (l *eventLog) each(action string) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.seen[action])
}

// count is how often the action was seen.
func (l *eventLog) count(action string) int {
	sum := 0
	for _, n := range l.each(action) {
		sum += n
	}
	return sum
}
