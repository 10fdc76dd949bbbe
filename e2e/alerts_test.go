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

func TestEachAlertIsTestedAndHasAParagraph(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read("../deploy/prometheus/rules.yml")), &rules))
	tests, document := read("../deploy/prometheus/rules_test.yml"), read("../docs/alerts.md")
	var headings []string
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)\n\n(.{40,})`).FindAllStringSubmatch(document, -1) {
		headings = append(headings, m[1])
	}
	var alerts []string
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			alerts = append(alerts, rule.Alert)
			assert.Contains(t, tests, `alertname="`+rule.Alert+`"`, "a case in which it fires")
			assert.True(t, strings.HasSuffix(rule.Annotations["runbook_url"], "/docs/alerts.md#"+strings.ToLower(rule.Alert)), rule.Alert)
		}
	}
	assert.Equal(t, alerts, headings, "docs/alerts.md says what to do, alert by alert")
}
