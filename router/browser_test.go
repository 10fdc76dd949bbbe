package router_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/browsertest"
	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/workload"
)

// forBrowser is the wiki at the address itself, which a browser takes for a
// safe place, with a page at once.
func forBrowser(change ...func(*workload.Workload)) workload.Workload {
	w := wiki(change...)
	w.Hosts, w.PageAfter = []string{"127.0.0.1"}, 10*time.Millisecond
	return w
}

// An app is the workload behind, and how often each path was asked for.
type app struct {
	mu   sync.Mutex
	asks map[string]int
	at   time.Time // of the last ask for "/"
}

func newApp() *app { return &app{asks: map[string]int{}} }

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asks[r.Method+" "+r.URL.Path]++
	if r.URL.Path == "/" {
		a.at = time.Now()
	}
	a.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, "<!DOCTYPE html><title>wiki</title><h1 id=app>The wiki</h1>")
}

func (a *app) count(ask string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asks[ask]
}

const (
	shown = `!!document.body && !!document.body.dataset.status`
	there = `!!document.getElementById("app")`
)

func TestBrowserGoesFromThePageToTheAppWithOneReload(t *testing.T) {
	tab := browsertest.Open(t, nil)
	var took []time.Duration
	for range 7 {
		app := newApp()
		rig := newRig(t, rigConfig{}, forBrowser())
		address := upstream(t, app.ServeHTTP)
		tab.Visit("http://" + rig.addr + "/")
		tab.Until(shown)
		rig.queued("wiki", 1)
		ready := time.Now()
		rig.ready("wiki", 1, address)
		tab.Until(there)
		app.mu.Lock()
		took = append(took, app.at.Sub(ready))
		app.mu.Unlock()
		time.Sleep(50 * time.Millisecond) // for a reload too many
		assert.Equal(t, 1, app.count("GET /"))
		complaints, _ := tab.Heard()
		assert.Empty(t, slices.DeleteFunc(complaints, func(s string) bool { return strings.Contains(s, "503") }))
	}
	slices.Sort(took)
	t.Logf("from ready to the reload's request: median %v, most %v of %d", took[len(took)/2], took[len(took)-1], len(took))
}

func TestBrowserWithoutScriptsLooksAgain(t *testing.T) {
	tab := browsertest.Open(t, nil)
	app := newApp()
	rig := newRig(t, rigConfig{}, forBrowser())
	tab.NoScripts(true)
	tab.Visit("http://" + rig.addr + "/")
	rig.ready("wiki", 1, upstream(t, app.ServeHTTP))
	require.Eventually(t, func() bool { return app.count("GET /") == 1 }, patience, 10*time.Millisecond)
}

func TestBrowserShowsWhyItFailedAndThenAsksNoMore(t *testing.T) {
	tab := browsertest.Open(t, nil)
	rig := newRig(t, rigConfig{}, forBrowser())
	tab.Visit("http://" + rig.addr + "/")
	tab.Until(shown)
	rig.queued("wiki", 1)
	failing(rig, workload.Reason{Code: workload.ReasonExited, ExitCode: 3, Detail: "no <b>config</b>"}, time.Minute)(workload.Wake{Workload: "wiki"})
	tab.Until(`document.getElementById("title").textContent === "wiki could not be started"`)
	assert.Contains(t, browsertest.Eval[string](tab, `document.getElementById("detail").textContent`), "no <b>config</b>")
	assert.NotEmpty(t, browsertest.Eval[string](tab, `document.getElementById("request").textContent`))
	assert.Equal(t, "Try again", browsertest.Eval[string](tab, `document.activeElement.textContent`))
	assert.False(t, browsertest.Eval[bool](tab, `document.getElementById("wait").checkVisibility()`))
	tab.Heard()
	time.Sleep(1500 * time.Millisecond) // more than a poll takes
	_, requests := tab.Heard()
	assert.Empty(t, requests)

	app := newApp()
	rig.ready("wiki", 2, upstream(t, app.ServeHTTP))
	tab.Do(chromedp.KeyEvent("\r"))
	tab.Until(there)
}

// between is a proxy in front of the rig that a test may spoil.
func between(t *testing.T, rig *rig, spoil func(*http.Response) error) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: rig.addr})
	proxy.ModifyResponse = spoil
	proxy.FlushInterval = -1
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

func TestBrowserBehindAProxyThatKeepsEventsBackPolls(t *testing.T) {
	tab := browsertest.Open(t, nil)
	app := newApp()
	rig := newRig(t, rigConfig{}, forBrowser())
	front := between(t, rig, func(res *http.Response) error {
		if res.Header.Get("Content-Type") != "text/event-stream" {
			return nil
		}
		all, err := io.ReadAll(res.Body)
		res.Body = io.NopCloser(bytes.NewReader(all))
		return err
	})
	tab.Visit(front + "/")
	tab.Until(shown)
	tab.Until(`performance.getEntriesByType("resource").filter(e => e.initiatorType === "fetch").length > 1`)
	rig.ready("wiki", 1, upstream(t, app.ServeHTTP))
	tab.Until(there)
	assert.Equal(t, 1, app.count("GET /"))
}

func TestBrowserStopsReloadingWhenThePageComesBackAgainAndAgain(t *testing.T) {
	tab := browsertest.Open(t, nil)
	app := newApp()
	rig := newRig(t, rigConfig{}, forBrowser())
	var mu sync.Mutex
	var kept []byte
	pages := 0
	front := between(t, rig, func(res *http.Response) error { // a cache that heeds nothing
		if res.Request.URL.Path != "/" {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		pages++
		if kept == nil {
			kept, _ = io.ReadAll(res.Body)
		}
		res.Body = io.NopCloser(bytes.NewReader(kept))
		res.Header.Set("Content-Length", fmt.Sprint(len(kept)))
		res.Header.Set("Content-Type", "text/html")
		res.Header.Del("Content-Security-Policy")
		res.ContentLength = int64(len(kept))
		return nil
	})
	tab.Visit(front + "/")
	tab.Until(shown)
	rig.ready("wiki", 1, upstream(t, app.ServeHTTP))
	tab.Until(`document.getElementById("detail").textContent === "" && document.getElementById("again").checkVisibility()`)
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, 4, pages, "the first, and three reloads")
}

func TestBrowserWithAServiceWorker(t *testing.T) {
	tab := browsertest.Open(t, nil)
	app := newApp()
	rig := newRig(t, rigConfig{}, forBrowser())
	address := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sw.js" {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, `addEventListener("fetch", e => e.respondWith(fetch(e.request)));
				addEventListener("activate", e => e.waitUntil(clients.claim()));`)
			return
		}
		app.ServeHTTP(w, r)
	})
	rig.ready("wiki", 1, address)
	tab.Visit("http://" + rig.addr + "/")
	browsertest.Eval[bool](tab, `navigator.serviceWorker.register("/sw.js").then(() => navigator.serviceWorker.ready).then(() => true)`)
	tab.Until(`!!navigator.serviceWorker.controller`)
	rig.observe(workload.State{Workload: "wiki", Phase: workload.Asleep, Generation: 1})
	tab.Visit("http://" + rig.addr + "/")
	tab.Until(shown)
	rig.queued("wiki", 1)
	rig.ready("wiki", 2, address)
	tab.Until(there)
	assert.Equal(t, 2, app.count("GET /"))
}

func TestBrowserInAFrameWithAPrefetchAndAForm(t *testing.T) {
	tab := browsertest.Open(t, nil)
	app := newApp()
	rig := newRig(t, rigConfig{router: router.Config{NoWake: router.NoWake{Prefetch: true, Paths: []string{"/favicon.ico"}}}}, forBrowser())
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/prefetch":
			fmt.Fprintf(w, `<link rel=prefetch href="http://%s/a" onerror="document.title='refused'">`, rig.addr)
		case "/frame":
			fmt.Fprintf(w, `<iframe src="http://%s/"></iframe>`, rig.addr)
		case "/form":
			fmt.Fprintf(w, `<form method=post action="http://%s/save"><input name=a value=1></form>`, rig.addr)
		}
	}))
	t.Cleanup(outside.Close)

	tab.Visit(outside.URL + "/prefetch")
	tab.Until(`document.title === "refused"`)
	assert.Zero(t, rig.wakeCount(), "a prefetch wakes nothing")

	tab.Visit(outside.URL + "/form")
	browsertest.Eval[bool](tab, `setTimeout(() => document.forms[0].submit(), 0) > 0`)
	rig.queued("wiki", 1)
	rig.ready("wiki", 1, upstream(t, app.ServeHTTP))
	tab.Until(there)
	assert.Equal(t, 1, app.count("POST /save"), "a form is held and sent once")

	rig.observe(workload.State{Workload: "wiki", Phase: workload.Asleep, Generation: 1})
	tab.Visit(outside.URL + "/frame")
	rig.queued("wiki", 1)
	rig.ready("wiki", 2, upstream(t, app.ServeHTTP))
	require.Eventually(t, func() bool { return app.count("GET /") == 1 }, patience, 10*time.Millisecond)
}

// pictures is where pictures of pages go; empty: nowhere.
var pictures = os.Getenv("PICTURES")

func TestWaitingPageCanBeReadByEverybody(t *testing.T) {
	tab := browsertest.Open(t, nil)
	j := &journal{usual: 4 * time.Second}
	rig := newRig(t, rigConfig{router: router.Config{Journal: j}}, forBrowser())
	long := forBrowser(func(w *workload.Workload) {
		w.Path, w.Name = "/long", strings.Repeat("Übergrößenträger-", 40)+"<i>x</i>"
	})
	rig.act.Update([]workload.Workload{forBrowser(), long})
	require.Empty(t, rig.router.Update([]workload.Workload{forBrowser(), long}))
	j.write(func(w *workload.Wake) {
		w.RequestedAt = time.Now().Add(-1200 * time.Millisecond)
		w.ReceivedAt = w.RequestedAt.Add(3 * time.Millisecond)
		w.StartedAt = w.RequestedAt.Add(312 * time.Millisecond)
	})
	see := func(name string) {
		t.Helper()
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390, 320} {
				where := fmt.Sprintf("%s-%s-%d", name, scheme, width)
				tab.Screen(scheme, width, 640)
				look := tab.Look()
				assert.LessOrEqual(t, look.Overflow, 0.0, where)
				assert.Empty(t, look.Unreadable, where)
				assert.Greater(t, look.Texts, 3, where)
				if pictures != "" && width != 320 && name != "long" {
					require.NoError(t, os.WriteFile(filepath.Join(pictures, where+".png"), tab.Picture(), 0o644))
				}
			}
		}
	}
	controls := func() (found []string) {
		for _, n := range tab.Tree() {
			if browsertest.Controls[n.Role] {
				assert.NotEmpty(t, n.Name, n.Role)
				found = append(found, n.Role+": "+n.Name)
			}
		}
		return found
	}

	tab.Visit("http://" + rig.addr + "/long/")
	tab.Until(shown)
	see("long")
	tab.Visit("http://" + rig.addr + "/")
	tab.Until(`document.getElementById("state").textContent === "Waiting for its first answer."`)
	see("waiting")
	assert.Equal(t, []string{"progressbar: Progress of waking up"}, controls())
	assert.True(t, slices.ContainsFunc(tab.Tree(), func(n browsertest.Node) bool { return n.Role == "status" && n.Live == "polite" }))

	failing(rig, workload.Reason{Code: workload.ReasonExited, ExitCode: 1, Detail: "bind: address already in use"}, time.Minute)(workload.Wake{Workload: "wiki"})
	tab.Until(`document.getElementById("again").checkVisibility()`)
	see("failed")
	assert.Equal(t, []string{"link: Try again"}, controls())
	assert.True(t, slices.ContainsFunc(tab.Tree(), func(n browsertest.Node) bool { return n.Role == "alert" && n.Live == "assertive" }))
}
