// Package waitpage is what a person sees in place of a workload that is not
// there yet, or not at all: one self-contained HTML page.
//
// It owns the page, its headers and the themes that may stand in for it, and
// knows nothing of gates, workloads or routes: the router tells it what to say
// and where the page may ask whether it is over. The page is under 8 KB
// compressed, loads nothing from anywhere, is never cached, runs under a
// content security policy that allows its own style and script alone, and
// works without JavaScript. All data is escaped by html/template.
package waitpage

import (
	"crypto/rand"
	_ "embed"
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
	// tells how the wait goes. The page asks it, and reloads itself once.
	// Empty: the page is final and stays as it is.
	StatusURL string
	// Progress is how far a waiting page's wait has come.
	Progress Progress
	// Theme makes the page; nil is the built-in one.
	Theme *Theme
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

// policy is the content security policy of a page whose style and script have
// this nonce. A nonce rather than hashes, so that a theme may bring its own.
func policy(nonce string) string {
	return "default-src 'none'; base-uri 'none'; form-action 'none'; connect-src 'self'; img-src data:; font-src data:; " +
		"style-src 'nonce-" + nonce + "'; script-src 'nonce-" + nonce + "'"
}

// Values are what a theme's template may use.
type Values struct {
	// Title is the heading, Detail one or two sentences below it.
	Title, Detail string
	// Workload is its name; empty on a page that belongs to none.
	Workload string
	// RequestID is what the access log has for this request.
	RequestID string
	// Status is the HTTP status, 503 while waiting.
	Status int
	// Waiting says that the page is to ask StatusURL and to reload; otherwise
	// it is final.
	Waiting bool
	// StatusURL is where the script asks; it goes into data-status of body.
	StatusURL string
	// Refresh is the pace of a browser without JavaScript, in whole seconds.
	Refresh int
	// Progress is how far the wait has come.
	Progress Progress
	// Nonce is what the content security policy asks of each style and script
	// element: <style nonce="{{.Nonce}}">.
	Nonce string
	// Style and Script are the built-in ones.
	Style  template.CSS
	Script template.JS
}

func (p Page) values(nonce string) Values {
	return Values{
		Title: p.Title, Detail: p.Detail, Workload: p.Workload, RequestID: p.RequestID,
		Status: p.status(), Waiting: p.StatusURL != "", StatusURL: p.StatusURL, Refresh: max(1, p.retrySeconds()),
		Progress: p.Progress, Nonce: nonce,
		Style: template.CSS(pageCSS), Script: template.JS(pageJS), // #nosec G203 -- our own files
	}
}

// ServeHTTP writes the page; to HEAD the headers alone.
func (p Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	nonce := rand.Text()
	body := p.Theme.render(p.values(nonce))
	p.writeHeaders(w.Header(), nonce, len(body))
	w.WriteHeader(p.status())
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that left needs no page
	}
}

func (p Page) writeHeaders(h http.Header, nonce string, length int) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(length))
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept, Sec-Fetch-Mode, Sec-Purpose, Purpose, X-Requested-With")
	h.Set("Content-Security-Policy", policy(nonce))
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
