package waitpage_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/bubble"
	"github.com/rouse-dev/rouse/router/waitpage"
	"github.com/rouse-dev/rouse/workload"
)

func serve(t *testing.T, p waitpage.Page, method string) *http.Response {
	t.Helper()
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, httptest.NewRequest(method, "/", nil))
	return rec.Result()
}

func bodyOf(t *testing.T, res *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(body)
}

var waiting = waitpage.Page{
	Title: "wiki is waking up", Detail: "It will be here in a moment.", Workload: "wiki",
	RequestID: "req-1", RetryAfter: 2500 * time.Millisecond, StatusURL: "/.rouse/status?workload=wiki",
}

func TestWaitingPageIsAnUncachedRetryable503(t *testing.T) {
	res := serve(t, waiting, http.MethodGet)
	assert.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	assert.Equal(t, "3", res.Header.Get("Retry-After"), "whole seconds, rounded up")
	assert.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	assert.Contains(t, res.Header.Get("Vary"), "Sec-Fetch-Mode")
	assert.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := zip.Write([]byte(bodyOf(t, res)))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	assert.Less(t, packed.Len(), 8<<10)
}

func TestContentPolicyAllowsItsOwnStyleAndScriptAlone(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		res := serve(t, waiting, http.MethodGet)
		body, policy := bodyOf(t, res), res.Header.Get("Content-Security-Policy")
		nonce := regexp.MustCompile(`script-src 'nonce-([A-Z2-7]{26})'`).FindStringSubmatch(policy)
		require.NotNil(t, nonce, policy)
		assert.False(t, seen[nonce[1]], "each page has one of its own")
		seen[nonce[1]] = true
		for _, tag := range []string{"style", "script"} {
			assert.Equal(t, 1, strings.Count(body, "<"+tag), tag)
			assert.Contains(t, body, "<"+tag+` nonce="`+nonce[1]+`">`)
			assert.Contains(t, policy, tag+"-src 'nonce-"+nonce[1]+"'")
		}
		assert.Contains(t, policy, "default-src 'none'")
		assert.NotContains(t, policy, "unsafe")
		assert.NotRegexp(t, `\son[a-z]+=|style=`, body, "no inline handler or style attribute")
	}
}

func TestPageLoadsNothingFromAnyHost(t *testing.T) {
	body := bodyOf(t, serve(t, waiting, http.MethodGet))
	assert.NotRegexp(t, `(?i)https?://|src=|@import|url\(`, body)
}

func TestWaitingPageWorksWithoutJavaScript(t *testing.T) {
	body := bodyOf(t, serve(t, waiting, http.MethodGet))
	assert.Regexp(t, `<noscript><meta http-equiv="refresh" content="3"></noscript>`, body)
}

func TestFinalPageNeitherAsksNorReloads(t *testing.T) {
	final := waitpage.Page{Status: http.StatusBadGateway, Title: "wiki could not start", Detail: "exited with code 3"}
	res := serve(t, final, http.MethodGet)
	body := bodyOf(t, res)
	assert.Equal(t, http.StatusBadGateway, res.StatusCode)
	assert.Empty(t, res.Header.Get("Retry-After"))
	assert.Contains(t, body, "exited with code 3")
	assert.NotContains(t, body, "<script")
	assert.NotContains(t, body, "http-equiv=\"refresh\"")
}

func TestHeadHasTheHeadersAndNoBody(t *testing.T) {
	get, head := serve(t, waiting, http.MethodGet), serve(t, waiting, http.MethodHead)
	assert.Empty(t, bodyOf(t, head))
	for _, h := range []http.Header{get.Header, head.Header} {
		assert.NotEmpty(t, h.Get("Content-Security-Policy"))
		h.Del("Content-Security-Policy") // has a nonce
	}
	assert.Equal(t, get.Header, head.Header)
	assert.Equal(t, get.StatusCode, head.StatusCode)
}

func TestDataIsEscaped(t *testing.T) {
	evil := `"><script>alert(1)</script>`
	page := waitpage.Page{Title: evil, Detail: evil, Workload: evil, RequestID: evil, StatusURL: "/.rouse/status?workload=" + evil}
	page.Progress.Steps = []waitpage.Step{{Name: workload.WakePhase(evil), Label: evil, State: waitpage.State(evil)}}
	body := bodyOf(t, serve(t, page, http.MethodGet))
	assert.NotContains(t, body, "alert(1)</script>")
	assert.Equal(t, 1, strings.Count(body, "<script"))
}

func TestStepsFollowTheRecordOfTheWake(t *testing.T) {
	at := func(ms int) time.Time {
		return time.UnixMilli(1_800_000_000_000).Add(time.Duration(ms) * time.Millisecond)
	}
	const done, now, next = waitpage.Done, waitpage.Now, waitpage.Next
	for _, c := range []struct {
		name   string
		wake   workload.Wake
		states []waitpage.State
		took   []time.Duration
	}{
		{"just asked for", workload.Wake{}, []waitpage.State{now, next, next}, []time.Duration{0, 0, 0}},
		{"taken", workload.Wake{RequestedAt: at(0), ReceivedAt: at(7)}, []waitpage.State{done, now, next}, []time.Duration{7, 0, 0}},
		{"started", workload.Wake{RequestedAt: at(0), ReceivedAt: at(7), StartAt: at(9), StartedAt: at(107)},
			[]waitpage.State{done, done, now}, []time.Duration{7, 100, 0}},
		{"ready", workload.Wake{RequestedAt: at(0), ReceivedAt: at(7), StartedAt: at(107), ReadyAt: at(130)},
			[]waitpage.State{done, done, done}, []time.Duration{7, 100, 23}},
		{"of two clocks", workload.Wake{RequestedAt: at(9), ReceivedAt: at(7)}, []waitpage.State{done, now, next}, []time.Duration{0, 0, 0}},
	} {
		steps := waitpage.Steps(c.wake)
		require.Len(t, steps, 3, c.name)
		for i, s := range steps {
			assert.Equal(t, c.states[i], s.State, "%s: %s", c.name, s.Name)
			assert.Equal(t, c.took[i]*time.Millisecond, s.Took, "%s: %s", c.name, s.Name)
		}
	}
}

func TestProgressAsTheScriptReadsIt(t *testing.T) {
	p := waitpage.Progress{Steps: waitpage.Steps(workload.Wake{})[:1], Elapsed: 1500 * time.Millisecond, Expected: 3 * time.Second, Position: 2, Waiting: 5}
	text, err := json.Marshal(p)
	require.NoError(t, err)
	assert.JSONEq(t, `{"steps":[{"name":"wake","label":"Asking for it","state":"now","ms":0}],
		"elapsed_ms":1500,"expected_ms":3000,"position":2,"waiting":5}`, string(text))
}

// themed gives the body of a waiting page with a theme.
func themed(t *testing.T, theme *waitpage.Theme) string {
	t.Helper()
	page := waiting
	page.Theme = theme
	return bodyOf(t, serve(t, page, http.MethodGet))
}

func TestThemeIsInPlaceOfTheBuiltInPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.html")
	require.NoError(t, os.WriteFile(file, []byte(`<h1>{{.Workload}} at {{seconds .Progress.Elapsed}}</h1>`), 0o600))
	require.NoError(t, waitpage.CheckTheme(file))
	assert.Equal(t, "<h1>wiki at 0.0 s</h1>", themed(t, waitpage.NewTheme(file, func(err error) { t.Error(err) })))
}

func TestBrokenThemeIsToldAndTheBuiltInPageStandsInForIt(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, says string }{
		"syntax.html": {"<p>\n{{if}}", "syntax.html:2"},
		"field.html":  {"<p>\n\n{{.Workloads}}", "field.html:3"},
		"index.html":  {"{{index .Progress.Steps 9}}", "index.html:1"},
		"large.html":  {strings.Repeat("x", 1<<20+1), "more than 1048576 bytes"},
		"empty.html":  {" \n", "is empty"},
		"gone.html":   {"", "no such file"},
	} {
		file := filepath.Join(dir, name)
		if c.text != "" {
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		}
		var told []error
		body := themed(t, waitpage.NewTheme(file, func(err error) { told = append(told, err) }))
		assert.Contains(t, body, "data-status", name)
		require.Len(t, told, 1, name)
		assert.ErrorContains(t, told[0], c.says)
		assert.ErrorContains(t, told[0], dir, "it names the file")
		assert.EqualError(t, waitpage.CheckTheme(file), told[0].Error())
	}
}

func TestThemeIsReadAgainWhenItHasChanged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "own.html")
		write := func(text string) {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			time.Sleep(time.Second)
		}
		write("one")
		var told []error
		theme := waitpage.NewTheme(file, func(err error) { told = append(told, err) })
		assert.Equal(t, "one", themed(t, theme))
		write("another")
		assert.Equal(t, "another", themed(t, theme))
		write("{{broken")
		assert.Contains(t, themed(t, theme), "data-status")
		time.Sleep(time.Second)
		assert.Contains(t, themed(t, theme), "data-status")
		assert.Len(t, told, 1, "it is told once")
		write("mended")
		assert.Equal(t, "mended", themed(t, theme))
	})
}

func Example() {
	rec := httptest.NewRecorder()
	waitpage.Page{Title: "wiki is waking up", StatusURL: "/.rouse/status?workload=wiki", RetryAfter: 2 * time.Second}.
		ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(rec.Code, rec.Header().Get("Retry-After"), rec.Header().Get("Cache-Control"))
	// Output: 503 2 no-store
}

func BenchmarkPage(b *testing.B) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	b.ReportAllocs()
	for b.Loop() {
		waiting.ServeHTTP(httptest.NewRecorder(), r)
	}
}
