package router

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/router/waitpage"
)

const (
	// statusPath is where a waiting page asks how its wait goes. While the
	// workload is awake the path is the workload's own.
	statusPath = "/.rouse/status"
	// pollHold is how long one such question is held that does not ask for
	// events.
	pollHold = time.Second
	// beatEvery is how often a silent stream of events has a comment, so that
	// no proxy takes it for dead.
	beatEvery = 15 * time.Second
	// pageRetry is the pace of a browser without JavaScript.
	pageRetry = 3 * time.Second
)

// statusRoute is the route of a workload that a waiting page of this host
// asks for; nil when the request is none of that.
func statusRoute(routes *table, r *http.Request) *route {
	if r.URL.Path != statusPath || r.Method != http.MethodGet {
		return nil
	}
	return routes.named(r.Host, r.URL.Query().Get("workload"))
}

// sayPage answers with the waiting page; the wake has been asked for.
func (x *exchange) sayPage() {
	x.outcome = outcomePage
	name := x.workloadName()
	progress := x.router.lobby.progress(name, time.Now())
	page := waitpage.Page{
		Title:      name + " is waking up",
		Detail:     "It was asleep. This page shows it as soon as it is there." + x.waitsFor(),
		Workload:   name,
		RequestID:  x.requestID,
		RetryAfter: pageRetry,
		StatusURL:  statusPath + "?workload=" + url.QueryEscape(name),
		Progress:   progress,
		Theme:      x.router.theme,
	}
	page.ServeHTTP(x, x.req)
}

// attend answers a waiting page that asks how its wait goes, by events or, to
// one that does not ask for these, by what is known after a while.
func (x *exchange) attend() {
	gate := x.router.activator.Gate(x.route.workload.Name)
	if gate == nil {
		x.refuse(activator.ErrRemoved)
		return
	}
	if lease, ok := gate.Pass(activator.Ask{Prefer: x.prefers()}); ok {
		x.take(lease)
		x.forward()
		return
	}
	if x.barred {
		x.refuse(activator.ErrAsleep)
		return
	}
	x.keep()
	ctx, stop := x.router.leavers.watch(x.req, x.plain != nil)
	defer stop()
	visit, ok := x.router.lobby.enter(gate, x.traceparent)
	if !ok {
		x.sayWaiting(lobbyFull, waitpage.Progress{})
		return
	}
	defer visit.leave()
	x.outcome = outcomePage
	if accepts(x.req.Header, "text/event-stream") {
		x.tellEvents(ctx, visit)
		return
	}
	x.tellOnce(ctx, visit)
}

// lobbyFull is for a page that is one too many.
var lobbyFull = answer{status: http.StatusServiceUnavailable, outcome: outcomeShed, code: "too-many-pages", waiting: true,
	title: "Too many pages wait here", detail: "This page asks again in a while.", retry: retryHeld}

// sayWaiting answers a waiting page's question with "not yet", or with the
// problem that ended its wait.
func (x *exchange) sayWaiting(a answer, progress waitpage.Progress) {
	if a.waiting {
		x.w.Header().Set(waitpage.WaitingHeader, "?1")
	}
	x.outcome = a.outcome
	x.w.Header().Set("X-Request-Id", x.requestID)
	x.writeProblem(a, &progress)
}

// sayReady answers a waiting page's question with "now".
func (x *exchange) sayReady() {
	x.outcome = outcomeHeld
	x.w.Header().Set("Cache-Control", "no-store")
	x.WriteHeader(http.StatusNoContent)
}

// notYet is what a page is told whose wait goes on.
func (x *exchange) notYet() answer {
	return answer{status: http.StatusServiceUnavailable, outcome: outcomePage, code: "waking", waiting: true,
		title: x.workloadName() + " is waking up", detail: "The page asks again."}
}

// eventOf is an answer as an event has it.
func (x *exchange) eventOf(a answer) []byte {
	body, _ := json.Marshal(x.problem(a)) // strings and ints cannot fail
	return body
}
