package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// promtool runs it; the test is skipped where there is none.
func promtool(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool: scripts/need-prometheus fetches it")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = "../deploy/prometheus"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestAlertsFireForWhatTheyAreAbout(t *testing.T) {
	promtool(t, "check", "rules", "rules.yml", "nats-rules.yml")
	promtool(t, "test", "rules", "rules_test.yml")
}

// A ruleTest is what rules_test.yml says of an alert: expressions that give the
// alerts that fire, and alerts that do not.
type ruleTest struct {
	Name    string
	Results []struct {
		Samples []struct{ Labels string } `yaml:"exp_samples"`
	} `yaml:"promql_expr_test"`
	Quiet []struct {
		Alert string `yaml:"alertname"`
		Fires []any  `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

func TestEachAlertIsTestedAndHasAParagraph(t *testing.T) {
	read := func(file string) []byte {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return text
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(read("../deploy/prometheus/rules.yml"), &rules))
	fires, quiet := casesOfAlerts(t, read("../deploy/prometheus/rules_test.yml"))
	var headings []string
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)\n\n(.{40,})`).FindAllStringSubmatch(string(read("../docs/alerts.md")), -1) {
		headings = append(headings, m[1])
	}
	var alerts []string
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			alerts = append(alerts, rule.Alert)
			assert.True(t, fires[rule.Alert], "%s has a case in which it fires", rule.Alert)
			assert.True(t, quiet[rule.Alert], "%s has a case in which it stays quiet", rule.Alert)
			assert.True(t, strings.HasSuffix(rule.Annotations["runbook_url"], "/docs/alerts.md#"+strings.ToLower(rule.Alert)), rule.Alert)
		}
	}
	assert.Equal(t, alerts, headings, "docs/alerts.md says what to do, alert by alert")
}

// casesOfAlerts gives the alerts that a case says fire, and those that one says
// stay quiet.
func casesOfAlerts(t *testing.T, text []byte) (fires, quiet map[string]bool) {
	t.Helper()
	var file struct{ Tests []ruleTest }
	require.NoError(t, yaml.Unmarshal(text, &file))
	fires, quiet = map[string]bool{}, map[string]bool{}
	named := regexp.MustCompile(`alertname="(\w+)"`)
	for _, test := range file.Tests {
		for _, result := range test.Results {
			for _, sample := range result.Samples {
				if m := named.FindStringSubmatch(sample.Labels); m != nil {
					fires[m[1]] = true
				}
			}
		}
		for _, q := range test.Quiet {
			assert.Empty(t, q.Fires, "%s: what fires is said by promql_expr_test", test.Name)
			quiet[q.Alert] = true
		}
	}
	return fires, quiet
}
