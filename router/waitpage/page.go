// Package waitpage is what a person sees in place of a workload that is not
// there yet, or not at all: one self-contained HTML page.
//
// It owns the page and its headers, and knows nothing of gates, workloads or
// routes: the router tells it what to say and where the page may ask whether
// it is over. The page is under 8 KB, loads nothing from anywhere, is never
// cached, runs under a content security policy that allows its own style and
// script by their hashes alone, and works without JavaScript. All data is
// escaped by html/template.
package waitpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"time"
)

// A Page is one page. The zero value is an empty page with status 503.
type Page struct {
	// Status is the status of the answer; 0 is 503.
	Status int
	// Title is the heading, Detail one or two sentences below it.
	Title, Detail string
	// Workload and RequestID are shown where not empty.
	Workload, RequestID string
	// RetryAfter becomes the header of that name, in whole seconds rounded
	// up; 0 leaves it out. On a waiting page it is also the pace of a browser
	// without JavaScript.
	RetryAfter time.Duration
	// StatusURL makes it a waiting page: the address, on the same host, that
	// answers when the wait is over. The page asks it, and reloads itself
	// once. Empty: the page is final and stays as it is.
	StatusURL string
}

// WaitingHeader is in every answer of the StatusURL that means "not yet".
// Any answer without it ends the wait.
const WaitingHeader = "Rouse-Waiting"

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var (
	pageTemplate = template.Must(template.New("page").Parse(pageHTML))

	contentPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; connect-src 'self'; img-src data:; " +
		"style-src " + hashOf(pageCSS) + "; script-src " + hashOf(pageJS)
)

// hashOf is a source expression that allows exactly this inline text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// ServeHTTP writes the page; to HEAD the headers alone.
func (p Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	// The template and its data are of fixed shape, and a buffer takes it all.
	_ = pageTemplate.Execute(&body, struct {
		Page
		CSS     template.CSS
		JS      template.JS
		Refresh int
	}{p, template.CSS(pageCSS), template.JS(pageJS), max(1, p.retrySeconds())})
	p.writeHeaders(w.Header(), body.Len())
	w.WriteHeader(p.status())
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes()) // a client that left needs no page
	}
}

func (p Page) writeHeaders(h http.Header, length int) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(length))
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept, Sec-Fetch-Mode, Sec-Purpose, Purpose, X-Requested-With")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retrySeconds()))
	}
}

func (p Page) status() int {
	if p.Status == 0 {
		return http.StatusServiceUnavailable
	}
	return p.Status
}

func (p Page) retrySeconds() int {
	return int((p.RetryAfter + time.Second - 1) / time.Second)
}
