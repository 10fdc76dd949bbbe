package router_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/workload"
)

// logged waits for so many lines of the access log.
func (r *rig) logged(n int) []string {
	r.t.Helper()
	var all []string
	require.Eventually(r.t, func() bool {
		all = strings.Split(strings.TrimSuffix(r.log.String(), "\n"), "\n")
		return len(all) >= n && all[0] != ""
	}, patience, 5*time.Millisecond, "%d lines in the access log", n)
	return all
}

func TestAccessLogHasTheFormThatIsAskedFor(t *testing.T) {
	for format, want := range map[router.LogFormat]string{
		router.LogJSON:   `^\{"time":"[^"]+","request_id":"id-1",.*"client":"127\.0\.0\.1","method":"GET",.*"path":"/a \\"b","user_agent":"curl \\"quoted\\"","status":200,"bytes":2,"workload":"wiki",.*"outcome":"warm","cold":false,.*"added_seconds":0\.\d{6},"queued_seconds":0\.000000,"upstream_seconds":0\.\d{6}\}$`,
		router.LogLogfmt: `^time=\S+ request_id=id-1 trace_id=\w+ client=127\.0\.0\.1 method=GET host=wiki\.test path="/a \\"b" user_agent="curl \\"quoted\\"" status=200 bytes=2 workload=wiki replica=\S+ outcome=warm cold=false total_seconds=0\.\d{6} added_seconds=0\.\d{6} queued_seconds=0\.000000 upstream_seconds=0\.\d{6}$`,
		router.LogCLF:    `^127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET /a \\x22b HTTP/1\.1" 200 2 "-" "curl \\x22quoted\\x22" wiki warm 0\.\d{6} 0\.000000 0\.\d{6}$`,
	} {
		t.Run(string(format), func(t *testing.T) {
			rig := newRig(t, rigConfig{router: router.Config{AccessLog: router.AccessLog{Format: format}}}, wiki())
			rig.ready("wiki", 1, upstream(t, ok("ok")))
			req := rig.request(t.Context(), http.MethodGet, "wiki.test", "/a%20%22b?secret=1", nil)
			req.Header.Set("X-Request-Id", "id-1")
			req.Header.Set("User-Agent", `curl "quoted"`)
			res, err := client.Do(req)
			require.NoError(t, err)
			assert.Equal(t, "ok", body(t, res))
			lines := rig.logged(1)
			assert.Regexp(t, want, lines[0])
			assert.NotContains(t, lines[0], "secret")
		})
	}
}

func TestOfOrdinaryRequestsSomeAreLogged(t *testing.T) {
	rig := newRig(t, rigConfig{router: router.Config{AccessLog: router.AccessLog{Percent: 1}}}, wiki(),
		workload.Workload{Name: "bad", Hosts: []string{"bad.test"}, Path: "/", HoldTimeout: patience})
	rig.ready("wiki", 1, upstream(t, ok("ok")))
	rig.ready("bad", 1, upstream(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	const ordinary, others = 400, 10
	conn, in := rig.dial()
	ask := func(host string) {
		_, err := io.WriteString(conn, strings.Replace(request("GET", "/", "", ""), "wiki.test", host, 1))
		require.NoError(t, err)
		_, _ = answerTo(t, http.MethodGet, in)
	}
	for range ordinary {
		ask("wiki.test")
	}
	for range others {
		ask("bad.test")
		ask("nobody.test")
	}
	failed, good := 0, 0
	require.Eventually(t, func() bool {
		failed, good = 0, 0
		for _, e := range rig.log.entries(t) {
			if e.Status == http.StatusOK {
				good++
			} else {
				failed++
			}
		}
		return failed == 2*others
	}, patience, 5*time.Millisecond, "what goes wrong is logged each time")
	assert.Less(t, good, ordinary/2, "of the others one in a hundred")
}

func TestWhatMustNotWakeHasNoLine(t *testing.T) {
	noWake := router.NoWake{Methods: []string{"HEAD"}, Paths: []string{"/robots.txt"}, UserAgents: []string{"UptimeRobot"}, Answer: 503}
	rig := newRig(t, rigConfig{router: router.Config{NoWake: noWake}}, wiki(),
		workload.Workload{Name: "asleep", Hosts: []string{"asleep.test"}, Path: "/", HoldTimeout: patience})
	rig.ready("wiki", 1, upstream(t, ok("ok")))
	for _, host := range []string{"wiki.test", "asleep.test"} {
		for _, res := range []*http.Response{
			rig.do(http.MethodHead, host, "/", nil),
			rig.get(host, "/robots.txt"),
			rig.get(host, "/", "User-Agent", "Mozilla/5.0 (compatible; UptimeRobot/2.0)"),
		} {
			_ = body(t, res)
		}
	}
	_ = body(t, rig.get("wiki.test", "/counts"))
	lines := rig.logged(1)
	assert.Len(t, lines, 1)
	assert.Contains(t, lines[0], `"path":"/counts"`)
}
