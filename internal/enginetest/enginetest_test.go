package enginetest_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/enginetest"
)

// serving starts a container and returns the URL it answers at.
func serving(t *testing.T, e *enginetest.Engine, name string) string {
	t.Helper()
	e.Docker("run", "-d", "--name", name, e.Image(), "mimic", "--listen", ":8080")
	url := fmt.Sprintf("http://%s:8080/", e.Docker("inspect", "-f", "{{.NetworkSettings.IPAddress}}", name))
	require.Eventually(t, func() bool { return answers(url) }, time.Minute, 10*time.Millisecond)
	return url
}

func answers(url string) bool {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func running(e *enginetest.Engine, name string) bool {
	return e.Docker("inspect", "-f", "{{.State.Running}}", name) == "true"
}

func TestContainersEndWithTheEngine(t *testing.T) {
	e := enginetest.Start(t, enginetest.Options{})
	url := serving(t, e, "aa")
	e.Stop()
	assert.False(t, answers(url))
	e.Resume()
	assert.False(t, running(e, "aa"))
}

func TestContainersLiveOnUnderLiveRestore(t *testing.T) {
	e := enginetest.Start(t, enginetest.Options{LiveRestore: true})
	url := serving(t, e, "aa")
	e.Stop()
	assert.True(t, answers(url))
	e.Resume()
	assert.True(t, running(e, "aa"))
	e.Kill()
	assert.True(t, answers(url))
	e.Resume()
	assert.True(t, running(e, "aa"))
}

func TestContainersOfAKilledEngineEndWhenItIsBack(t *testing.T) {
	e := enginetest.Start(t, enginetest.Options{})
	url := serving(t, e, "aa")
	e.Kill()
	assert.True(t, answers(url))
	e.Resume()
	assert.False(t, running(e, "aa"))
}

func TestNothingIsLeftOfAnEngine(t *testing.T) {
	before := traces(t)
	t.Run("within", func(t *testing.T) {
		e := enginetest.Start(t, enginetest.Options{LiveRestore: true})
		serving(t, e, "aa")
		e.Kill()
	})
	assert.Equal(t, before, traces(t))
}

// traces counts what engines of tests leave on a machine.
func traces(t *testing.T) (counts [3]int) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	counts[0] = strings.Count(string(mounts), "rouse-engine-")
	links, err := os.ReadDir("/sys/class/net")
	require.NoError(t, err)
	for _, l := range links {
		if strings.HasPrefix(l.Name(), "rt") {
			counts[1]++
		}
	}
	folders, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	for _, f := range folders {
		if strings.HasPrefix(f.Name(), "rouse-engine-") {
			counts[2]++
		}
	}
	return counts
}
