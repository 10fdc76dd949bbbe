package system_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A replica that is killed under a crowd of GETs costs none of them: what it
// was answering is asked of the other.
func TestAReplicaKilledUnderLoadCostsNoRequestThatIsSafeToRepeat(t *testing.T) {
	t.Parallel()
	prefix := newPrefix(t)
	one := newBox(t, boxPlan{name: "one", prefix: prefix, labels: []string{"name=twins", "host=twins.localhost"}})
	newBox(t, boxPlan{name: "two", prefix: prefix, labels: []string{"name=twins", "host=twins.localhost"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})
	require.Equal(t, http.StatusOK, n.get("twins.localhost", "/").status)
	eventually(t, "both are ready", func() bool {
		v, err := n.view("twins")
		return err == nil && len(v.Replicas) == 2
	})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var served, hosts atomic.Int64
	var seen sync.Map
	var crowd sync.WaitGroup
	begun := time.Now()
	for range 32 {
		crowd.Go(func() {
			for ctx.Err() == nil {
				a := n.get("twins.localhost", "/delay/5")
				if !assert.NoError(t, a.err) || !assert.Equal(t, http.StatusOK, a.status, a.body) {
					return
				}
				served.Add(1)
				if _, known := seen.LoadOrStore(hostnameIn(a.body), true); !known {
					hosts.Add(1)
				}
			}
		})
	}
	eventually(t, "both serve", func() bool { return hosts.Load() == 2 && served.Load() > 500 })
	docker(t, "kill", one.name)
	eventually(t, "its end is known", func() bool {
		v, err := n.view("twins")
		return err == nil && len(v.Replicas) == 1
	})
	before := served.Load()
	eventually(t, "the other serves", func() bool { return served.Load() > before+500 })
	cancel()
	crowd.Wait()
	t.Logf("%d requests, %.0f a second", served.Load(), float64(served.Load())/time.Since(begun).Seconds())
	assert.Equal(t, 1, one.deaths())
	v, err := n.view("twins")
	require.NoError(t, err)
	assert.Equal(t, "ready", v.Phase)
}

// hostnameIn is which replica answered.
func hostnameIn(body string) string {
	_, rest, _ := strings.Cut(body, `"hostname":"`)
	host, _, _ := strings.Cut(rest, `"`)
	return host
}
