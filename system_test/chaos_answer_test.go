package system_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// An echo is an answer with its body read.
type echo struct {
	status int
	header http.Header
	body   []byte
}

// judge tells an answer of the workload to this very request from a refusal
// with a reason, and from all else.
func judge(e *echo, s sent) (outcome, string) {
	switch {
	case e.status == http.StatusOK && s.method == http.MethodPost && string(e.body) == "body of "+s.id:
		return wasAnswered, ""
	case e.status == http.StatusOK && s.method == http.MethodGet && reported(e.body) == s.id:
		return wasAnswered, ""
	case e.status >= 400 && e.header.Get("Content-Type") == "application/problem+json":
		return complaint(e, s)
	}
	return wasLost, fmt.Sprintf("status %d, %s: %.200q", e.status, e.header.Get("Content-Type"), e.body)
}

// reported is the ID that the workload says it was asked with.
func reported(body []byte) string {
	var report mimic.Report
	_ = json.Unmarshal(body, &report) // then there is no ID
	return report.Headers.Get("X-Request-Id")
}

func complaint(e *echo, s sent) (outcome, string) {
	var p struct {
		Title, Reason, Detail string
		RequestID             string `json:"request_id"`
	}
	if err := json.Unmarshal(e.body, &p); err != nil || p.Title == "" || p.RequestID != s.id {
		return wasLost, fmt.Sprintf("status %d without a reason: %.200q", e.status, e.body)
	}
	title := strings.Replace(p.Title, s.target.workload, "workload", 1)
	return wasRefused, fmt.Sprintf("%d %s", e.status, cmp.Or(p.Reason, title))
}
