package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestComposeFileIsValid(t *testing.T) {
	s := &stack{t: t, env: os.Environ(), compose: composeCommand(t)}
	s.composeRun("config", "--quiet")
}

var metric = regexp.MustCompile(`\brouse_[a-z_]+`)

func TestAlertsAskForMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile("../deploy/prometheus/rules.yml")
	require.NoError(t, err)
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Record, Expr string
				Annotations         map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &rules))
	known := metricsOfTheSource(t)
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			assert.Equal(t, rule.Alert != "", rule.Annotations["summary"] != "", "%s%s", rule.Alert, rule.Record)
			for _, name := range metric.FindAllString(rule.Expr, -1) {
				name = regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
				assert.Contains(t, known, name, "%s%s", rule.Alert, rule.Record)
			}
		}
	}
}

// metricsOfTheSource gives every metric name that a metrics.go mentions.
func metricsOfTheSource(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, name := range metric.FindAllString(string(source), -1) {
			known[name] = true
		}
		return err
	})
	require.NoError(t, err)
	return known
}
