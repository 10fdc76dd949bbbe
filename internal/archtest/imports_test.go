// Package archtest holds the directions in which packages may import each
// other, as a test. A new package has to be given a place in the table
// before it can be built into the product; a forbidden import names both
// ends and the rule.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/rouse-dev/rouse"

// allowed tells which packages of this module each package may import.
// Only the files of the product count, not its tests: a test may meet the
// real parts.
var allowed = map[string][]string{ // package -> packages of ours it may import
	"workload":              {},
	"protocol":              {"workload"},
	"activator":             {"workload", "protocol"},
	"scaler":                {"workload", "protocol", "tracing"},
	"tracing":               {"workload"},
	"tracing/otlp":          {"tracing"},
	"tracing/otlp/otlptest": {},
	"scaler/probe":          {"workload", "scaler"},
	"scaler/docker":         {"workload", "scaler"},
	"scaler/process":        {"workload", "scaler"},
	"scaler/runtimetest":    {"workload", "scaler"},
	"events":                {"workload", "events/natsd", "events/series"},
	"events/series":         {},
	"events/natsd":          {"events/series"},
	"events/eventstest":     {"workload", "events", "events/natsd"},
	"catalog":               {"workload", "internal/strict"},
	"router":                {"workload", "activator", "router/waitpage", "router/lean", "tracing"},
	"router/lean":           {},
	"router/waitpage":       {"workload"},
	"doctor":                {"workload"},
	"webhook":               {},
	"migration":             {"workload", "catalog", "internal/strict"},
	"api":                   {"workload"},
	"api/client":            {"workload", "api"},
	"api/sablier":           {"workload", "activator"},
	"loadtest":              {"loadtest/mimic"},
	"loadtest/mimic":        {},
	"loadtest/coldstart":    {"loadtest", "loadtest/mimic"},
	"loadtest/burst":        {},
	"loadtest/sablier":      {"loadtest/burst", "loadtest/coldstart", "loadtest/http1", "loadtest/latency"},
	"loadtest/schedule":     {},
	"loadtest/http1":        {},
	"loadtest/latency":      {},
	"loadtest/selftest":     {"loadtest/schedule", "loadtest/http1", "loadtest/latency", "loadtest/openloop", "loadtest/mimic"},
	"loadtest/trial":        {"loadtest/coldstart", "loadtest/schedule", "loadtest/latency", "loadtest/openloop"},
	"loadtest/report":       {"loadtest/burst", "loadtest/coldstart", "loadtest/latency", "loadtest/openloop", "loadtest/trial"},
	"loadtest/openloop":     {"loadtest/schedule", "loadtest/http1", "loadtest/latency"},
	"loadtest/soak":         {"loadtest/schedule", "loadtest/http1", "loadtest/latency", "loadtest/openloop"},
	"cmd/loadtest": {
		"loadtest", "loadtest/mimic", "loadtest/coldstart", "loadtest/burst", "loadtest/schedule", "loadtest/http1",
		"loadtest/openloop", "loadtest/sablier", "loadtest/selftest", "loadtest/trial", "loadtest/soak", "loadtest/report",
	},
	"cmd/rouse": {
		"workload", "activator", "scaler", "scaler/probe", "scaler/docker", "scaler/process",
		"events", "events/natsd", "events/series", "catalog", "doctor", "router", "router/waitpage", "api", "api/client", "api/sablier", "webhook", "migration", "internal/strict",
		"tracing", "tracing/otlp",
	},
	"internal/strict":        {},
	"internal/archtest":      {},
	"internal/explore":       {},
	"internal/dockertest":    {},
	"internal/testreport":    {},
	"internal/clockjump":     {},
	"internal/enginetest":    {"internal/dockertest"},
	"internal/proxytest":     {},
	"internal/browsertest":   {},
	"internal/bubble":        {},
	"system_test":            {},
	"system_test/simulation": {},
	"e2e":                    {},
}

// owned tells which packages alone may import a foreign module (a prefix of
// the import path), and which of the standard library are kept to a few.
var owned = map[string][]string{ // import path prefix -> packages of ours
	"github.com/nats-io/nats-server":  {"events/natsd", "events/eventstest"},
	"github.com/nats-io/":             {"events", "events/natsd", "events/eventstest"},
	"github.com/docker/docker":        {"scaler/docker", "internal/dockertest"},
	"github.com/spf13/":               {"cmd/rouse", "cmd/loadtest"},
	"github.com/stretchr/testify":     {"scaler/runtimetest", "events/eventstest", "internal/dockertest", "internal/proxytest", "internal/browsertest"},
	"testing":                         {"scaler/runtimetest", "events/eventstest", "internal/dockertest", "internal/enginetest", "internal/proxytest", "internal/browsertest", "internal/bubble", "tracing/otlp/otlptest"},
	"net/http":                        {"router", "router/waitpage", "router/lean", "api", "api/client", "api/sablier", "webhook", "scaler/probe", "loadtest", "loadtest/mimic", "loadtest/coldstart", "loadtest/burst", "loadtest/http1", "loadtest/openloop", "loadtest/sablier", "loadtest/soak", "cmd/rouse", "cmd/loadtest", "internal/dockertest", "scaler/docker", "tracing/otlp/otlptest"},
	"net/http/httputil":               {"router"},
	"go.yaml.in/yaml":                 {"internal/strict", "catalog", "migration", "cmd/rouse"},
	"github.com/cenkalti/backoff":     {"scaler", "scaler/docker", "events", "catalog", "router", "webhook"},
	"github.com/prometheus/client_go": {"router", "activator", "scaler", "events", "events/series", "api", "api/sablier", "webhook", "cmd/rouse", "tracing/otlp"},
	"go.opentelemetry.io/":            {"tracing/otlp", "tracing/otlp/otlptest"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		rule, known := allowed[name]
		if !known {
			t.Errorf("%s has no place in the import table: add it to archtest", name)
			continue
		}
		for _, imported := range p.Imports {
			if ours, ok := strings.CutPrefix(imported, module+"/"); ok && !slices.Contains(rule, ours) {
				t.Errorf("%s imports %s; it may import %v", name, ours, rule)
			}
		}
	}
}

func TestForeignImportsHaveOneOwner(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, imported := range p.Imports {
			if prefix, owners := ownerOf(imported); prefix != "" && !slices.Contains(owners, name) {
				t.Errorf("%s imports %s; only %v may", name, imported, owners)
			}
		}
	}
}

// The workload package is the leaf: the standard library, and of it nothing
// that does I/O.
func TestWorkloadIsALeafWithoutIO(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath != module+"/workload" {
			continue
		}
		require.NotEmpty(t, p.Imports)
		for _, imported := range p.Imports {
			first, _, _ := strings.Cut(imported, "/")
			require.NotContains(t, first, ".", "workload imports %s", imported)
			require.NotContains(t, []string{"os", "net", "net/http", "io", "os/exec", "log/slog"}, imported)
		}
		return
	}
	t.Fatal("no package workload")
}

// ownerOf finds the longest prefix of owned that path falls under; a prefix
// without a slash or dot at its end stands for itself and what is below it.
func ownerOf(path string) (string, []string) {
	best := ""
	for prefix := range owned {
		under := path == prefix || strings.HasPrefix(path, prefix+"/") ||
			strings.Contains(prefix, ".") && strings.HasPrefix(path, prefix)
		if under && len(prefix) > len(best) {
			best = prefix
		}
	}
	return best, owned[best]
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	dec := json.NewDecoder(strings.NewReader(string(out)))
	var pkgs []pkg
	for {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			require.NotEmpty(t, pkgs)
			return pkgs
		}
		require.NoError(t, err)
		pkgs = append(pkgs, p)
	}
}
