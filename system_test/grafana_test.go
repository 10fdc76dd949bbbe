package system_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// prometheus starts one that asks the node each second and has our rules, and
// gives its address. It ends with the test.
func prometheus(t *testing.T, n *node) string {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no prometheus: scripts/need-prometheus fetches it")
	}
	dir, addr := t.TempDir(), freeAddr(t)
	rules, err := filepath.Abs("../deploy/prometheus/rules.yml")
	require.NoError(t, err)
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [%q]
scrape_configs:
  - job_name: rouse
    static_configs: [{ targets: [%q] }]
`, rules, strings.TrimPrefix(n.admin, "http://")), 0o600))
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=error")
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return "http://" + addr
}

// results is how many series a query gives now, and the error it gives.
func results(base, expr string) (int, error) {
	res, err := client.Get(base + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Error != "" {
		return 0, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	return len(answer.Data.Result), nil
}

// Each query of the dashboard is asked of a Prometheus that asks a node.
func TestDashboardOfGrafana(t *testing.T) {
	n := start(t, plan{role: "up", dir: t.TempDir(), config: noDocker + processConfig(t, "tool", "    idle_timeout: 2s\n")})
	base := prometheus(t, n)
	text, err := os.ReadFile("../deploy/grafana/rouse.json")
	require.NoError(t, err)
	var dashboard struct {
		UID    string
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	assert.Equal(t, "rouse-overview", dashboard.UID)
	variables := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1m", "$workload", ".*")
	stop := make(chan struct{})
	defer close(stop)
	go func() { // cold starts and warm requests, again and again
		for {
			select {
			case <-stop:
				return
			default:
			}
			n.get("tool.localhost", "/")
			n.get("tool.localhost", "/")
			time.Sleep(2500 * time.Millisecond)
		}
	}()
	require.Equal(t, http.StatusOK, n.get("tool.localhost", "/").status)
	queries := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries++
			expr := variables.Replace(target.Expr)
			require.NotRegexp(t, regexp.MustCompile(`\$`), expr)
			var wrong error
			eventually(t, panel.Title+" has something to show: "+expr, func() bool {
				found, err := results(base, expr)
				if err != nil && strings.Contains(err.Error(), expr) {
					wrong = err
				}
				return found > 0 || wrong != nil
			})
			assert.NoError(t, wrong)
		}
		assert.Equal(t, panel.Type == "row", len(panel.Targets) == 0, panel.Title)
	}
	assert.Greater(t, queries, 20)
	eventually(t, "the recorded series are there too", func() bool {
		found, err := results(base, "rouse:asleep:ratio_1h")
		return err == nil && found > 0
	})
	eventually(t, "each rule can be reckoned from what is served", func() bool { return rulesAreWell(t, base) })
}

// rulesAreWell reports that every rule has been evaluated, and fails the test
// if one of them was in vain.
func rulesAreWell(t *testing.T, base string) bool {
	t.Helper()
	res, err := client.Get(base + "/api/v1/rules")
	require.NoError(t, err)
	defer res.Body.Close()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&answer))
	evaluated := len(answer.Data.Groups) > 0
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			require.Empty(t, rule.LastError, rule.Name)
			evaluated = evaluated && rule.Health == "ok"
		}
	}
	return evaluated
}
