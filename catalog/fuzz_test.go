package catalog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/workload"
)

// requireValid holds what Build promises of every catalog.
func requireValid(t *testing.T, c workload.Catalog) {
	t.Helper()
	routes, known := map[string]bool{}, map[string]bool{}
	for _, w := range c.Workloads {
		require.NoError(t, workload.ValidName(w.Name))
		require.False(t, known[w.Name], "two workloads of one name")
		known[w.Name] = true
		require.True(t, w.Port >= 0 && w.Port <= 65535)
		require.True(t, w.IdleTimeout >= 0 && w.HoldTimeout > 0 && w.WakeTimeout > 0 && w.StopTimeout >= 0)
		require.True(t, strings.HasPrefix(w.Path, "/"))
		for _, h := range w.Hosts {
			normal, err := catalog.NormalHost(h)
			require.NoError(t, err)
			require.Equal(t, h, normal)
			require.False(t, routes[h+w.Path], "two workloads on one route")
			routes[h+w.Path] = true
		}
	}
	for _, w := range c.Workloads {
		for _, name := range w.DependsOn {
			require.True(t, known[name], "an unknown dependency")
			require.NotEqual(t, w.Name, name)
		}
	}
	for _, p := range c.Problems {
		require.NotEmpty(t, p.Place)
		require.NotEmpty(t, p.Message)
	}
}

func FuzzLabels(f *testing.F) {
	f.Add("web", "host", "a.example.com,*.b.example.com", "path", "/x")
	f.Add("web", "depends-on", "web,other,db", "name", "other")
	f.Add("web", "idle-timeout", "1h", "ready", "http:/")
	f.Add("aaaaaaaaaaaa_web", "keep-warm", "Mon 1:00-2:00", "wake-allow", "::/0,1.2.3.4/33")
	f.Fuzz(func(t *testing.T, name, key1, value1, key2, value2 string) {
		a := workload.Container{ID: "aaaaaaaaaaaaaaaa", Name: name, Service: name, Ports: []int{80}, DependsOn: []string{"db"}, Labels: map[string]string{"enable": "true", key1: value1, key2: value2},
			Foreign: map[string]string{"sablier.enable": "true", "sablier." + key1: value1, "sablier.running-hours": value1, "sablier.running-days": value2}}
		b := workload.Container{Name: "db", Service: "db", Ports: []int{1}, DependsOn: []string{name}, Labels: map[string]string{"enable": "true", key1: value2}}
		other := workload.Container{Name: "other", Ports: []int{1}, Labels: map[string]string{"enable": "true", "host": "a.example.com"}}
		requireValid(t, catalog.Build(catalog.Input{Defaults: catalog.BuiltIn(), Containers: []workload.Container{a, b, other}}))
	})
}

func FuzzEntries(f *testing.F) {
	f.Add("- {name: a, host: [a.b], container: c}\n- {name: b, process: {command: [x, '{port}'], env: {A: b}}}")
	f.Add("- &a {name: a, depends_on: [b]}\n- *a\n- {name: b, depends_on: a, service: s}")
	f.Add("- [a]\n- ~\n- {name: [x]}\n- {<<: {name: y}}")
	f.Fuzz(func(t *testing.T, text string) {
		var doc yaml.Node
		if yaml.Unmarshal([]byte(text), &doc) != nil || len(doc.Content) == 0 {
			return
		}
		es, problems := catalog.Entries("f", doc.Content[0])
		for _, p := range problems {
			require.NotEmpty(t, p.Place)
			require.NotEmpty(t, p.Message)
		}
		catalog.Check(catalog.BuiltIn(), es)
		containers := []workload.Container{
			{Name: "c", Project: "p", Service: "s", Ports: []int{80}, Labels: map[string]string{"enable": "true", "name": "a"}},
			{Name: "b", Ports: []int{80}, Labels: map[string]string{"enable": "true"}},
		}
		requireValid(t, catalog.Build(catalog.Input{Defaults: catalog.BuiltIn(), Containers: containers, Entries: es}))
	})
}

func BenchmarkBuild(b *testing.B) {
	var containers []workload.Container
	for i := range 100 {
		name := "w" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26)
		containers = append(containers, labelled(name, "host="+name+".example.com", "idle-timeout=5m"))
	}
	in := catalog.Input{Defaults: catalog.BuiltIn(), Containers: containers}
	b.ReportAllocs()
	for b.Loop() {
		catalog.Build(in)
	}
}
