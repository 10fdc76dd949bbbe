package sablier_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// Whatever is asked for, the answer is one that plugins know, and the header is
// on a 200 and on nothing else.
func FuzzEveryQueryIsAnswered(f *testing.F) {
	f.Add("group=office&session_duration=1h&timeout=1ms", "text/html")
	f.Add("names=wiki&names=optional:mail&theme=ghost&display_name=%3Cscript%3E&show_details=0", "application/json;q=0.1,*/*")
	f.Add("names=%&&=&;names=wiki", ";q")
	f.Add("session_duration=9223372036854775807ns&names=lone&refresh_frequency=1e9h", "text/html;q=NaN")
	r := newRig(f, activator.Config{}, office()...)
	f.Cleanup(r.stop)
	r.see("wiki", workload.Ready)
	f.Fuzz(func(t *testing.T, query, accept string) {
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		req.URL = &url.URL{Path: "/api/strategies/dynamic", RawQuery: query}
		req.Header["Accept"] = []string{accept}
		rec := httptest.NewRecorder()
		r.api.ServeHTTP(rec, req)
		require.Contains(t, []int{200, 400, 404}, rec.Code)
		state, said := rec.Header()[http.CanonicalHeaderKey(statusHeader)]
		require.Equal(t, rec.Code == 200, said)
		require.True(t, !said || slices.Equal(state, []string{"ready"}) || slices.Equal(state, []string{"not-ready"}))
		require.NotEmpty(t, rec.Header().Get("Content-Length"))
		require.NotContains(t, rec.Body.String(), "<script", "what is asked for is never markup")
	})
}
