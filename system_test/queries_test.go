package system_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// A query is asked of Prometheus by a dashboard or a rule.
type query struct{ of, expr, legend string }

// Each metric that the dashboard and the rules ask for is served, and has the
// labels and the values by which they choose it.
func TestQueriesAskForWhatIsServed(t *testing.T) {
	there := meters(t, usedNode(t).metrics())
	queries := append(queriesOfDashboard(t), queriesOfRules(t)...)
	require.Greater(t, len(queries), 50)
	for _, q := range queries {
		q.check(t, there)
	}
}

func queriesOfDashboard(t *testing.T) []query {
	t.Helper()
	text, err := os.ReadFile("../deploy/grafana/rouse.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	var queries []query
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, query{panel.Title, target.Expr, target.LegendFormat})
		}
	}
	for _, variable := range dashboard.Templating.List {
		// label_values(metric, label), written as the query that it stands for.
		if m := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(variable.Definition); m != nil {
			queries = append(queries, query{"variable " + variable.Name, "count by (" + m[2] + ") (" + m[1] + ")", ""})
		}
	}
	return queries
}

func queriesOfRules(t *testing.T) []query {
	t.Helper()
	text, err := os.ReadFile("../deploy/prometheus/rules.yml")
	require.NoError(t, err)
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Record, Expr string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &rules))
	var queries []query
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			queries = append(queries, query{rule.Alert + rule.Record, rule.Expr, ""})
		}
	}
	return queries
}

var (
	selector = regexp.MustCompile(`\b((?:rouse|gnatsd|jetstream)_\w+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	named    = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
)

// scraped are the labels that Prometheus gives, and that of buckets.
var scraped = []string{"instance", "job", "le"}

func (q query) check(t *testing.T, there map[string]meter) {
	t.Helper()
	known := slices.Clone(scraped)
	complete := true // nothing that is served only when used
	for _, s := range selector.FindAllStringSubmatch(q.expr, -1) {
		m, served := there[s[1]]
		if !served {
			m, served = there[ofBuckets.ReplaceAllString(s[1], "")]
		}
		if !served {
			complete = false
			assert.Contains(t, onlyWhenUsed, s[1], "%s asks for what is not served", q.of)
			continue
		}
		for label := range m.labels {
			known = append(known, label)
		}
		for _, c := range matcher.FindAllStringSubmatch(s[2], -1) {
			values, ok := m.labels[c[1]]
			assert.True(t, ok || slices.Contains(scraped, c[1]), "%s: %s has no label %s", q.of, s[1], c[1])
			if ok && c[2] == "=" {
				assert.Contains(t, values, c[3], "%s: %s of %s", q.of, c[1], s[1])
			}
		}
	}
	var grouped []string
	for _, g := range grouping.FindAllStringSubmatch(q.expr, -1) {
		grouped = append(grouped, strings.Split(g[1], ", ")...)
	}
	for _, label := range grouped {
		assert.True(t, !complete || slices.Contains(known, label), "%s: nothing in it has a label %s", q.of, label)
	}
	for _, l := range named.FindAllStringSubmatch(q.legend, -1) {
		assert.Contains(t, grouped, l[1], "%s: its legend", q.of)
	}
}
