package events

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// guards bring what only the connection is told to whoever it concerns: the
// server's "permissions violation", without which a forbidden write is a
// timeout, and the loss of the connection, without which whoever asked waits
// for an answer that cannot come.
type guards struct {
	inbox string // prefix of the subjects on which answers come

	mu      sync.Mutex
	active  map[*guard]struct{} // guarded by mu
	last    error               // denied since the connection stands; guarded by mu
	noInbox error               // this role may not hear its answers; guarded by mu
}

// A guard watches over one piece of work.
type guard struct {
	subjects []string
	expected bool // to be denied is no fault
	brief    bool // it does not outlive the connection
	cancel   context.CancelCauseFunc
}

var deniedSubject = regexp.MustCompile(`(Publish|Subscription) to "(\S+)"`)

// errLost is the cause of requests that were under way when the connection
// was lost: their answer cannot come, but they may have been carried out.
var errLost = fmt.Errorf("%w: the connection was lost", ErrDisconnected)

// guard returns a context that ends, with ErrDenied as its cause, when the
// server forbids one of the subjects. A subject that ends in ">" stands for
// all that begin with the rest. done has to be called.
func (d *guards) guard(ctx context.Context, subjects ...string) (_ context.Context, done func()) {
	return d.watch(ctx, &guard{subjects: subjects})
}

// brief is guard for a request, which ends with errLost when the connection
// is lost.
func (d *guards) brief(ctx context.Context, subjects ...string) (_ context.Context, done func()) {
	return d.watch(ctx, &guard{subjects: subjects, brief: true})
}

// expect is brief for a try that a role with few rights may well be denied:
// it does not count against its health.
func (d *guards) expect(ctx context.Context, subjects ...string) (_ context.Context, done func()) {
	return d.watch(ctx, &guard{subjects: subjects, brief: true, expected: true})
}

func (d *guards) watch(ctx context.Context, g *guard) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	g.cancel = cancel
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.noInbox != nil {
		cancel(d.noInbox)
	}
	if d.active == nil {
		d.active = map[*guard]struct{}{}
	}
	d.active[g] = struct{}{}
	return ctx, func() {
		d.mu.Lock()
		delete(d.active, g)
		d.mu.Unlock()
		cancel(nil)
	}
}

// lose ends the requests under way.
func (d *guards) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for g := range d.active {
		if g.brief {
			g.cancel(errLost)
		}
	}
}

// tell hands a violation to those whom it concerns, and reports whether one
// of them expected it.
func (d *guards) tell(violation error) (expected bool) {
	err := fmt.Errorf("%w: %w", ErrDenied, violation)
	d.mu.Lock()
	defer d.mu.Unlock()
	if match := deniedSubject.FindStringSubmatch(violation.Error()); match != nil {
		expected = d.tellGuards(match[1] == "Subscription", match[2], err)
		// Who may not hear advisories lacks nothing that it needs.
		expected = expected || strings.HasPrefix(match[2], advisoryRoot)
	}
	if !expected {
		d.last = err
	}
	return expected
}

func (d *guards) tellGuards(subscription bool, subject string, err error) (expected bool) {
	deaf := subscription && strings.HasPrefix(subject, d.inbox)
	if deaf {
		d.noInbox = err
	}
	for g := range d.active {
		if deaf || g.covers(subject) {
			expected = expected || g.expected && !deaf
			g.cancel(err)
		}
	}
	return expected
}

func (g *guard) covers(subject string) bool {
	for _, s := range g.subjects {
		prefix, wild := strings.CutSuffix(s, ">")
		if s == subject || wild && strings.HasPrefix(subject, prefix) {
			return true
		}
	}
	return false
}

// forget drops what an earlier connection was denied.
func (d *guards) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last, d.noInbox = nil, nil
}

func (d *guards) err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}
