package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/internal/strict"
)

func readEntries(t *testing.T, text string) ([]catalog.Entry, []strict.Problem) {
	t.Helper()
	var doc yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(text), &doc))
	return catalog.Entries("f.yaml", doc.Content[0])
}

func TestEntriesKeepThePlaceOfEachKey(t *testing.T) {
	es, problems := readEntries(t, "- name: wiki\n  host: [Wiki.example.com]\n  process:\n    command: [a, b]\n")
	require.Empty(t, problems)
	require.Len(t, es, 1)
	require.Equal(t, "f.yaml:1:3", es[0].Place)
	require.Equal(t, []string{"a", "b"}, es[0].Process.Command)
	require.Equal(t, []strict.Setting{
		{Key: "name", Text: []string{"wiki"}, Place: "f.yaml:1:3"},
		{Key: "host", Text: []string{"Wiki.example.com"}, Place: "f.yaml:2:3"},
		{Key: "process.command", Text: []string{"a", "b"}, Place: "f.yaml:4:5"},
	}, es[0].Settings)
}

func TestABadEntryIsLeftOutAndEveryProblemTold(t *testing.T) {
	es, problems := readEntries(t, `- name: good
- host: nameless.example.com
- name: two
  container: a
  service: b
- {name: empty, process: {dir: /}}
- {name: "?", prot: 80}
- word
- {name: env, process: {command: [x], env: [NOVALUE, "=x"]}}
- {name: text, process: {command: "./serve --fast"}}
- {name: none, process: {command: []}}
- {name: nothing, process: {}}
`)
	require.Len(t, es, 1)
	require.Equal(t, "good", es[0].Name)
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.Error())
	}
	require.Equal(t, []string{
		"f.yaml:2:3: a workload has no name (add name: …)",
		"f.yaml:3:3: two is more than one of container, service and process (keep one of them)",
		`f.yaml:6:3: empty is a process without a command (add process: { command: ["program", "argument"] })`,
		`f.yaml:7:10: name: not a workload name: "?" has '?' at byte 1: use letters, digits, '.', '_' and '-', the first a letter or digit`,
		`f.yaml:7:15: unknown key "prot" (did you mean port?)`,
		"f.yaml:8:3: a workload is not a mapping (write - name: …)",
		"f.yaml:9:45: process.env: an item is not KEY=value (write KEY=value, or a mapping KEY: value)",
		"f.yaml:9:54: process.env: an item is not KEY=value (write KEY=value, or a mapping KEY: value)",
		"f.yaml:10:35: process.command is one value where a list is wanted",
		`f.yaml:11:3: none is a process without a command (add process: { command: ["program", "argument"] })`,
		`f.yaml:12:3: nothing is a process without a command (add process: { command: ["program", "argument"] })`,
	}, lines)
}

func TestWorkloadsMayBeEmptyButNotAWord(t *testing.T) {
	es, problems := readEntries(t, "~")
	require.Empty(t, es)
	require.Empty(t, problems)
	_, problems = readEntries(t, "wiki")
	require.Equal(t, "f.yaml:1:1: workloads is not a list (write - name: … for each workload)", problems[0].Error())
}

func TestHostsHaveOneSpelling(t *testing.T) {
	for in, want := range map[string]string{
		"wiki.example.com": "wiki.example.com", "WIKI.Example.COM.": "wiki.example.com", "localhost:8080": "localhost",
		"*.Example.com": "*.example.com", "*.example.com:443": "*.example.com", "my_app.localhost": "my_app.localhost",
		"bücher.example": "xn--bcher-kva.example", "XN--BCHER-KVA.example": "xn--bcher-kva.example",
		"192.168.1.5": "192.168.1.5", "[::1]": "::1", "[2001:DB8::1]:80": "2001:db8::1", "2001:DB8::1": "2001:db8::1",
		" padded.example ": "padded.example", "例え。テスト": "xn--r8jz45g.xn--zckzah", "::ffff:10.0.0.1": "10.0.0.1",
	} {
		got, err := catalog.NormalHost(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
		again, err := catalog.NormalHost(got)
		require.NoError(t, err, in)
		require.Equal(t, got, again)
	}
	for _, in := range []string{
		"", "*", "*.", ".", "a..b", "*.*.b", "a.*.b", "w*.b", "-a.b", "a-.b", "http://a.b", "a.b/c", "a b", "a:b:c", "*.10.0.0.1",
		"xn--zz", "a\x00b", string(make([]byte, 300)), "fe80::1%eth0",
	} {
		got, err := catalog.NormalHost(in)
		require.Error(t, err, "%q gave %q", in, got)
	}
}

func TestPathsHaveOneSpelling(t *testing.T) {
	for in, want := range map[string]string{"/": "/", "/app": "/app", "/app/": "/app", "/a/b": "/a/b", "/ä": "/ä"} {
		got, err := catalog.NormalPath(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", "app", "//", "/a//b", "/a/../b", "/./", "/a?b", "/a#b", "/a%2fb", "/a b", "/a\n", `/a\b`} {
		_, err := catalog.NormalPath(in)
		require.Error(t, err, in)
	}
}
