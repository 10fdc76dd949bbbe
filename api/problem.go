package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/rouse-dev/rouse/workload"
)

// typePrefix starts the type of every problem; what follows is its code.
const typePrefix = "urn:rouse:problem:"

// ProblemDetails is the body of every error (RFC 9457). As an error it is one
// line, and errors.Is finds the Err… of this package that it stands for.
type ProblemDetails struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Workload is the one that it is about.
	Workload  string `json:"workload,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	// Reason says why a start failed.
	Reason workload.Reason `json:"reason,omitzero"`
	// Problems are what is wrong with the descriptions of that name.
	Problems []workload.Problem `json:"problems,omitempty"`
}

// Error is the detail, or the title where there is none.
func (p *ProblemDetails) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}

// Is makes errors.Is work for somebody who got the problem over the wire.
func (p *ProblemDetails) Is(target error) bool {
	for _, k := range kinds() {
		if k.err == target {
			return p.Type == typePrefix+k.code
		}
	}
	return false
}

// A kind is what one sentinel error looks like to a caller.
type kind struct {
	err    error
	status int
	code   string
	title  string
}

func kinds() []kind {
	return []kind{
		{ErrNoWorkload, http.StatusNotFound, "no-workload", "No such workload"},
		{ErrNoWake, http.StatusNotFound, "no-wake", "No such wake"},
		{ErrInUse, http.StatusConflict, "in-use", "The workload is in use"},
		{ErrNotReady, http.StatusGatewayTimeout, "not-ready", "The workload was not ready in time"},
		{ErrFailed, http.StatusBadGateway, "failed", "The workload failed to start"},
		{ErrUnavailable, http.StatusServiceUnavailable, "unavailable", "Out of reach"},
		{errBadRequest, http.StatusBadRequest, "bad-request", "The request makes no sense"},
		{errNoRoute, http.StatusNotFound, "no-route", "There is nothing here"},
		{errMethod, http.StatusMethodNotAllowed, "method", "The method is not allowed"},
		{errTooLarge, http.StatusRequestEntityTooLarge, "too-large", "The request is too large"},
		{errNoToken, http.StatusUnauthorized, "no-token", "A token is needed"},
		{errForeign, http.StatusForbidden, "foreign", "The request comes from another site"},
	}
}

// What is wrong with a request itself.
var (
	errBadRequest = errors.New("bad request")
	errNoRoute    = errors.New("no such path")
	errMethod     = errors.New("method not allowed")
	errTooLarge   = errors.New("request too large")
	errNoToken    = errors.New("no valid token")
	errForeign    = errors.New("refused")
)

// problemOf turns any error into what the caller gets to see.
func problemOf(err error) *ProblemDetails {
	var p *ProblemDetails
	if errors.As(err, &p) {
		return p
	}
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			return &ProblemDetails{Type: typePrefix + k.code, Title: k.title, Status: k.status, Detail: sentence(err)}
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return problemOf(fmt.Errorf("%w: %s", ErrUnavailable, err.Error())) // our end: we are going down
	}
	return &ProblemDetails{
		Type:   typePrefix + "internal",
		Title:  "Something went wrong",
		Status: http.StatusInternalServerError,
		Detail: sentence(err),
	}
}

// sentence is an error as one line.
func sentence(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// fail answers with err, also when the request's context has ended: it may be
// this server that ends. What is nobody's mistake but ours is logged.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := *problemOf(err)
	p.RequestID = w.Header().Get("X-Request-ID")
	if p.Status == http.StatusInternalServerError {
		s.cfg.Logger.ErrorContext(r.Context(), "admin request failed", attrs(r, p.RequestID, err)...)
	}
	switch p.Status {
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="rouse"`)
	}
	write(w, "application/problem+json", p.Status, &p)
}

// about says which workload err is about, and what is wrong with descriptions
// of that name: the likely cause when there is no such workload.
func (s *server) about(ctx context.Context, name string, err error) error {
	p := *problemOf(err)
	p.Workload = name
	if errors.Is(err, ErrNoWorkload) {
		p.Problems = problemsOf(s.backend.Problems(ctx), name)
		for _, wrong := range p.Problems {
			p.Detail += "; " + wrong.Error()
		}
	}
	return &p
}

func problemsOf(all []workload.Problem, name string) []workload.Problem {
	var own []workload.Problem
	for _, p := range all {
		if p.Workload == name {
			own = append(own, p)
		}
	}
	return own
}

func badRequest(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errBadRequest}, args...)...)
}

// reply answers with v as JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	write(w, "application/json", status, v)
	return nil
}

// write encodes before it answers, so that a value that does not encode is an
// error and not half an answer. A failed write means that the caller is gone.
func write(w http.ResponseWriter, contentType string, status int, v any) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		status, contentType = http.StatusInternalServerError, "text/plain; charset=utf-8"
		b.Reset()
		fmt.Fprintln(&b, "the answer cannot be written as JSON:", err)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}
