package sablier

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rouse-dev/rouse/activator"
)

// typePrefix starts the type of every problem.
const typePrefix = "urn:rouse:problem:sablier-"

// A problem is the body of every error (RFC 9457), with the members that
// Sablier adds.
type problem struct {
	id    string
	retry time.Duration // of Retry-After; 0: none

	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`

	Instances       []instanceInfo `json:"instances,omitempty"`
	RequestGroup    string         `json:"requestGroup,omitempty"`
	AvailableGroups []string       `json:"availableGroups,omitempty"`
	RequestTheme    string         `json:"requestTheme,omitempty"`
	AvailableTheme  []string       `json:"availableTheme,omitempty"`
}

// longest is how much of a caller's words an answer repeats.
const longest = 200

func quoted(s string) string {
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return strconv.Quote(s)
}

// fail answers with a problem, and without the status header: plugins take
// that for "no answer".
func fail(w http.ResponseWriter, r *http.Request, p problem) {
	p.Type = typePrefix + p.id
	if p.Instance = r.URL.RequestURI(); len(p.Instance) > longest {
		p.Instance = p.Instance[:longest]
	}
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((p.retry+time.Second-1)/time.Second)))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	writeJSON(w, p.Status, p)
}

func badRequest(err error) *problem {
	return &problem{Status: http.StatusBadRequest, id: "validation-error", Title: "Validation Failed", Detail: err.Error()}
}

// retrySoon is for what moves all the time.
const retrySoon = 2 * time.Second

// problemOf says why a member did not become ready.
func problemOf(m *member, err error) *problem {
	var failed *activator.FailedError
	var limited *activator.LimitedError
	switch {
	case errors.As(err, &failed):
		p := &problem{Status: http.StatusBadGateway, id: "start-failed", Title: "The workload could not be started"}
		p.Detail = fmt.Sprintf("%s: %s", m.name, failed.State.Reason)
		if wait := time.Until(failed.State.RetryAt); wait > 0 {
			p.retry = wait
		}
		return p
	case errors.As(err, &limited):
		return &problem{Status: http.StatusServiceUnavailable, id: "wake-limited", Title: "Woken too often",
			Detail: m.name + " has been woken too often, and may be again in a while", retry: limited.RetryAfter}
	case errors.Is(err, activator.ErrQueueFull):
		return &problem{Status: http.StatusServiceUnavailable, id: "queue-full", Title: "Too many wait",
			Detail: "too many requests wait for " + m.name, retry: retrySoon}
	case errors.Is(err, activator.ErrCanceled):
		return &problem{Status: http.StatusServiceUnavailable, id: "request-cancelled", Title: "The caller has left", Detail: "nobody waits for the answer"}
	case errors.Is(err, activator.ErrRemoved):
		return noName(m.name)
	}
	return &problem{Status: http.StatusServiceUnavailable, id: "unavailable", Title: "Out of reach", Detail: err.Error(), retry: retrySoon}
}
