package router

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

func noMeter(string) *meter { return nil }

func tableOf(t testing.TB, workloads ...workload.Workload) *table {
	t.Helper()
	routes, problems := newTable(workloads, noMeter)
	require.Empty(t, problems)
	return routes
}

func site1(name, path string, hosts ...string) workload.Workload {
	return workload.Workload{Name: name, Path: path, Hosts: hosts, Node: "n1", Origin: name + " (container)"}
}

func TestMatchFindsTheMostSpecificRoute(t *testing.T) {
	routes := tableOf(t,
		site1("root", "/", "example.com"),
		site1("wiki", "/wiki", "example.com"),
		site1("wiki-api", "/wiki/api/", "example.com"),
		site1("star", "/", "*.example.com"),
		site1("star-docs", "/docs", "*.example.com"),
		site1("exact", "/only", "a.example.com"),
		site1("six", "", "::1"),
	)
	for _, c := range []struct{ host, path, want string }{
		{"example.com", "/", "root"},
		{"example.com", "", "root"},
		{"example.com", "*", "root"},
		{"example.com", "/wiki", "wiki"},
		{"example.com", "/wiki/", "wiki"},
		{"example.com", "/wiki/page", "wiki"},
		{"example.com", "/wikipedia", "root"},
		{"example.com", "/wiki/api", "wiki-api"},
		{"example.com", "/wiki/api/v1", "wiki-api"},
		{"example.com", "/wiki/apis", "wiki"},
		{"EXAMPLE.com", "/", "root"},
		{"example.com:8080", "/", "root"},
		{"example.com.", "/", "root"},
		{"Example.COM.:443", "/wiki", "wiki"},
		{"b.example.com", "/", "star"},
		{"b.example.com", "/docs/x", "star-docs"},
		{"a.example.com", "/only/x", "exact"},
		{"a.example.com", "/else", "star"}, // the exact host has no such path
		{"b.c.example.com", "/", ""},       // the wildcard is one label
		{".example.com", "/", ""},
		{"[::1]:8080", "/", "six"},
		{"[0:0::0:1]", "/", "six"},
		{"[::1", "/", ""},
		{"[fe80::1%25eth0]", "/", ""},
		{"", "/", ""},
		{"other.org", "/", ""},
		{strings.Repeat("a", 300) + ".example.com", "/", ""},
	} {
		got := ""
		if r := routes.match(c.host, c.path); r != nil {
			got = r.workload.Name
		}
		assert.Equal(t, c.want, got, "%s %s", c.host, c.path)
	}
}

func TestNamedFindsOnlyWorkloadsOfThatHost(t *testing.T) {
	routes := tableOf(t, site1("a", "/a", "one.org"), site1("b", "/b", "*.org"), site1("c", "/", "three.org"))
	require.NotNil(t, routes.named("one.org:80", "a"))
	require.NotNil(t, routes.named("one.org", "b"))
	assert.Nil(t, routes.named("one.org", "c"))
	assert.Nil(t, routes.named("nowhere", "a"))
}

func TestFirstNameWinsAConflictAndTheOtherIsReported(t *testing.T) {
	routes, problems := newTable([]workload.Workload{
		{Name: "zoo", Node: "n2", Path: "/x/", Hosts: []string{"Example.com.", "zoo.org"}, Origin: "zoo (container)"},
		{Name: "ant", Node: "n1", Path: "/x", Hosts: []string{"example.com", "EXAMPLE.com"}, Origin: "rouse.yaml:3:1"},
	}, noMeter)
	require.Len(t, problems, 1)
	assert.Equal(t, "zoo", problems[0].Workload)
	assert.Equal(t, "zoo (container)", problems[0].Place)
	assert.Contains(t, problems[0].Message, "ant")
	assert.Contains(t, problems[0].Message, "rouse.yaml:3:1")
	assert.Equal(t, "ant", routes.match("example.com", "/x").workload.Name)
	assert.Equal(t, "zoo", routes.match("zoo.org", "/x").workload.Name, "its other hosts stay")
}

func TestTwoNodesWithOneNameAreAConflict(t *testing.T) {
	_, problems := newTable([]workload.Workload{
		{Name: "wiki", Node: "n1", Hosts: []string{"wiki.org"}},
		{Name: "wiki", Node: "n2", Hosts: []string{"wiki.org"}},
	}, noMeter)
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0].Message, "n1")
}

func TestWhatIsNoHostIsReported(t *testing.T) {
	for _, host := range []string{"", "*", "a.*.org", "*.*.org", "**.org", "[::1", "a..", ":80"} {
		_, problems := newTable([]workload.Workload{site1("w", "/", host)}, noMeter)
		require.Len(t, problems, 1, "%q", host)
		assert.NotEmpty(t, problems[0].Fix)
	}
}

func manyHosts() []workload.Workload {
	var ws []workload.Workload
	for i := range 1000 {
		ws = append(ws, site1(fmt.Sprintf("w%d", i), "/", fmt.Sprintf("w%d.example.com", i)))
	}
	return append(ws, site1("star", "/", "*.wild.example.com"))
}

func TestMatchDoesNotAllocate(t *testing.T) {
	routes := tableOf(t, manyHosts()...)
	for _, host := range []string{"w7.example.com", "W7.Example.Com:8080", "x.wild.example.com", "unknown.org", "[::1]:80"} {
		assert.Zero(t, testing.AllocsPerRun(100, func() { routes.match(host, "/a/b") }), host)
	}
}

func BenchmarkMatch(b *testing.B) {
	routes := tableOf(b, manyHosts()...)
	for _, host := range []string{"w777.example.com", "W777.example.com:8080", "a.wild.example.com", "unknown.org"} {
		b.Run(host, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				routes.match(host, "/some/path")
			}
		})
	}
}

func FuzzNormalizeHost(f *testing.F) {
	for _, host := range []string{"example.com", "EXAMPLE.com:80", "[::1]:80", "::1", "a.", "a..", ":", "[", "[]", "%", "[::ffff:1.2.3.4]"} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		var room, again hostName
		normal := string(room.normalize(host))
		if normal == "" {
			return
		}
		if len(normal) > maxHost || strings.HasSuffix(normal, ".") {
			t.Fatalf("%q became %q", host, normal)
		}
		if strings.ContainsFunc(normal, func(c rune) bool { return 'A' <= c && c <= 'Z' }) {
			t.Fatalf("%q became %q: upper case", host, normal)
		}
		if _, err := netip.ParseAddr(normal); err != nil && strings.Contains(normal, ":") {
			t.Fatalf("%q became %q: a port, or half an address", host, normal)
		}
		if twice := string(again.normalize(normal)); twice != normal {
			t.Fatalf("%q became %q, and that %q", host, normal, twice)
		}
	})
}

// FuzzMatch compares the table with the rule written out.
func FuzzMatch(f *testing.F) {
	f.Add("a.org", "/x", "a.org", "/x/y")
	f.Add("*.org", "/", "b.org", "/")
	f.Add("*.b.org", "/x/", "a.b.org:1", "/xy")
	f.Fuzz(func(t *testing.T, host, path, asked, askedPath string) {
		routes, problems := newTable([]workload.Workload{site1("w", path, host)}, noMeter)
		if len(problems) > 0 {
			return
		}
		found := routes.match(asked, askedPath) != nil
		if want := hostCovers(host, asked) && pathCovers(path, askedPath); found != want {
			t.Fatalf("host %q path %q asked %q %q: found %v, want %v", host, path, asked, askedPath, found, want)
		}
	})
}

func hostCovers(host, asked string) bool {
	suffix, wild := strings.CutPrefix(host, "*.")
	var a, b hostName
	want, got := string(a.normalize(suffix)), string(b.normalize(asked))
	if wild {
		label, rest, ok := strings.Cut(got, ".")
		return ok && label != "" && rest == want
	}
	return got == want && got != ""
}

func pathCovers(prefix, path string) bool {
	prefix = strings.Trim(prefix, "/")
	return prefix == "" || path == "/"+prefix || strings.HasPrefix(path, "/"+prefix+"/")
}
