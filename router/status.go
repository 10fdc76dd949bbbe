package router

import (
	"net/http"
	"net/url"
	"time"

	"github.com/rouse-dev/rouse/router/waitpage"
)

const (
	// statusPath is where a waiting page asks whether its wait is over. While
	// the workload is awake the path is the workload's own.
	statusPath = "/.rouse/status"
	// statusHold is how long one such question is held. It is a waiter like
	// any other, so that the wake is repeated while a page is open, and the
	// page hears of the end at once.
	statusHold = 20 * time.Second
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
	page := waitpage.Page{
		Title:      name + " is waking up",
		Detail:     "It was asleep. This page shows it as soon as it is there." + x.waitsFor(),
		Workload:   name,
		RequestID:  x.requestID,
		RetryAfter: pageRetry,
		StatusURL:  statusPath + "?workload=" + url.QueryEscape(name),
	}
	page.ServeHTTP(x, x.req)
}

// sayWaiting answers a waiting page's question with "not yet", or with the
// problem that ended its wait.
func (x *exchange) sayWaiting(a answer) {
	if a.waiting {
		x.w.Header().Set(waitpage.WaitingHeader, "?1")
	}
	if a.outcome == outcomeTimeout {
		a.retry = time.Second // it has waited here, and need not wait there
	}
	x.say(a)
}

// sayReady answers a waiting page's question with "now".
func (x *exchange) sayReady() {
	x.outcome = outcomeHeld
	x.w.Header().Set("Cache-Control", "no-store")
	x.WriteHeader(http.StatusNoContent)
}
