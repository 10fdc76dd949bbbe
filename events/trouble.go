package events

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// The kinds of advisories that are heard.
const (
	quorumLost    = "quorum_lost"
	leaderElected = "leader_elected"
	maxDeliveries = "max_deliveries"
	msgTerminated = "msg_terminated"
	streamDeleted = "deleted"
)

const (
	// troubleLife is how long what was told once is shown. What lasts is told
	// again by the server, well within that.
	troubleLife = 15 * time.Minute
	// troubleShown is the most that is shown, troubleKnown the most that is
	// remembered, troubleTimes of how many tellings the moment is.
	troubleShown = 20
	troubleKnown = 200
	troubleTimes = 100
	// electionsMany within troubleLife are too many: one or two are those of a
	// server that was restarted.
	electionsMany = 3
)

// trouble is what the server told that is wrong. The zero value is ready; it
// is safe for concurrent use.
type trouble struct {
	mu    sync.Mutex
	known map[troubleKey]*told // guarded by mu
}

type troubleKey struct{ kind, stream, consumer string }

// told are the last tellings of one trouble, the oldest first.
type told struct {
	times  []time.Time
	detail string // of the last one
}

// hear takes in an advisory, and reports whether it tells of a trouble that
// was not known.
func (t *trouble) hear(a advisory, now time.Time) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(now)
	key := troubleKey{a.kind, a.stream, a.consumer}
	switch a.kind {
	case msgTerminated:
		return false // by a scaler, which says why elsewhere
	case leaderElected:
		delete(t.known, troubleKey{quorumLost, a.stream, a.consumer})
	}
	k := t.known[key]
	if k == nil {
		k = t.add(key)
	}
	k.detail = a.detail
	k.times = append(k.times, now)
	k.times = k.times[max(0, len(k.times)-troubleTimes):]
	return len(k.times) == key.enough()
}

// enough is how many tellings make a trouble.
func (k troubleKey) enough() int {
	if k.kind == leaderElected {
		return electionsMany
	}
	return 1
}

// add is called with mu held. Of too many, the one that was told of longest
// ago goes.
func (t *trouble) add(key troubleKey) *told {
	if t.known == nil {
		t.known = map[troubleKey]*told{}
	}
	if len(t.known) >= troubleKnown {
		keys := t.newest()
		delete(t.known, keys[len(keys)-1])
	}
	t.known[key] = &told{}
	return t.known[key]
}

// newest gives the keys, what was told last first. It is called with mu held.
func (t *trouble) newest() []troubleKey {
	keys := make([]troubleKey, 0, len(t.known))
	for key := range t.known {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y troubleKey) int {
		return cmp.Or(t.known[y].last().Compare(t.known[x].last()), cmp.Compare(x.kind, y.kind),
			cmp.Compare(x.stream, y.stream), cmp.Compare(x.consumer, y.consumer))
	})
	return keys
}

func (k *told) last() time.Time { return k.times[len(k.times)-1] }

// forget drops tellings that are too old. It is called with mu held.
func (t *trouble) forget(now time.Time) {
	for key, k := range t.known {
		for len(k.times) > 0 && now.Sub(k.times[0]) >= troubleLife {
			k.times = k.times[1:]
		}
		if len(k.times) == 0 {
			delete(t.known, key)
		}
	}
}

// problems are what is wrong, the newest first; of very many the first, and
// how many there are besides.
func (t *trouble) problems(now time.Time) []workload.Problem {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(now)
	var all []workload.Problem
	for _, key := range t.newest() {
		if k := t.known[key]; len(k.times) >= key.enough() {
			all = append(all, key.problem(k))
		}
	}
	if more := len(all) - troubleShown; more > 0 {
		all = append(all[:troubleShown], workload.Problem{Kind: workload.ProblemNATS, Place: "nats", Message: fmt.Sprintf("and %d more", more)})
	}
	return all
}

// problem puts it into words.
func (key troubleKey) problem(k *told) workload.Problem {
	p := workload.Problem{Kind: workload.ProblemNATS, Place: "nats stream " + key.stream}
	if key.consumer != "" {
		p.Place = fmt.Sprintf("nats consumer %s of %s", key.consumer, key.stream)
	}
	when := "at " + k.last().UTC().Format(time.RFC3339)
	switch key.kind {
	case quorumLost:
		p.Message = "more than half of its servers are out of reach, said NATS " + when + ": nothing can be written"
		p.Fix = "start the servers of the cluster that are away"
	case leaderElected:
		p.Message = fmt.Sprintf("its leader changed %d times within %.0f minutes, last to %s %s", len(k.times), troubleLife.Minutes(), k.detail, when)
		p.Fix = "look which server of the cluster restarts, or what slows its disk or its way to the others"
	case maxDeliveries:
		p.Message = fmt.Sprintf("a message was delivered %s times without an answer, and is not delivered any more, last %s", k.detail, when)
		p.Fix = "set max_deliver of this consumer back to -1 (nats consumer edit): Rouse sets no bound"
	case streamDeleted:
		p.Message = "it was deleted " + when
		p.Fix = "whoever did so should not: Rouse makes it again, without what it had"
	}
	return p
}
