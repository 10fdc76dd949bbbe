package doctor_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/doctor"
	"github.com/rouse-dev/rouse/workload"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// sound is evidence of which nothing is to be said.
func sound() doctor.Evidence {
	web := doctor.Container{
		Container: workload.Container{
			Name: "web", Labels: map[string]string{"enable": "true", "name": "web"}, Ports: []int{80}, HealthCheck: true,
		},
		Restart: "unless-stopped", HealthEvery: time.Second, Networks: []string{"apps"}, Running: true, Command: "/web",
	}
	gateway := doctor.Container{Container: workload.Container{Name: "gw"}, Networks: []string{"apps", "events"}, Running: true, Command: "/rouse gateway"}
	w := catalog.BuiltIn()
	w.Name, w.Hosts, w.Port = "web", []string{"web.test"}, 80
	return doctor.Evidence{
		Workloads: []workload.Workload{w},
		Server: &doctor.Server{Address: "http://a", Now: now, Uses: []doctor.Use{
			{Name: "web", Phase: workload.Ready, Since: now.Add(-time.Hour), InFlight: 1, LastRequestAt: now.Add(-time.Minute)},
		}},
		Engine: &doctor.Engine{
			Host: "unix:///s", Version: "20.10.24", Newest: "1.41", Oldest: "1.12", Spoken: "1.41", Socket: os.ModeSocket | 0o660,
			Offset: 900 * time.Millisecond, Told: true, Prefix: "rouse", Containers: []doctor.Container{web, gateway},
		},
		NATS: &doctor.NATS{
			Place: "nats://n", Told: true, Store: 79, StoreMost: 100, LostGatewayAfter: 10 * time.Minute, Dir: "data", Free: 1 << 40,
			Streams: []doctor.Stream{{Name: "ROUSE_WAKES", Messages: 79, MostMessages: 100, Refuses: true}, {Name: "ROUSE_EVENTS", Messages: 100, MostMessages: 100}},
			Peers: []doctor.Peer{
				{Role: "gateway", Name: "gw", Age: time.Second, Offset: time.Millisecond},
				{Role: "gateway", Name: "left", Age: time.Minute, Offset: time.Hour, Left: true},
				{Role: "gateway", Name: "forgotten", Age: time.Hour},
				{Role: "scaler", Name: "yesterday", Age: time.Hour, Offset: time.Hour},
			},
			Nodes: map[string]int{"local": 1},
		},
	}
}

func TestNothingIsSaidOfWhatIsSound(t *testing.T) {
	r := doctor.Examine(sound())
	assert.Empty(t, r.Findings)
	assert.NotNil(t, r.Findings, "an empty list in JSON")
	assert.NotNil(t, r.Checked)
	assert.NotNil(t, r.Unchecked)
	assert.Empty(t, doctor.Examine(doctor.Evidence{}).Findings)
}

// A symptom is a change to sound evidence, and the one finding that it leads
// to, in its words.
type symptom struct {
	name     string
	severity doctor.Severity
	code     string
	place    string
	says     string // in what, why or fix
	spoil    func(e *doctor.Evidence)
}

func container(change func(c *doctor.Container)) func(*doctor.Evidence) {
	return func(e *doctor.Evidence) { change(&e.Engine.Containers[0]) }
}

func engine(change func(e *doctor.Engine)) func(*doctor.Evidence) {
	return func(e *doctor.Evidence) { change(e.Engine) }
}

func nats(change func(n *doctor.NATS)) func(*doctor.Evidence) {
	return func(e *doctor.Evidence) { change(e.NATS) }
}

// described makes the catalog of the containers anew.
func described(e *doctor.Evidence) {
	in := catalog.Input{Node: "local", Prefix: "rouse", Defaults: catalog.BuiltIn()}
	for _, c := range e.Engine.Containers {
		in.Containers = append(in.Containers, c.Container)
	}
	c := catalog.Build(in)
	e.Workloads, e.Problems = c.Workloads, c.Problems
}

var symptoms = []symptom{
	{"bad configuration", doctor.Error, "config", "rouse.yaml:1:1", `unknown key "lisen"`, func(e *doctor.Evidence) {
		e.Settings = []workload.Problem{{Place: "rouse.yaml:1:1", Message: `unknown key "lisen"`, Fix: "did you mean listen?"}}
	}},
	{"several ports", doctor.Error, "port", "web", "exposes several ports: 80, 90", func(e *doctor.Evidence) {
		e.Engine.Containers[0].Ports = []int{80, 90}
		described(e)
	}},
	{"no port", doctor.Error, "port", "web", "set port in the file, or rouse.port", func(e *doctor.Evidence) {
		e.Engine.Containers[0].Ports = nil
		described(e)
	}},
	{"misspelt label", doctor.Error, "label", "web", "did you mean rouse.idle-timeout?", func(e *doctor.Evidence) {
		e.Engine.Containers[0].Labels["idle-timeuot"] = "5m"
		described(e)
	}},
	{"wrong value of a label", doctor.Error, "description", "web", "404", func(e *doctor.Evidence) {
		e.Engine.Containers[0].Labels["port"] = "http"
		described(e)
	}},
	{"a dependency that is not there", doctor.Warning, "description", "web", "not as it was described", func(e *doctor.Evidence) {
		e.Engine.Containers[0].Labels["depends-on"] = "db"
		described(e)
	}},
	{"opt-in is missing", doctor.Warning, "not_enabled", "stray", "rouse.enable=true", engine(func(e *doctor.Engine) {
		e.Containers = append(e.Containers, doctor.Container{Container: workload.Container{Name: "stray", Labels: map[string]string{"host": "x"}}})
	})},
	{"opt-in is misspelt", doctor.Warning, "label", "stray", "did you mean rouse.enable?", engine(func(e *doctor.Engine) {
		e.Containers = append(e.Containers, doctor.Container{Container: workload.Container{Name: "stray"}, Keys: []string{"a", "rosue.enable"}})
	})},
	{"opt-in with another dot", doctor.Warning, "label", "stray", "rouse_enable", engine(func(e *doctor.Engine) {
		e.Containers = append(e.Containers, doctor.Container{Container: workload.Container{Name: "stray"}, Keys: []string{"rouse_enable"}})
	})},
	{"restart always", doctor.Warning, "restart_always", "web", "restart: unless-stopped", container(func(c *doctor.Container) { c.Restart = "always" })},
	{"removed at its end", doctor.Error, "auto_remove", "web", "without --rm", container(func(c *doctor.Container) { c.AutoRemove = true })},
	{"no health check", doctor.Note, "no_health_check", "web", "rouse.ready=http:/path", container(func(c *doctor.Container) { c.HealthCheck = false })},
	{"slow health check", doctor.Warning, "slow_health_check", "web", "each 30s", func(e *doctor.Evidence) {
		e.Engine.Containers[0].HealthEvery = 30 * time.Second
		e.Workloads[0].Ready.Kind = workload.ReadyDocker
	}},
	{"no network", doctor.Error, "no_network", "web", "in no network", container(func(c *doctor.Container) { c.Networks = []string{"none"} })},
	{"another network than the label's", doctor.Error, "no_network", "web", `not in the network "front"`, func(e *doctor.Evidence) { e.Workloads[0].Network = "front" }},
	{"out of the gateway's reach", doctor.Error, "network_unreachable", "web", "gateway gw is not in its network private", container(func(c *doctor.Container) { c.Networks = []string{"private"} })},
	{"several networks", doctor.Warning, "network_guess", "web", "rouse.network=apps", container(func(c *doctor.Container) { c.Networks = []string{"back", "apps"} })},
	{"port that is not published", doctor.Error, "network_unreachable", "web", "127.0.0.1::80", engine(func(e *doctor.Engine) { e.Published = true })},
	{"engine away", doctor.Error, "engine", "unix:///s", "permission denied", engine(func(e *doctor.Engine) { *e = doctor.Engine{Host: e.Host, Err: "permission denied"} })},
	{"socket for everybody", doctor.Warning, "socket_open", "unix:///s", "rw-rw-rw-", engine(func(e *doctor.Engine) { e.Socket = os.ModeSocket | 0o666 })},
	{"engine without TLS", doctor.Warning, "socket_plain", "unix:///s", "TLS", engine(func(e *doctor.Engine) { e.Plain = true })},
	{"API that the engine does not know", doctor.Error, "api_version", "unix:///s", "DOCKER_API_VERSION", engine(func(e *doctor.Engine) { e.Spoken = "1.99" })},
	{"API that the engine no longer knows", doctor.Error, "api_version", "unix:///s", "1.44 to 1.52", engine(func(e *doctor.Engine) { e.Oldest, e.Newest = "1.44", "1.52" })},
	{"old engine", doctor.Warning, "api_version", "unix:///s", "API 1.9 at most", engine(func(e *doctor.Engine) { e.Newest, e.Spoken = "1.9", "1.9"; e.Oldest = "1.2" })},
	{"engine's clock", doctor.Warning, "clock", "engine at unix:///s", "1m0s behind ours", engine(func(e *doctor.Engine) { e.Offset = -time.Minute })},
	{"hours in UTC", doctor.Note, "utc", "web", "TZ", func(e *doctor.Evidence) { e.UTC, e.Workloads[0].KeepWarm = true, "Mon-Fri 08:00-18:00" }},
	{"Rouse away", doctor.Error, "server", "http://a", "refused", func(e *doctor.Evidence) { e.Server = &doctor.Server{Address: "http://a", Err: "refused"} }},
	{"not ready", doctor.Error, "not_ready", "http://a", "nothing wakes", func(e *doctor.Evidence) { e.Server.Missing = map[string]string{"nats": "gone"} }},
	{"start failed", doctor.Error, "start_failed", "web", "rouse logs web", func(e *doctor.Evidence) {
		e.Server.Uses[0] = doctor.Use{Name: "web", Phase: workload.Failed, Reason: "exited with code 3"}
	}},
	{"wake that nobody takes", doctor.Error, "not_taken", "web", "3 requests wait", func(e *doctor.Evidence) {
		e.Server.Uses[0] = doctor.Use{Name: "web", Queued: 3, Since: now.Add(-time.Hour)}
	}},
	{"stream that is open", doctor.Note, "kept_awake", "web", "for 20m0s", func(e *doctor.Evidence) { e.Server.Uses[0].LastRequestAt = now.Add(-20 * time.Minute) }},
	{"NATS away", doctor.Error, "nats", "nats://n", "refused", nats(func(n *doctor.NATS) { *n = doctor.NATS{Place: n.Place, Err: "refused"} })},
	{"NATS fills up", doctor.Warning, "nats_store", "nats://n", "80 % full", nats(func(n *doctor.NATS) { n.Store = 80 })},
	{"NATS is full", doctor.Error, "nats_store", "nats://n", "96 % full", nats(func(n *doctor.NATS) { n.Store = 96 })},
	{"a stream is full", doctor.Error, "nats_store", "nats://n", "ROUSE_WAKES is 100 % full", nats(func(n *doctor.NATS) { n.Streams[0].Messages = 100 })},
	{"a stream is missing", doctor.Error, "nats_stream", "nats://n", "ROUSE_WAKES is missing", nats(func(n *doctor.NATS) { n.Streams[0].Missing = true })},
	{"a stream has no leader", doctor.Error, "nats_stream", "nats://n", "no leader", nats(func(n *doctor.NATS) { n.Streams[0].Headless = true })},
	{"a copy is behind", doctor.Warning, "nats_stream", "nats://n", "1 copies", nats(func(n *doctor.NATS) { n.Streams[1].Behind = 1 })},
	{"disk low", doctor.Warning, "nats_disk", "data", "500 MiB", nats(func(n *doctor.NATS) { n.Free = 500 << 20 })},
	{"disk full", doctor.Error, "nats_disk", "data", "0 MiB", nats(func(n *doctor.NATS) { n.Free = 0 })},
	{"open NATS", doctor.Warning, "nats_open", "0.0.0.0:4222", "accounts.conf", nats(func(n *doctor.NATS) { n.Open = "0.0.0.0:4222" })},
	{"NATS's clock", doctor.Warning, "clock", "nats at nats://n", "2h0m0s ahead of ours", nats(func(n *doctor.NATS) { n.Offset = 2 * time.Hour })},
	{"a gateway's clock", doctor.Warning, "clock", "gateway gw", "5s behind ours", nats(func(n *doctor.NATS) { n.Peers[0].Offset = -5 * time.Second })},
	{"silent gateway", doctor.Warning, "gateway_silent", "gateway gw", "for another 9m0s", nats(func(n *doctor.NATS) { n.Peers[0].Age = time.Minute })},
	{"no scaler", doctor.Error, "no_scaler", "node local", "does not ask for wakes", nats(func(n *doctor.NATS) { n.Nodes["local"] = 0 })},
}

func TestEachSymptomHasItsFinding(t *testing.T) {
	for _, s := range symptoms {
		t.Run(s.name, func(t *testing.T) {
			e := sound()
			s.spoil(&e)
			r := doctor.Examine(e)
			i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool { return f.Code == s.code })
			require.GreaterOrEqual(t, i, 0, "%+v", r.Findings)
			f := r.Findings[i]
			assert.Equal(t, s.severity, f.Severity)
			assert.Equal(t, s.place, f.Place)
			assert.Contains(t, f.What+"\n"+f.Why+"\n"+f.Fix, s.says)
			for _, text := range []string{f.What, f.Why, f.Fix} {
				assert.NotEmpty(t, text)
				assert.NotContains(t, text, "%!")
			}
			if s.code != "network_unreachable" { // whose place may be a guess as well
				assert.Len(t, r.Findings, 1, "%+v", r.Findings)
			}
		})
	}
}

func TestEveryFindingIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/operate.md")
	require.NoError(t, err)
	for _, s := range symptoms {
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| [^|]*`%s`[^|]*\\| [^|]*%s", s.code, s.severity))
		assert.True(t, row.Match(text), "docs/operate.md has no row for %s as %s", s.code, s.severity)
	}
}

func TestFindingsComeTheWorstFirstAndOnce(t *testing.T) {
	e := sound()
	for _, s := range symptoms {
		if s.code == "restart_always" || s.code == "no_health_check" || s.code == "no_scaler" {
			s.spoil(&e)
		}
	}
	p := workload.Problem{Place: "b", Message: "wrong"}
	e.Problems = []workload.Problem{p, p}
	var got []string
	r := doctor.Examine(e)
	for _, f := range r.Findings {
		got = append(got, f.Code)
	}
	assert.Equal(t, "description no_scaler restart_always no_health_check", strings.Join(got, " "))
	assert.Equal(t, []int{2, 1, 1}, []int{r.Count(doctor.Error), r.Count(doctor.Warning), r.Count(doctor.Note)})
}

func TestWhatDidNotOptInIsLeftAlone(t *testing.T) {
	e := sound()
	for _, keys := range [][]string{nil, {"enable"}, {"house.enabled"}, {"traefik.enable"}, {"rouse.local"}, {"", ".", "rouse"}} {
		e.Engine.Containers = append(e.Engine.Containers, doctor.Container{
			Container: workload.Container{Name: "other"}, Keys: keys, Restart: "always", AutoRemove: true,
		})
	}
	e.Engine.Containers = append(e.Engine.Containers, doctor.Container{
		Container: workload.Container{Name: "off", Labels: map[string]string{"enable": "false", "host": "x"}},
	})
	assert.Empty(t, doctor.Examine(e).Findings)
}

func TestOnlyTheGatewaysOfThisInstallationHaveToReachAWorkload(t *testing.T) {
	other := doctor.Container{Container: workload.Container{ID: "bbb", Name: "other", Project: "else"}, Networks: []string{"private"}, Running: true, Command: "rouse up"}
	self := doctor.Container{Container: workload.Container{ID: "0123456789abcdef", Name: "scaler", Project: "ours"}, Running: true, Command: "/rouse scaler"}
	for name, c := range map[string]struct {
		change func(e *doctor.Engine)
		found  bool
	}{
		"the gateway is a process":        {func(e *doctor.Engine) { e.Local = true }, false},
		"one of several reaches it":       {func(e *doctor.Engine) { e.Containers = append(e.Containers, other) }, false},
		"the one that does is not ours":   {func(e *doctor.Engine) { e.Inside = "0123456789ab"; e.Containers = append(e.Containers, other, self) }, true},
		"the host's network reaches all":  {func(e *doctor.Engine) { e.Containers[1].HostNetwork = true }, false},
		"it does not run":                 {func(e *doctor.Engine) { e.Containers[1].Running = false }, false},
		"the workload is on the host too": {func(e *doctor.Engine) { e.Containers[0].HostNetwork = true }, false},
	} {
		e := sound()
		e.Engine.Containers[0].Networks = []string{"private"}
		e.Engine.Containers[0].Project, e.Engine.Containers[1].Project = "ours", "ours"
		c.change(e.Engine)
		assert.Equal(t, c.found, len(doctor.Examine(e).Findings) == 1, name)
	}
}

func FuzzExamineTakesAnything(f *testing.F) {
	f.Add("rouse.enable", "rouse", "1.41", "/rouse gateway")
	f.Add("", "", "", "")
	f.Add("rouse.enabl", "rouse.", "1.", "rouse")
	f.Fuzz(func(t *testing.T, key, prefix, version, command string) {
		e := sound()
		e.Engine.Prefix, e.Engine.Newest, e.Engine.Spoken = prefix, version, version
		e.Engine.Containers = append(e.Engine.Containers, doctor.Container{Keys: []string{key}, Command: command, Running: true})
		doctor.Examine(e)
	})
}

func ExampleExamine() {
	r := doctor.Examine(doctor.Evidence{Engine: &doctor.Engine{Host: "unix:///var/run/docker.sock", Err: "permission denied", Prefix: "rouse"}})
	for _, f := range r.Findings {
		fmt.Println(f.Severity, f.Place, f.What)
	}
	// Output: error unix:///var/run/docker.sock permission denied
}
