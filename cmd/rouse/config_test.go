package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/internal/strict"
)

// configFile writes a config file and returns its path.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rouse.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// problemsOf are the lines of a configuration's error, with the folder of the
// file cut off.
func problemsOf(t *testing.T, path string, err error) []string {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, exitConfig, exitCode(err))
	return strings.Split(strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", ""), "\n")
}

func TestAnEmptyConfigurationIsGood(t *testing.T) {
	c, err := loadConfig(configFile(t, ""), nil, nil)
	require.NoError(t, err)
	require.Equal(t, ":8080", c.Listen)
	require.Equal(t, "local", c.Node)
	require.Equal(t, int64(64<<20), c.Limits.QueueBytes)
	require.Equal(t, 15*time.Minute, c.Defaults.IdleTimeout)
	require.Equal(t, "default", c.Origin("listen"))
}

func TestFlagsGoBeforeEnvironmentBeforeFileBeforeDefaults(t *testing.T) {
	path := configFile(t, "listen: \":1\"\nnode: file\ngateway: file\nno_wake: { paths: [/a] }\n")
	c, err := loadConfig(path,
		[]string{"ROUSE_NODE=env", "ROUSE_GATEWAY=env", "ROUSE_NO_WAKE_PATHS=/b, /c", "ROUSE_DEFAULTS_IDLE_TIMEOUT=1m", "OTHER=x"},
		map[string]string{"gateway": "flag", "nats.store_dir": "/flag"})
	require.NoError(t, err)
	require.Equal(t, []string{":1", "env", "flag", "/flag", "1m0s"}, []string{c.Listen, c.Node, c.Gateway, c.NATS.StoreDir, c.Defaults.IdleTimeout.String()})
	require.Equal(t, []string{"/b", "/c"}, c.NoWake.Paths)
	for key, want := range map[string]string{
		"listen": path + ":1:1", "node": "ROUSE_NODE", "gateway": "--gateway", "nats.store_dir": "--nats-store-dir",
		"no_wake.paths": "ROUSE_NO_WAKE_PATHS", "limits.queue_bytes": "default",
	} {
		require.Equal(t, want, c.Origin(key), key)
	}
}

func TestEveryProblemOfEverySourceIsReported(t *testing.T) {
	path := configFile(t, `lisen: ":80"
admin: { listen: "0.0.0.0:8081" }
nats: { url: "http://x", replicas: 9 }
defaults: { idle_timeout: 15, stop: pasue }
limits: { queue_bytes: lots, starts_in_parallel: 0 }
docker: { host: /var/run/docker.sock, address: direct }
workloads:
  - { name: a, host: x.example.com, container: a }
  - { name: b, host: x.example.com, container: b, prot: 80 }
  - { name: c, host: x.example.com, container: c }
`)
	_, err := loadConfig(path, []string{"ROUSE_LISTN=:1", "ROUSE_LOG_LEVEL=loud"}, map[string]string{"gatway": "x", "node": "no such"})
	require.Equal(t, []string{
		`rouse.yaml:1:1: unknown key "lisen" (did you mean listen?)`,
		`rouse.yaml:3:14: nats.url: it is not the URL of a NATS server (write nats://host:4222, tls://, ws:// or wss://)`,
		`rouse.yaml:3:36: nats.replicas: "9" is not a whole number from 1 to 5 (write one without a unit)`,
		`rouse.yaml:4:27: defaults.idle_timeout: "15" is not a duration (write numbers with units: 500ms, 90s, 15m, 1h30m)`,
		`rouse.yaml:4:37: defaults.stop: "pasue" is none of stop, pause, throttle (did you mean pause?)`,
		`rouse.yaml:5:24: limits.queue_bytes: "lots" is not a size of 1B or more (write a number of bytes or one with a unit: 512KiB, 64MiB, 2GiB)`,
		`rouse.yaml:5:50: limits.starts_in_parallel: "0" is not a whole number from 1 to 1000 (write one without a unit)`,
		`rouse.yaml:6:17: docker.host: "/var/run/docker.sock" is not the address of a Docker engine (write unix:///var/run/docker.sock or tcp://host:2376)`,
		`rouse.yaml:6:48: docker.address: "direct" is none of auto, container, published (known here: auto, container, published)`,
		`rouse.yaml:9:51: unknown key "prot" (did you mean port?)`,
		`ROUSE_LISTN: unknown variable (did you mean ROUSE_LISTEN?)`,
		`ROUSE_LOG_LEVEL: log.level: "loud" is none of debug, info, warn, error (known here: debug, info, warn, error)`,
		`--gatway: unknown key gatway (did you mean gateway?)`,
		`--node: node: not a workload name: "no such" has ' ' at byte 3: use letters, digits, '.', '_' and '-', the first a letter or digit`,
		`rouse.yaml:2:10: admin.listen 0.0.0.0:8081 is not a loopback address, and there is no token (set admin.token_file, or listen on 127.0.0.1)`,
		`rouse.yaml:10:16: the route x.example.com/ belongs to a already (rouse.yaml:8:5) (give one of them another host or path)`,
	}, problemsOf(t, path, err))
}

func TestWhatContradictsIsAProblem(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for text, want := range map[string]string{
		`admin: { listen: ":9" }`:                    "admin.listen :9 is not a loopback address",
		`admin: { listen: "[::]:9" }`:                "not a loopback address",
		`admin: { token_file: /no/such }`:            "admin.token_file /no/such cannot be read: no such file or directory",
		`admin: { token_file: "` + empty + `" }`:     "is empty",
		`listen: "127.0.0.1:8081"`:                   "admin.listen 127.0.0.1:8081 is also the address of listen",
		`{listen: ":8081"}`:                          "is also the address of listen",
		`sablier: { listen: ":8080" }`:               "sablier.listen :8080 is also the address of listen",
		`tls: { cert: x }`:                           "tls.cert is set and tls.key is not",
		`tls: { key: x }`:                            "tls.key is set and tls.cert is not",
		`tls: { cert: x, key: y }`:                   "cannot be used",
		`nats: { replicas: 3 }`:                      "the embedded server keeps one copy, not 3",
		`nats: { url: "nats://a", listen: ":4222" }`: "nats.listen is the embedded server's",
		`nats: { url: "nats://a", replicas: 2 }`:     "2 copies survive no more losses than 1",
		`nats: { url: "nats://a", creds: /no/such }`: "nats.creds /no/such cannot be read",
		`listen: 8080`:                               `"8080" is not an address to listen on`,
		`listen: ":http"`:                            `"http" is not a port`,
		`listen: "http://x:80"`:                      `listen`,
		`docker: { label_prefix: Rouse. }`:           `is not a prefix of labels`,
		`no_wake: { methods: ["GET IT"] }`:           `"GET IT" is not a method`,
		`no_wake: { answer: 0 }`:                     `"0" is not a whole number from 200 to 599`,
		"workloads: [{name: a, depends_on: b, container: a}, {name: b, depends_on: a, container: b}]": "dependencies go in a circle: a -> b -> a",
	} {
		path := configFile(t, text)
		_, err := loadConfig(path, nil, nil)
		lines := problemsOf(t, path, err)
		require.Len(t, lines, 1, text)
		require.Contains(t, lines[0], want, text)
		require.Regexp(t, `^(rouse\.yaml:\d+:\d+|default): `, lines[0])
	}
}

func TestWhatDoesNotCollideIsNoProblem(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	for _, text := range []string{
		"listen: \":0\"\nadmin: { listen: \"127.0.0.1:0\" }",
		"listen: \"127.0.0.2:8081\"",
		"admin: { listen: \":8081\", token_file: \"" + token + "\" }",
		"admin: { listen: \"localhost:8081\" }",
		"admin: { listen: \"[::1]:8081\" }",
		"nats: { url: \"nats://a:4222, tls://b:4222\", replicas: 3 }",
	} {
		_, err := loadConfig(configFile(t, text), nil, nil)
		require.NoError(t, err, text)
	}
}

func TestAMissingFileIsAProblemOnlyWhenItWasNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	c, err := loadConfig("", nil, nil)
	require.NoError(t, err)
	require.Empty(t, c.File)
	_, err = loadConfig("gone.yaml", nil, nil)
	require.ErrorContains(t, err, "gone.yaml: cannot be read: no such file or directory")
	_, err = loadConfig("", []string{"ROUSE_CONFIG=gone.yaml"}, nil)
	require.ErrorContains(t, err, "gone.yaml: cannot be read")
	require.NoError(t, os.WriteFile("rouse.yaml", []byte("node: here"), 0o600))
	c, err = loadConfig("", nil, nil)
	require.NoError(t, err)
	require.Equal(t, "here", c.Node)
	require.Equal(t, "rouse.yaml", c.File)
}

func TestVariablesThatOthersInjectAreNoProblem(t *testing.T) {
	_, err := loadConfig(configFile(t, ""), []string{
		"ROUSE_SERVICE_HOST=10.0.0.1", "ROUSE_SERVICE_PORT=80", "ROUSE_SERVICE_PORT_HTTP=80", "ROUSE_PORT=tcp://10.0.0.1:80",
		"ROUSE_PORT_80_TCP=tcp://10.0.0.1:80", "ROUSE_PORT_80_TCP_ADDR=10.0.0.1", "ROUSE_GATEWAY_SERVICE_HOST=10.0.0.1",
		"ROUSE_ADMIN=http://localhost:8081", "ROUSE_TOKEN=x", "ROUSE_CONFIG=",
	}, nil)
	require.NoError(t, err)
}

// run executes `rouse config ARGS` for a configuration that was loaded.
func runConfig(c Config, loadErr error, args ...string) (string, error) {
	var out bytes.Buffer
	root := &cobra.Command{Use: "rouse", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().StringP("output", "o", "table", "")
	root.AddCommand(newConfigCommand(func() (Config, error) { return c, loadErr }))
	root.SetArgs(append([]string{"config"}, args...))
	root.SetOut(&out)
	err := root.Execute()
	return out.String(), err
}

func TestWhatIsShownCanBeReadBack(t *testing.T) {
	full, err := loadConfig("../../deploy/rouse.yaml", nil, nil)
	require.NoError(t, err)
	for _, args := range [][]string{{"show"}, {"show", "--origin"}} {
		shown, err := runConfig(full, nil, args...)
		require.NoError(t, err)
		back, err := loadConfig(configFile(t, shown), nil, nil)
		require.NoError(t, err, shown)
		require.Equal(t, full.view()["limits"], back.view()["limits"])
		require.Equal(t, full.values(), back.values())
		require.Len(t, back.Workloads, len(full.Workloads))
		for i, e := range back.Workloads {
			require.Equal(t, full.Workloads[i].Process, e.Process)
			require.Equal(t, texts(full.Workloads[i].Settings), texts(e.Settings))
		}
	}
}

func texts(settings []strict.Setting) map[string][]string {
	m := map[string][]string{}
	for _, s := range settings {
		m[s.Key] = s.Text
	}
	return m
}

func TestShowTellsOriginsAndHidesPasswords(t *testing.T) {
	path := configFile(t, "listen: \":1\"\nworkloads:\n  - name: a\n    container: a\n")
	c, err := loadConfig(path, []string{"ROUSE_NATS_URL=nats://user:hunter2@a:4222,nats://t0ken@b"}, map[string]string{"node": "n"})
	require.NoError(t, err)
	for _, args := range [][]string{{"show"}, {"show", "--origin"}, {"show", "-o", "json"}, {"show", "--origin", "-o", "json"}} {
		out, err := runConfig(c, nil, args...)
		require.NoError(t, err)
		require.NotContains(t, out, "hunter2")
		require.NotContains(t, out, "t0ken")
		require.Contains(t, out, "nats://user:xxxxx@a:4222,nats://xxxxx@b")
	}
	out, err := runConfig(c, nil, "show", "--origin")
	require.NoError(t, err)
	for _, line := range []string{
		`listen: :1 # ` + path + `:1:1`, "node: n # --node", "url: nats://user:xxxxx@a:4222,nats://xxxxx@b # ROUSE_NATS_URL",
		"queue_bytes: 64MiB # default", "- name: a # " + path + ":3:5", "container: a # " + path + ":4:5",
	} {
		require.Contains(t, out, line)
	}
	out, err = runConfig(c, nil, "show", "--origin", "-o", "json")
	require.NoError(t, err)
	var tree struct {
		Listen    string
		Limits    map[string]any
		Workloads []map[string]any
		Origins   map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(out), &tree))
	require.Equal(t, ":1", tree.Listen)
	require.Equal(t, float64(1000), tree.Limits["queue_requests"])
	require.Equal(t, "a", tree.Workloads[0]["name"])
	require.Equal(t, "ROUSE_NATS_URL", tree.Origins["nats.url"])
}

func TestCheckAndShowEndWithTheProblems(t *testing.T) {
	bad := problems{{Place: "f:1:1", Message: "wrong", Fix: "mend it"}}
	for _, command := range []string{"check", "show"} {
		out, err := runConfig(defaultConfig(), bad.err(), command)
		require.Equal(t, exitConfig, exitCode(err))
		require.EqualError(t, err, "f:1:1: wrong (mend it)")
		require.Equal(t, command == "show", strings.Contains(out, "listen:"))
	}
	out, err := runConfig(defaultConfig(), nil, "check")
	require.NoError(t, err)
	require.Equal(t, "no file, defaults: good, 0 workloads\n", out)
}

// schemaKeys lists the dotted keys of a schema, those of a list's items below
// its own.
func schemaKeys(schema map[string]any, prefix string) []string {
	var keys []string
	properties, _ := schema["properties"].(map[string]any)
	for name, v := range properties {
		sub := v.(map[string]any)
		inner := schemaKeys(sub, prefix+name+".")
		if items, ok := sub["items"].(map[string]any); ok && len(inner) == 0 {
			inner = schemaKeys(items, prefix+name+".")
		}
		if len(inner) == 0 {
			inner = []string{prefix + name}
		}
		keys = append(keys, inner...)
	}
	return keys
}

// yamlKeys lists the dotted keys of a file in the same way.
func yamlKeys(n *yaml.Node, prefix string, keys map[string]bool) {
	switch n.Kind {
	case yaml.DocumentNode, yaml.SequenceNode:
		for _, c := range n.Content {
			yamlKeys(c, prefix, keys)
		}
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			keys[prefix+n.Content[i].Value] = true
			yamlKeys(n.Content[i+1], prefix+n.Content[i].Value+".", keys)
		}
	}
}

func TestTheAnnotatedFileHasEveryKeyOfTheSchema(t *testing.T) {
	out, err := runConfig(defaultConfig(), nil, "schema")
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &schema))
	data, err := os.ReadFile("../../deploy/rouse.yaml")
	require.NoError(t, err)
	var doc yaml.Node
	require.NoError(t, yaml.Unmarshal(data, &doc))
	has := map[string]bool{}
	yamlKeys(&doc, "", has)
	known := schemaKeys(schema, "")
	require.Greater(t, len(known), 60)
	for _, key := range known {
		if field, ok := strings.CutPrefix(key, "webhooks."); ok { // an example, which would need its secret
			require.Regexp(t, "(?m)^#  [- ] "+field+": ", string(data))
			continue
		}
		require.True(t, has[key], "%s is not in deploy/rouse.yaml", key)
	}
	manual, err := os.ReadFile("../../docs/config.md")
	require.NoError(t, err)
	require.Contains(t, string(manual), "```yaml\n"+string(data)+"```\n", "docs/config.md has another copy of deploy/rouse.yaml")
	for _, name := range entryTable().Names() {
		if name != "name" && name != "container" && name != "service" && !strings.HasPrefix(name, "process.") {
			require.Contains(t, string(manual), "`rouse."+strings.ReplaceAll(name, "_", "-")+"`")
		}
	}
}

// What the annotated file says besides its examples are the defaults.
func TestTheAnnotatedFileHasTheDefaults(t *testing.T) {
	c, err := loadConfig("../../deploy/rouse.yaml", nil, nil)
	require.NoError(t, err)
	want := defaultConfig()
	require.Equal(t, want.values(), c.values())
}

func TestEveryFileThatIsShippedIsGood(t *testing.T) {
	files, err := filepath.Glob("../../deploy/demo/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(data), "services:") {
			continue // for compose
		}
		_, err = loadConfig(file, nil, nil)
		require.NoError(t, err)
	}
}

func TestEveryKeyIsExplained(t *testing.T) {
	c := defaultConfig()
	for _, k := range append(configTable(&c), entryTable()...) {
		require.NotEmpty(t, k.Doc, k.Name)
		require.True(t, strings.HasSuffix(k.Doc, "."), k.Name)
	}
}

func FuzzConfigFile(f *testing.F) {
	data, err := os.ReadFile("../../deploy/rouse.yaml")
	require.NoError(f, err)
	f.Add(string(data))
	f.Add("listen: &l [\":1\"]\nadmin: *l\nworkloads: {a: b}\n")
	f.Add("defaults: {ready: 'http:/'}\nworkloads:\n- name: a\n  process: {command: [a], env: {b: }}\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := configFile(t, text)
		c, err := loadConfig(path, nil, nil)
		var wrong *configError
		if err != nil {
			require.True(t, errors.As(err, &wrong))
			require.NotEmpty(t, wrong.problems)
		}
		var out bytes.Buffer
		require.NoError(t, c.show(&out, true))
		if err == nil {
			back, err := loadConfig(configFile(t, out.String()), nil, nil)
			require.NoError(t, err, out.String())
			require.Equal(t, c.values(), back.values())
		}
	})
}
