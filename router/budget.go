package router

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/rouse-dev/rouse/workload"
)

// maxBudgets bounds the clients that are remembered; of more, the ones that
// were not seen for longest begin anew.
const maxBudgets = 1 << 16

// budgets bound the cold starts that each client may cause. The zero value
// bounds nothing. It is safe for concurrent use.
type budgets struct {
	perMinute int // 0: no bound

	mu sync.Mutex
	// Clients move from the old map to the young one as they are seen; when
	// the young one is full it becomes the old one. Guarded by mu.
	young, old map[netip.Addr]*rate.Limiter
}

// take takes one cold start out of a client's budget, or gives the time until
// it may cause the next. An address that is not known is a client too.
func (b *budgets) take(client netip.Addr, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.of(household(client)).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// of gives the limiter of a client. Under the lock.
func (b *budgets) of(client netip.Addr) *rate.Limiter {
	if l := b.young[client]; l != nil {
		return l
	}
	l := b.old[client]
	if l == nil {
		l = rate.NewLimiter(rate.Every(time.Minute/time.Duration(b.perMinute)), b.perMinute)
	}
	if len(b.young) >= maxBudgets/2 {
		b.old, b.young = b.young, nil
	}
	if b.young == nil {
		b.young = map[netip.Addr]*rate.Limiter{}
	}
	b.young[client] = l
	return l
}

// household is whom a budget belongs to: over IPv6 one client has a whole
// network of addresses.
func household(client netip.Addr) netip.Addr {
	if client.Is6() {
		return netip.PrefixFrom(client, 64).Masked().Addr()
	}
	return client
}

// affordable reports whether the request may cause a cold start, if it would;
// false: it has been answered. To join one that is under way costs nothing.
func (x *exchange) affordable() bool {
	b := &x.router.budgets
	if b.perMinute == 0 || x.quiet || x.barred {
		return true
	}
	gate := x.router.activator.Gate(x.route.workload.Name)
	if gate == nil {
		return true
	}
	if p := gate.State().Phase; p != workload.Asleep && p != workload.Failed {
		return true
	}
	wait := b.take(x.router.policy.clientAddr(x.peer, x.req), time.Now())
	if wait == 0 {
		return true
	}
	x.say(answer{status: http.StatusTooManyRequests, outcome: outcomeShed, code: "client-limited", retry: wait,
		title: x.route.workload.Name + " is asleep", detail: "This client has woken as many workloads as it may in a while."})
	return false
}
