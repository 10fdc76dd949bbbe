package migration_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/migration"
	"github.com/rouse-dev/rouse/workload"
)

var update = flag.Bool("update", false, "write what is proposed into testdata")

func files(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("testdata/*.y*ml")
	require.NoError(t, err)
	found = slices.DeleteFunc(found, func(f string) bool { return strings.HasSuffix(f, ".want.yaml") })
	require.Len(t, found, 4)
	return found
}

func read(t *testing.T, file string) migration.Plan {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	plan, problems := migration.Read(filepath.Base(file), data)
	require.Empty(t, problems)
	return plan
}

func written(t *testing.T, p migration.Plan) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, p.Write(&out))
	return out.String()
}

func TestEachFileIsProposedAsItShouldBe(t *testing.T) {
	for _, file := range files(t) {
		got := written(t, read(t, file))
		name := file[:strings.LastIndexByte(file, '.')] + ".want.yaml"
		if *update {
			require.NoError(t, os.WriteFile(name, []byte(got), 0o600))
		}
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, string(want), got, file)
	}
}

// What is proposed is good for Rouse itself: it is read back, and each service
// is a workload without a problem, given one port where the labels name none.
func TestWhatIsProposedIsGoodForTheCatalog(t *testing.T) {
	for _, file := range files(t) {
		var doc struct {
			Services map[string]struct{ Labels map[string]string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(written(t, read(t, file))), &doc), file)
		var containers []workload.Container
		for _, name := range slices.Sorted(maps.Keys(doc.Services)) {
			c := workload.Container{ID: name, Name: name + "-1", Service: name, Project: "p", Ports: []int{8000}, HealthCheck: true, Labels: map[string]string{}}
			for label, value := range doc.Services[name].Labels {
				short, ours := strings.CutPrefix(label, "rouse.")
				require.True(t, ours, label)
				c.Labels[short] = strings.ReplaceAll(value, "${IDLE:-30m}", "30m") // as compose does
			}
			containers = append(containers, c)
		}
		built := catalog.Build(catalog.Input{Node: "n", Defaults: catalog.BuiltIn(), Containers: containers})
		assert.Empty(t, built.Problems, file)
		assert.Len(t, built.Workloads, len(containers), file)
	}
}

func TestWhatCannotBeReadIsToldWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "f.yml:1:1: it has neither services",
		"a: 1\n":                           "f.yml:1:1: it has neither services",
		"- a\n":                            "f.yml:1:1: the file holds a list where a mapping is wanted",
		"services:\n  a: [\n":              "f.yml:2:1: not YAML",
		"services:\n  a:\n   b: \"c\n":     "not YAML",
		"services: {}\n---\na: 1\n":        "a second document begins",
		"services: []\n":                   "f.yml:1:11: services is not a mapping",
		"services:\n":                      "f.yml:1:10: services is not a mapping",
		"services:\n  a: image\n":          "f.yml:2:6: the service a is not a mapping",
		"services:\n  a:\n    labels: 5\n": "f.yml:3:13: labels of a are neither a mapping nor a list",
		"services:\n  a:\n    labels:\n      proxy.x: [1]\n":                                         "f.yml:4:7: the label proxy.x is not one value",
		"services:\n  a:\n    labels:\n      - a: b\n":                                               "f.yml:4:9: the label",
		"services:\n  a:\n    image: b\n":                                                            "f.yml:1:1: nothing in it opted in",
		"services:\n  a:\n    labels: {proxy.idle_timeout: soon}\n":                                  `f.yml:3:14: proxy.idle_timeout: "soon" is not a duration`,
		"services:\n  a:\n    labels: {proxy.stop_method: freeze}\n":                                 `f.yml:3:14: proxy.stop_method`,
		"services:\n  a:\n    labels:\n      - proxy.#1.port=http\n":                                 `f.yml:4:9: proxy.#1.port`,
		"services:\n  a:\n    labels: {proxy.depends_on: '- a: {b: c}'}\n":                           "f.yml:3:14: proxy.depends_on is not a list of services",
		"services:\n  a:\n    labels: [lazytainer.group.g.ports=x, lazytainer.group=g]\n":            "f.yml:3:14: lazytainer.group.g.ports",
		"services:\n  a:\n    labels: [lazytainer.group.g.port=1]\n":                                 "f.yml:3:14: lazytainer.group.g.port is no property of a group (did you mean ports?)",
		"services:\n  a:\n    labels: [lazytainer.group.g.inactiveTimeout=5m, lazytainer.group=g]\n": "f.yml:3:14: lazytainer.group.g.inactiveTimeout is not a number of seconds (write 300)",
		"proxyHosts: {}\n":                                 "f.yml:1:13: proxyHosts is not a list",
		"proxyHosts: [a]\n":                                "f.yml:1:14: a host is not a mapping",
		"proxyHosts:\n  - domain: a\n":                     "f.yml:2:5: a host has no containerName (add containerName: …)",
		"proxyHosts:\n  - domain: a\n    containerName:\n": "f.yml:2:5: a host has no containerName",
		"proxyHosts:\n  - domian: a\n":                     "f.yml:2:5: unknown key domian (did you mean domain?)",
		"proxyHosts:\n  - domain: {a: b}\n":                "f.yml:2:5: domain is not one value",
		"proxyHosts: []\nproxyHost: a\n":                   "f.yml:2:1: unknown key proxyHost (did you mean proxyHosts?)",
		"proxyHosts:\n  - {domain: a, containerName: a, proxyPort: 99999, timeoutSeconds: 5}\n": "f.yml:2:35: proxyPort",
		"proxyHosts:\n  - {domain: a, containerName: a, proxyPort: 80, timeoutSeconds: soon}\n": "timeoutSeconds is not a number of seconds",
	} {
		plan, problems := migration.Read("f.yml", []byte(text))
		assert.Empty(t, plan.Services, text)
		if assert.NotEmpty(t, problems, text) {
			assert.Contains(t, problems[0].Error(), want, text)
		}
	}
}

// Aliases that lead back to themselves, and values with line breaks or tags,
// neither hang nor escape from their comments.
func TestHostileFilesAreOnlyRead(t *testing.T) {
	many := strings.Repeat("*x, ", 200)
	for _, text := range []string{
		"services: &x\n  <<: *x\n  a: {labels: {proxy.aliases: a.b}}\n",
		"services: &x\n  <<: [" + many + "]\n  a: {labels: {proxy.aliases: a.b}}\n",
		"services:\n  a: &x\n    labels: {proxy.aliases: a.b}\n    depends_on: *x\n",
		"services:\n  \"a\\nevil: {}\":\n    labels: {proxy.aliases: \"x\\nevil: true\", \"proxy.\\nevil\": \"!tag x\", proxy.network: \"!tag x\"}\n",
	} {
		plan, problems := migration.Read("f\nevil: {}", []byte(text))
		if len(problems) > 0 {
			continue
		}
		var doc map[string]any
		out := written(t, plan)
		require.NoError(t, yaml.Unmarshal([]byte(out), &doc), out)
		assert.Equal(t, []string{"services"}, slices.Collect(maps.Keys(doc)), out)
	}
}

func FuzzRead(f *testing.F) {
	names, err := filepath.Glob("testdata/*.y*ml")
	require.NoError(f, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		plan, problems := migration.Read("f.yml", data)
		if len(problems) > 0 {
			return
		}
		var doc struct {
			Services map[string]struct{ Labels map[string]string }
		}
		out := written(t, plan)
		require.NoError(t, yaml.Unmarshal([]byte(out), &doc), out)
		require.Len(t, doc.Services, len(plan.Services))
	})
}
