package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/router/waitpage"
	"github.com/rouse-dev/rouse/workload"
)

// statusClientGone is what is logged for a client that left before its
// answer began; the name is nginx's.
const statusClientGone = 499

// How long a client should wait before it tries again.
const (
	retrySoon = 2 * time.Second  // the queue moves all the time
	retryHeld = 5 * time.Second  // it has just waited its full time
	retryCalm = 30 * time.Second // nothing will change on its own
)

// An answer is what Rouse says itself, in place of the workload.
type answer struct {
	status  int
	outcome outcome
	code    string // the end of the problem's type; stable
	title   string
	detail  string
	retry   time.Duration // 0: no Retry-After
	waiting bool          // the wait goes on: a waiting page stays
	reason  workload.Reason
}

// answerTo is the answer to a request that got no lease, or whose forwarding
// ended with err before anything was answered.
func (x *exchange) answerTo(err error) answer {
	name := x.route.workload.Name
	var failed *activator.FailedError
	var limited *activator.LimitedError
	switch {
	case x.cutOff() || errors.Is(err, activator.ErrShutdown):
		return answer{status: http.StatusServiceUnavailable, outcome: outcomeError, code: "shutdown", waiting: true,
			title: "The gateway is going down", detail: "Try again: another, or its successor, will answer.", retry: retrySoon}
	case errors.As(err, &failed):
		return answerToFailed(name, failed.State)
	case errors.Is(err, activator.ErrHoldTimeout):
		return answer{status: http.StatusServiceUnavailable, outcome: outcomeTimeout, code: "hold-timeout", waiting: true,
			title: name + " is not awake yet", detail: "The request has waited as long as it may; the wake goes on." + x.waitsFor(), retry: retryHeld}
	case errors.Is(err, activator.ErrQueueFull):
		return answer{status: http.StatusServiceUnavailable, outcome: outcomeShed, code: "queue-full", waiting: true,
			title: "Too many requests wait for " + name, detail: "It is waking up, and no more requests can be held until it is there.", retry: retrySoon}
	case errors.As(err, &limited):
		return answer{status: http.StatusServiceUnavailable, outcome: outcomeShed, code: "wake-limited", waiting: true,
			title: name + " has been woken too often", detail: "It is asleep, and may be woken again in a while.", retry: limited.RetryAfter}
	case errors.Is(err, activator.ErrAsleep):
		return x.answerToAsleep(name)
	case errors.Is(err, activator.ErrRemoved):
		return answer{status: http.StatusNotFound, outcome: outcomeError, code: "removed",
			title: name + " is gone", detail: "The workload was removed while the request waited for it."}
	}
	return answer{status: http.StatusBadGateway, outcome: outcomeError, code: "bad-gateway",
		title: name + " did not answer", detail: "The workload ended the connection before it answered."}
}

// waitsFor is a sentence about what the wake waits for, if that is known.
func (x *exchange) waitsFor() string {
	gate := x.router.activator.Gate(x.route.workload.Name)
	if gate == nil {
		return ""
	}
	if s := gate.State(); s.Phase == workload.Waking && s.Reason.Code == workload.ReasonConflict {
		return " At the moment " + s.Reason.Detail + "."
	}
	return ""
}

// answerToFailed tells why a start came to nothing, without the workload's
// own log: that is not the client's to read.
func answerToFailed(name string, s workload.State) answer {
	a := answer{status: http.StatusBadGateway, outcome: outcomeError, code: "start-failed",
		title: name + " could not be started", reason: s.Reason}
	if s.Reason.Code == workload.ReasonTimeout {
		a.status, a.outcome, a.code = http.StatusGatewayTimeout, outcomeTimeout, "wake-timeout"
		a.title = name + " did not become ready in time"
	}
	if s.Reason.Code == workload.ReasonConflict {
		a.status, a.outcome, a.code = http.StatusGatewayTimeout, outcomeTimeout, "conflict"
		a.title = name + " had to wait for too long"
	}
	a.detail = s.Reason.String()
	if wait := time.Until(s.RetryAt); wait > 0 {
		a.retry = wait
	}
	return a
}

// answerToAsleep is for a request that could be answered only by a wake it
// may not cause.
func (x *exchange) answerToAsleep(name string) answer {
	if x.barred {
		return answer{status: http.StatusForbidden, outcome: outcomeNoWake, code: "wake-not-allowed",
			title: name + " is asleep", detail: "It may not be woken from this network."}
	}
	return answer{status: x.router.policy.answer, outcome: outcomeNoWake, code: "asleep",
		title: name + " is asleep", detail: "Requests of this kind do not wake it.", retry: retryCalm}
}

// noSuchHost is the answer where no workload serves the host and path.
func noSuchHost(r *http.Request) answer {
	return answer{status: http.StatusNotFound, outcome: outcomeError, code: "no-such-host",
		title: "Nothing is served here", detail: fmt.Sprintf("No workload serves host %q with this path.", r.Host)}
}

var noTunnels = answer{status: http.StatusMethodNotAllowed, outcome: outcomeError, code: "no-tunnels",
	title: "CONNECT is not supported", detail: "This is a gateway to workloads, not a forward proxy."}

var badBody = answer{status: http.StatusBadRequest, outcome: outcomeError, code: "bad-body",
	title: "The body of the request is malformed", detail: "Its chunks do not follow RFC 9112, section 7.1."}

var slowBody = answer{status: http.StatusRequestTimeout, outcome: outcomeCanceled, code: "slow-body",
	title: "The body of the request came too slowly", detail: "It was not sent as fast as limits.body_timeout asks for."}

// answerToOverrun is for a request that took longer than its workload is given.
func answerToOverrun(name string, limit error) answer {
	a := answer{status: http.StatusGatewayTimeout, outcome: outcomeTimeout, code: "request-timeout",
		title: name + " took too long", detail: "The request was not done in the time that the workload is given for it."}
	if limit == errNoHead {
		a.code, a.detail = "response-timeout", "Its answer did not begin in the time that the workload is given for it."
	}
	return a
}

// A problem is an error answer by RFC 9457.
type problem struct {
	Type      string              `json:"type"`
	Title     string              `json:"title"`
	Status    int                 `json:"status"`
	Detail    string              `json:"detail,omitempty"`
	Workload  string              `json:"workload,omitempty"`
	RequestID string              `json:"request_id"`
	Reason    workload.ReasonCode `json:"reason,omitempty"`
	ExitCode  *int                `json:"exit_code,omitempty"`
	// Progress is in the answers to waiting pages.
	Progress *waitpage.Progress `json:"progress,omitempty"`
}

// say writes an answer of Rouse's own: a page to a navigation, a problem to
// all others.
func (x *exchange) say(a answer) {
	x.outcome = a.outcome
	x.w.Header().Set("X-Request-Id", x.requestID)
	if x.kind == kindNavigation {
		x.page(a).ServeHTTP(x, x.req)
		return
	}
	x.writeProblem(a, nil)
}

func (x *exchange) page(a answer) waitpage.Page {
	return waitpage.Page{Status: a.status, Title: a.title, Detail: a.detail, RetryAfter: a.retry,
		Workload: x.workloadName(), RequestID: x.requestID, Theme: x.router.theme}
}

func (x *exchange) problem(a answer) problem {
	p := problem{Type: "urn:rouse:problem:" + a.code, Title: a.title, Status: a.status, Detail: a.detail,
		Workload: x.workloadName(), RequestID: x.requestID, Reason: a.reason.Code}
	if a.reason.Code == workload.ReasonExited || a.reason.Code == workload.ReasonOOM {
		p.ExitCode = &a.reason.ExitCode
	}
	return p
}

func (x *exchange) writeProblem(a answer, progress *waitpage.Progress) {
	p := x.problem(a)
	p.Progress = progress
	body, _ := json.Marshal(p) // strings and ints cannot fail
	h := x.w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if a.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int((a.retry+time.Second-1)/time.Second)))
	}
	x.WriteHeader(a.status)
	if x.req.Method != http.MethodHead && a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		_, _ = x.Write(append(body, '\n')) // a client that left needs no problem
	}
}
