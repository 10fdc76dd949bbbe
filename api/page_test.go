package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/workload"
)

const hostile = `<script>alert(1)</script>"'>`

func TestPageShowsWorkloadsAndProblemsEscaped(t *testing.T) {
	f := newFake()
	f.workloads[0].Hosts = []string{"wiki.example.com", hostile}
	f.workloads[0].Reason = workload.Reason{Code: workload.ReasonStartError, Detail: hostile}
	f.workloads[0].SleepsAt = time.Date(2026, 5, 1, 13, 0, 0, 0, time.UTC)
	f.problems = []workload.Problem{{Workload: "shop", Place: hostile, Message: "two ports"}}
	w := serve(api.Config{Version: "v1.2.3"}, f, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	body := w.Body.String()
	assert.NotContains(t, body, "<script")
	for _, want := range []string{`<th scope="row">wiki</th>`, "wiki.example.com", "2026-05-01T13:00:00Z", "two ports", "v1.2.3", `lang="en"`, "&lt;script&gt;"} {
		assert.Contains(t, body, want)
	}
	wellFormed(t, body)
}

func TestPageWithoutWorkloadsSaysHowToHaveOne(t *testing.T) {
	f := newFake()
	f.workloads = nil
	body := get(f, "/").Body.String()
	assert.Contains(t, body, "rouse.enable=true")
	assert.NotContains(t, body, "<table")
	wellFormed(t, body)
}

func TestPageLoadsNothingAndItsStyleIsAllowedByItsHash(t *testing.T) {
	w := get(newFake(), "/")
	_, after, ok := strings.Cut(w.Body.String(), "<style>")
	require.True(t, ok)
	style, _, _ := strings.Cut(after, "</style>")
	sum := sha256.Sum256([]byte(style))
	assert.Contains(t, w.Header().Get("Content-Security-Policy"), "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	for _, loads := range []string{"src=", "@import", "url(", "http://", "https://", "style=", "onclick"} {
		assert.NotContains(t, w.Body.String(), loads)
	}
}

// wellFormed checks that every element that is opened is closed in its turn.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	void := map[string]bool{"meta": true}
	var open []string
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			require.Empty(t, open)
			return
		case html.StartTagToken:
			if tag := z.Token().Data; !void[tag] {
				open = append(open, tag)
			}
		case html.EndTagToken:
			require.NotEmpty(t, open)
			require.Equal(t, open[len(open)-1], z.Token().Data)
			open = open[:len(open)-1]
		}
	}
}
