package waitpage_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/router/waitpage"
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
	assert.Less(t, len(bodyOf(t, res)), 8<<10)
}

func TestContentPolicyAllowsExactlyTheInlineTexts(t *testing.T) {
	res := serve(t, waiting, http.MethodGet)
	body, policy := bodyOf(t, res), res.Header.Get("Content-Security-Policy")
	for _, tag := range []string{"style", "script"} {
		found := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(body, -1)
		require.Len(t, found, 1, tag)
		sum := sha256.Sum256([]byte(found[0][1]))
		assert.Contains(t, policy, tag+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	assert.Contains(t, policy, "default-src 'none'")
	assert.NotContains(t, policy, "unsafe")
	assert.NotRegexp(t, `\son[a-z]+=|style=`, body, "no inline handler or style attribute")
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
	assert.Equal(t, get.Header, head.Header)
	assert.Equal(t, get.StatusCode, head.StatusCode)
}

func TestDataIsEscaped(t *testing.T) {
	evil := `"><script>alert(1)</script>`
	page := waitpage.Page{Title: evil, Detail: evil, Workload: evil, RequestID: evil, StatusURL: "/.rouse/status?workload=" + evil}
	body := bodyOf(t, serve(t, page, http.MethodGet))
	assert.NotContains(t, body, "alert(1)</script>")
	assert.Equal(t, 1, strings.Count(body, "<script>"))
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
