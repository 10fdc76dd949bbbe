package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/doctor"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/internal/dockertest"
	"github.com/rouse-dev/rouse/workload"
)

// diagnose runs the doctor where rouse.yaml says that.
func diagnose(t *testing.T, s *standIn, config string) (doctor.Report, int) {
	t.Helper()
	quiet(t)
	require.NoError(t, os.WriteFile("rouse.yaml", []byte(config), 0o600))
	s.History = api.NewHistory(0, 0)
	server := httptest.NewServer(api.New(api.Config{}, s))
	t.Cleanup(server.Close)
	got := invoke(t, "doctor", "--admin", server.URL, "-o", "json")
	var r doctor.Report
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r), got.stdout+got.stderr)
	return r, got.code
}

func found(r doctor.Report, code string) []doctor.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f doctor.Finding) bool { return f.Code != code })
}

func TestDoctorHasNothingToSayOfWhatIsWell(t *testing.T) {
	r, code := diagnose(t, &standIn{workloads: []api.Workload{wiki()}}, `docker: { host: "" }`)
	assert.Equal(t, exitOK, code)
	assert.Empty(t, r.Findings)
	assert.Len(t, r.Checked, 2)
	var left []string
	for _, u := range r.Unchecked {
		left = append(left, u.What+": "+u.Why)
	}
	assert.Equal(t, []string{
		"containers: docker.host is empty",
		"NATS: the server is embedded and does not listen (nats.listen); Rouse itself says above whether it has it",
	}, left)
}

func TestDoctorTellsPlaceAndFixAndExitsWithOne(t *testing.T) {
	quiet(t)
	require.NoError(t, os.WriteFile("rouse.yaml", []byte("lisen: x\ndocker: { host: \"\" }\n"), 0o600))
	got := invoke(t, "doctor", "--admin", "127.0.0.1:1")
	assert.Equal(t, exitFailure, got.code)
	assert.Equal(t, "rouse: 2 errors found\n", got.stderr)
	assert.True(t, strings.HasPrefix(got.stdout, `ERROR  http://127.0.0.1:1  (server)
  what  cannot reach Rouse at http://127.0.0.1:1: `), got.stdout)
	assert.Contains(t, got.stdout, `
ERROR  rouse.yaml:1:1  (config)
  what  unknown key "lisen"
  why   nothing starts with this configuration, and a running process keeps the one before
  fix   did you mean listen?

checked      configuration (rouse.yaml)
not checked  containers: docker.host is empty
`)
	assert.True(t, strings.HasSuffix(got.stdout, "\n\n2 errors, 0 warnings, 0 notes\n"), got.stdout)
	assert.NotContains(t, got.stdout, "\x1b")
	assert.Equal(t, exitUsage, invoke(t, "doctor", "--timeout", "0s").code)
}

func TestDoctorTellsWhatARunningRouseKnows(t *testing.T) {
	r, code := diagnose(t, &standIn{
		workloads: []api.Workload{shop(), wiki()},
		problems:  []workload.Problem{{Workload: "mail", Place: "mail", Message: "two ports", Fix: "set rouse.port"}},
		checks:    []api.Check{{Name: "nats", Detail: "gone"}},
	}, `docker: { host: "" }`)
	assert.Equal(t, exitFailure, code)
	assert.Len(t, found(r, "start_failed"), 1)
	assert.Len(t, found(r, "not_ready"), 1)
	require.Len(t, found(r, "description"), 1)
	assert.Equal(t, "set rouse.port", found(r, "description")[0].Fix)
}

func TestDoctorWithoutASocketSaysWhereToLook(t *testing.T) {
	r, _ := diagnose(t, &standIn{}, "docker: { host: unix:///none/s }\n")
	require.Len(t, found(r, "engine"), 1)
	assert.Contains(t, found(r, "engine")[0].What, "there is no such socket")
}

// Each of these containers is on the real engine.
func TestDoctorLooksAtTheContainersOfTheEngine(t *testing.T) {
	prefix := strings.ToLower(dockertest.Prefix(t))
	network := prefix + "-net"
	dockertest.Network(t, network, "")
	label := func(more ...string) map[string]string {
		labels := map[string]string{prefix + ".enable": "true"}
		for i := 0; i < len(more); i += 2 {
			labels[prefix+"."+more[i]] = more[i+1]
		}
		return labels
	}
	for name, s := range map[string]dockertest.Spec{
		"fighter":   {Labels: label("host", "a.test"), Restart: "always"},
		"ports":     {Labels: label("host", "b.test"), Expose: []string{"9090/tcp"}},
		"misspelt":  {Labels: label("hots", "c.test")},
		"passing":   {Labels: label(), AutoRemove: true},
		"elsewhere": {Labels: label("network", "front"), Network: network},
		"alone":     {Labels: label(), Network: "none"},
		"stray":     {Labels: map[string]string{prefix + ".host": "d.test"}, Restart: "always"},
		"slip":      {Labels: map[string]string{prefix + ".enabel": "true"}},
		"slash":     {Labels: map[string]string{strings.ToUpper(prefix) + "_enable": "true"}},
	} {
		s.Name = prefix + "-" + name
		dockertest.Create(t, s)
	}
	r, code := diagnose(t, &standIn{}, "docker: { label_prefix: "+prefix+" }\n")
	assert.Equal(t, exitFailure, code)
	for name, code := range map[string]string{
		"fighter": "restart_always", "ports": "port", "misspelt": "label", "passing": "auto_remove", "elsewhere": "no_network",
		"alone": "no_network", "stray": "not_enabled", "slash": "label",
	} {
		assert.True(t, slices.ContainsFunc(found(r, code), func(f doctor.Finding) bool { return f.Place == prefix+"-"+name }), "%s: %+v", name, r.Findings)
	}
	assert.True(t, slices.ContainsFunc(found(r, "no_health_check"), func(f doctor.Finding) bool { return f.Place == prefix+"-fighter" }))
	for _, f := range r.Findings {
		if strings.HasSuffix(f.Place, "-stray") {
			assert.Equal(t, "not_enabled", f.Code, "nobody looks into it")
		}
	}
	for _, code := range []string{"engine", "api_version", "socket_plain", "clock"} {
		assert.Empty(t, found(r, code), "of an engine that is well")
	}
}

func TestDoctorAsksNATS(t *testing.T) {
	server := eventstest.Start(t)
	bus := server.Bus("one")
	require.NoError(t, bus.PutWorkload(t.Context(), workload.Workload{Name: "wiki", Node: "far"}))
	require.NoError(t, bus.ReportActivity(t.Context(), workload.Activity{Gateway: "gw"}))
	r, code := diagnose(t, &standIn{}, "docker: { host: \"\" }\nnats: { url: \"nats://"+server.Addr()+"\" }\n")
	assert.Equal(t, exitFailure, code)
	require.Len(t, found(r, "no_scaler"), 1)
	assert.Equal(t, "node far", found(r, "no_scaler")[0].Place)
	assert.Empty(t, found(r, "clock"))

	r, _ = diagnose(t, &standIn{}, "docker: { host: \"\" }\nnats: { url: \"nats://user:secret@127.0.0.1:1\" }\n")
	require.Len(t, found(r, "nats"), 1)
	assert.NotContains(t, found(r, "nats")[0].Place+found(r, "nats")[0].What, "secret")
}

func TestDoctorImportsFilesOfOtherProducts(t *testing.T) {
	data, err := filepath.Abs("../../migration/testdata")
	require.NoError(t, err)
	quiet(t)
	for _, name := range []string{"sablier.compose", "lazytainer.compose", "godoxy.compose", "containernursery.config"} {
		files, err := filepath.Glob(filepath.Join(data, name+".y*ml"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		want, err := os.ReadFile(filepath.Join(data, name+".want.yaml"))
		require.NoError(t, err)
		got := invoke(t, "doctor", "--import", files[0])
		assert.Equal(t, exitOK, got.code)
		assert.Equal(t, strings.ReplaceAll(string(want), filepath.Base(files[0]), files[0]), got.stdout)
		assert.Empty(t, got.stderr)
	}
	broken := configFile(t, "services:\n  a:\n    labels: {proxy.idle_timeout: soon}\n")
	got := invoke(t, "doctor", "--import", broken)
	assert.Equal(t, exitConfig, got.code)
	assert.Empty(t, got.stdout)
	assert.Contains(t, got.stderr, broken+`:3:14: proxy.idle_timeout: "soon" is not a duration`)
	got = invoke(t, "doctor", "--import", "/does/not/exist.yml")
	assert.Equal(t, exitConfig, got.code)
	assert.Contains(t, got.stderr, "/does/not/exist.yml: cannot be read: no such file or directory")
}
