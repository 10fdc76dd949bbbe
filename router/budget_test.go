package router_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/workload"
)

func TestAClientMayWakeOnlySoManyWorkloads(t *testing.T) {
	var ws []workload.Workload
	for i := range 5 {
		ws = append(ws, wiki(func(w *workload.Workload) {
			w.Name, w.Hosts = fmt.Sprintf("w%d", i), []string{fmt.Sprintf("w%d.test", i)}
			w.HoldTimeout = 10 * time.Millisecond
		}))
	}
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	r := newRig(t, rigConfig{router: router.Config{WakesPerClient: 2, TrustedProxies: trusted, NoWake: router.NoWake{Methods: []string{"HEAD"}}}}, ws...)
	status := func(host, client string) int {
		res := r.get(host, "/", "X-Forwarded-For", client)
		defer res.Body.Close()
		if res.StatusCode == http.StatusTooManyRequests {
			assert.NotEmpty(t, res.Header.Get("Retry-After"))
		}
		return res.StatusCode
	}
	assert.Equal(t, 503, status("w0.test", "192.0.2.1"))
	assert.Equal(t, 503, status("w1.test", "192.0.2.1"))
	assert.Equal(t, 429, status("w2.test", "192.0.2.1"))
	assert.Equal(t, 503, status("w2.test", "192.0.2.2"), "another client")

	r.observe(workload.State{Workload: "w3", Phase: workload.Waking, Generation: 1})
	assert.Equal(t, 503, status("w3.test", "192.0.2.1"), "joining a start that is under way is free")
	r.ready("w4", 1, upstream(t, func(http.ResponseWriter, *http.Request) {}))
	assert.Equal(t, 200, status("w4.test", "192.0.2.1"), "and so is what is awake")
	res := r.do(http.MethodHead, "w0.test", "/", nil, "X-Forwarded-For", "192.0.2.1")
	assert.Equal(t, 503, res.StatusCode, "it would not have woken anything")

	assert.Equal(t, 503, status("w0.test", "2001:db8::1"))
	assert.Equal(t, 503, status("w0.test", "2001:db8::2"))
	assert.Equal(t, 429, status("w0.test", "2001:db8::3"), "one network is one client")
	assert.Equal(t, 503, status("w0.test", "2001:db8:0:1::1"))
}
