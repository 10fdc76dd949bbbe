package system_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/internal/proxytest"
)

// Gateways behind a proxy are restarted one after the other, as for a new
// version, while requests come: none of them notices.
func TestARollingRestartBehindHaproxyCostsNoRequest(t *testing.T) {
	t.Parallel()
	haproxy := proxytest.Haproxy(t)
	natsAddr := freeAddr(t)
	start(t, plan{role: "nats", dir: t.TempDir(), config: fmt.Sprintf("nats: { listen: %q, store_dir: %q }\n", natsAddr, t.TempDir())})
	url := fmt.Sprintf("nats: { url: %q }\n", "nats://"+natsAddr)
	start(t, plan{role: "scaler", dir: t.TempDir(), config: url + noDocker + processConfig(t, "app", "", "--startup", "200ms")})
	addrs := []string{freeAddr(t), freeAddr(t)}
	launchAt := func(addr string) *node {
		return start(t, plan{role: "gateway", dir: t.TempDir(), config: url, listen: addr})
	}
	gateways := []*node{launchAt(addrs[0]), launchAt(addrs[1])}
	for _, g := range gateways {
		waitRoute(t, g, "app")
	}
	front := "http://" + haproxy(addrs...).Addr

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var served atomic.Int64
	var crowd sync.WaitGroup
	for i := range 4 {
		crowd.Go(func() {
			for j := 0; ctx.Err() == nil; j++ {
				id := fmt.Sprintf("%d-%d", i, j)
				status, said, err := postTo(front, "app.localhost", id)
				if !assert.NoError(t, err) || !assert.Equal(t, http.StatusOK, status, said) || !assert.Equal(t, id, said) {
					return
				}
				served.Add(1)
			}
		})
	}
	more := func(n int64) {
		before := served.Load()
		eventually(t, "requests are served", func() bool { return served.Load() > before+n || t.Failed() })
	}
	more(200)
	for i := range gateways {
		gateways[i].stop()
		more(200)
		gateways[i] = launchAt(addrs[i])
		waitRoute(t, gateways[i], "app")
		more(200)
	}
	cancel()
	crowd.Wait()
	t.Logf("%d requests", served.Load())
}

// postTo posts a body to /echo over a connection that may be kept.
func postTo(front, host, text string) (status int, said string, err error) {
	req, err := http.NewRequest(http.MethodPost, front+"/echo", strings.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	req.Host = host
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}
