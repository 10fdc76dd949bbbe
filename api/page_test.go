package api_test

import (
	"bytes"
	"compress/gzip"
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
	assert.Equal(t, 1, strings.Count(body, "<script"), "its own")
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
	assert.Contains(t, body, `<table id="table" hidden>`)
	wellFormed(t, body)
}

func TestPageLoadsNothingAndItsStyleIsAllowedByItsHash(t *testing.T) {
	w := get(newFake(), "/")
	body := w.Body.String()
	for tag, opening := range map[string]string{"style": "<style>", "script": `<script type="module">`} {
		_, after, ok := strings.Cut(body, opening)
		require.True(t, ok, opening)
		text, _, _ := strings.Cut(after, "</"+tag+">")
		sum := sha256.Sum256([]byte(text))
		assert.Contains(t, w.Header().Get("Content-Security-Policy"), tag+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	for _, loads := range []string{" src=", "@import", "url(", "https://", " style=", "onclick", "import("} {
		assert.NotContains(t, body, loads)
	}
	assert.Equal(t, 1, strings.Count(body, "http://"), "the name of SVG's elements")
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := zip.Write([]byte(body))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	assert.Less(t, packed.Len(), 60<<10)
}

func TestPageGivesNothingAwayWithoutTheToken(t *testing.T) {
	w := serve(api.Config{Token: "s3cret", Version: "v1.2.3"}, newFake(), httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusOK, w.Code, "a browser can show a token by script only")
	for _, secret := range []string{"wiki", "v1.2.3", "10.0.0.2"} {
		assert.NotContains(t, w.Body.String(), secret)
	}
	wellFormed(t, w.Body.String())
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer s3cret")
	assert.Contains(t, serve(api.Config{Token: "s3cret"}, newFake(), r).Body.String(), "wiki")
}

// wellFormed checks that every element that is opened is closed in its turn.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	void := map[string]bool{"meta": true, "link": true, "input": true}
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
