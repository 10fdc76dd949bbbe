package catalog_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/workload"
)

func Example() {
	c := catalog.Build(catalog.Input{
		Node:     "local",
		Defaults: catalog.BuiltIn(),
		Prefix:   "rouse",
		Containers: []workload.Container{
			{Name: "wiki", Ports: []int{3000}, Labels: map[string]string{"enable": "true", "host": "Wiki.example.com.", "idle-timeout": "5m"}},
			{Name: "blog", Ports: []int{80, 443}, Labels: map[string]string{"enable": "true", "host": "blog.example.com"}},
			{Name: "database", Ports: []int{5432}},
		},
	})
	for _, w := range c.Workloads {
		fmt.Println(w.Name, w.Hosts, w.Port, w.IdleTimeout)
	}
	for _, p := range c.Problems {
		fmt.Println(p.Error())
	}
	// Output:
	// wiki [wiki.example.com] 3000 5m0s
	// blog: container blog exposes several ports: 80, 443 (set port in the file, or rouse.port)
}

// labelled is a container with one exposed port that has opted in.
func labelled(name string, labels ...string) workload.Container {
	c := workload.Container{ID: name + "0123456789abcdef", Name: name, Ports: []int{80}, Labels: map[string]string{"enable": "true"}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		c.Labels[key] = value
	}
	return c
}

func service(project, name string, labels ...string) workload.Container {
	c := labelled(project+"-"+name+"-1", labels...)
	c.Project, c.Service = project, name
	return c
}

func entries(t *testing.T, text string) []catalog.Entry {
	t.Helper()
	var list yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(text), &list))
	es, problems := catalog.Entries("rouse.yaml", list.Content[0])
	require.Empty(t, problems)
	return es
}

func build(containers []workload.Container, es ...catalog.Entry) workload.Catalog {
	return catalog.Build(catalog.Input{Node: "n", Defaults: catalog.BuiltIn(), Prefix: "rouse", Containers: containers, Entries: es})
}

func names(c workload.Catalog) []string {
	names := []string{}
	for _, w := range c.Workloads {
		names = append(names, w.Name)
	}
	return names
}

func errorsOf(c workload.Catalog) []string {
	lines := []string{}
	for _, p := range c.Problems {
		lines = append(lines, p.Error())
	}
	return lines
}

func TestEveryLabelIsRead(t *testing.T) {
	c := build([]workload.Container{labelled("c",
		"name=wiki", "host=wiki.example.com, *.Wiki.example.com", "path=/app/", "port=3000", "network=web",
		"idle-timeout=1h", "hold-timeout=20s", "wake-timeout=2m", "wait=page", "page-after=1s", "ready=http:/healthz",
		"stop=pause", "stop-timeout=30s", "group=office", "depends-on=db", "keep-warm=Mon-Fri 08:00-18:00, Sat 10:00-14:00",
		"no-wake=/metrics,/healthz", "wake-allow=10.0.0.0/8, ::1", "queue-requests=50", "min=1", "max=3", "target-concurrency=80",
		"strategy=fastest", "sticky=true", "forward-auth=http://auth:9091/verify", "forward-auth-headers=Remote-User, X-Account",
	), labelled("db")})
	require.Empty(t, c.Problems)
	require.Equal(t, workload.Workload{
		Name: "wiki", Node: "n", Runtime: "docker", Hosts: []string{"wiki.example.com", "*.wiki.example.com"}, Path: "/app",
		Port: 3000, Network: "web", IdleTimeout: time.Hour, HoldTimeout: 20 * time.Second, WakeTimeout: 2 * time.Minute,
		Wait: workload.WaitPage, PageAfter: time.Second, Ready: workload.Readiness{Kind: workload.ReadyHTTP, Path: "/healthz"},
		Stop: workload.StopPause, StopTimeout: 30 * time.Second, Groups: []string{"office"}, DependsOn: []string{"db"},
		KeepWarm: "Mon-Fri 08:00-18:00, Sat 10:00-14:00", NoWake: []string{"/metrics", "/healthz"},
		WakeAllow:     []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		QueueRequests: 50, Min: 1, Max: 3, TargetConcurrency: 80,
		Strategy: workload.StrategyFastest, Sticky: true, ForwardAuth: "http://auth:9091/verify", ForwardAuthHeaders: []string{"Remote-User", "X-Account"}, Containers: []string{"c"}, Origin: "c (container)",
	}, c.Workloads[1])
}

func TestDefaultsYieldToLabelsAndLabelsToTheFile(t *testing.T) {
	c := build([]workload.Container{labelled("wiki", "host=label.example.com", "idle-timeout=1m", "wait=hold")},
		entries(t, "- {name: wiki, idle_timeout: 2m}")...)
	require.Empty(t, c.Problems)
	w := c.Workloads[0]
	require.Equal(t, 2*time.Minute, w.IdleTimeout, "the file wins")
	require.Equal(t, workload.WaitHold, w.Wait, "what the file leaves out is the label's")
	require.Equal(t, []string{"label.example.com"}, w.Hosts)
	require.Equal(t, 50*time.Second, w.HoldTimeout, "and the default's what both leave out")
	require.Equal(t, "rouse.yaml:1:3", w.Origin)
	require.Empty(t, w.Container, "its containers carry the name")
}

func TestWithoutOptInAContainerIsNobodys(t *testing.T) {
	off, absent, odd := labelled("off", "host=a.b"), labelled("absent", "host=c.d"), labelled("odd")
	off.Labels["enable"], odd.Labels["enable"] = "false", "yes"
	delete(absent.Labels, "enable")
	c := build([]workload.Container{off, absent, odd})
	require.Empty(t, c.Workloads)
	require.Equal(t, []string{`odd: rouse.enable: "yes" is neither true nor false (write true or false)`}, errorsOf(c))
}

func TestAnEntryMayNameAContainerThatDidNotOptIn(t *testing.T) {
	plain := labelled("wiki", "wait=hold")
	delete(plain.Labels, "enable")
	c := build([]workload.Container{plain}, entries(t, "- {name: w, container: wiki, host: w.example.com}")...)
	require.Empty(t, c.Problems)
	require.Equal(t, "wiki", c.Workloads[0].Container)
	require.Equal(t, workload.WaitHold, c.Workloads[0].Wait)
	require.Equal(t, 80, c.Workloads[0].Port)
	require.True(t, c.Workloads[0].Selects(plain))
}

func TestAnEntryWithoutItsContainerStays(t *testing.T) {
	c := build(nil, entries(t, "- {name: w, container: gone, host: w.example.com}\n- {name: s, service: gone}")...)
	require.Empty(t, c.Problems)
	require.Equal(t, []string{"s", "w"}, names(c), "a request has to be told what is missing")
}

func TestNamesComeFromLabelThenServiceThenContainer(t *testing.T) {
	c := build([]workload.Container{labelled("plain"), service("p", "web"), service("p", "api", "name=backend")})
	require.Empty(t, c.Problems)
	require.Equal(t, []string{"backend", "plain", "web"}, names(c))
}

func TestContainersOfOneNameAreReplicas(t *testing.T) {
	a, b := labelled("web-1", "name=web", "host=web.example.com"), labelled("web-2", "name=web")
	c := build([]workload.Container{b, a})
	require.Empty(t, c.Problems)
	require.Equal(t, []string{"web"}, names(c))
	require.Equal(t, []string{"web.example.com"}, c.Workloads[0].Hosts)
}

func TestReplicasHaveToAgree(t *testing.T) {
	a, b := labelled("web-1", "name=web", "idle-timeout=1m"), labelled("web-2", "name=web", "idle-timeout=2m")
	c := build([]workload.Container{a, b, labelled("other")})
	require.Equal(t, []string{"other"}, names(c))
	require.Equal(t, []string{`web-2: replicas of web disagree about rouse.idle-timeout: web-1 has "1m", web-2 has "2m" (give both the same value, or another rouse.name)`}, errorsOf(c))

	a, b = labelled("web-1", "name=web"), labelled("web-2", "name=web")
	b.Ports = []int{81}
	c = build([]workload.Container{a, b})
	require.Empty(t, c.Workloads)
	require.Contains(t, c.Problems[0].Message, "disagree about the port: web-1 exposes 80, web-2 exposes 81")
}

// While compose recreates a service, one of the two containers is named after
// the ID of the old one; the other tells.
func TestARecreationDoesNotTakeTheWorkloadOut(t *testing.T) {
	old, made := service("p", "web", "idle-timeout=1m"), service("p", "web", "idle-timeout=2m")
	old.ID, made.ID = strings.Repeat("a", 64), strings.Repeat("b", 64)
	for _, step := range []struct {
		oldName, newName, want string
	}{
		{"aaaaaaaaaaaa_p-web-1", "p-web-1", "2m0s"},
		{"p-web-1", "aaaaaaaaaaaa_p-web-1", "1m0s"},
	} {
		old.Name, made.Name = step.oldName, step.newName
		c := build([]workload.Container{old, made})
		require.Empty(t, c.Problems)
		require.Equal(t, step.want, c.Workloads[0].IdleTimeout.String())
	}
	old.Name = "aaaaaaaaaaaa_p-web-1"
	require.Len(t, build([]workload.Container{old}).Workloads, 1, "alone, it counts under any name")
}

// Each case is one workload that is wrong beside one that is not.
func TestABadLabelTakesOutItsWorkloadAlone(t *testing.T) {
	for label, want := range map[string]string{
		"idle-timout=5m":        `unknown label "rouse.idle-timout" (did you mean rouse.idle-timeout?)`,
		"idle_timeout=5m":       `unknown label "rouse.idle_timeout" (did you mean rouse.idle-timeout?)`,
		"middleware=x":          `unknown label "rouse.middleware"`,
		"idle-timeout=5":        `rouse.idle-timeout: "5" is not a duration`,
		"idle-timeout=-5m":      `rouse.idle-timeout: "-5m" is shorter than 0s`,
		"hold-timeout=0":        `rouse.hold-timeout: "0" is shorter than 1ms`,
		"port=70000":            `rouse.port: "70000" is not a whole number from 1 to 65535`,
		"port=":                 `rouse.port: "" is not a whole number`,
		"wait=hodl":             `rouse.wait: "hodl" is none of auto, hold, page (did you mean hold?)`,
		"ready=http":            `rouse.ready: "http" is not a proof of readiness (use auto, tcp, docker or http:/path)`,
		"ready=docker":          `bad is to be ready by a health check and has none`,
		"stop=kill":             `rouse.stop: "kill" is none of stop, pause, throttle`,
		"group=a b":             `rouse.group: not a workload name`,
		"keep-warm=weekends":    `rouse.keep-warm: "weekends" is not a window`,
		"no-wake=metrics":       `rouse.no-wake: "metrics" does not begin with /`,
		"wake-allow=10.0.0/8":   `rouse.wake-allow: "10.0.0/8" is not a network`,
		"host=a..b":             `rouse.host: "a..b" has an empty label`,
		"host=good.example.com": `the route good.example.com/ belongs to good already (good)`,
		"path=/x":               `bad has a path and no host`,
		"min=5,max=2":           `rouse.min: "5,max=2" is not a whole number`,
		"queue-requests=-1":     `rouse.queue-requests: "-1" is not a whole number`,
		"name=no such name":     `not a workload name`,
	} {
		bad := labelled("bad", label)
		if strings.HasPrefix(label, "host=good") {
			bad.Name = "later"
		}
		c := build([]workload.Container{bad, labelled("good", "host=good.example.com")})
		require.Equal(t, []string{"good"}, names(c), label)
		require.Len(t, c.Problems, 1, label)
		require.Contains(t, c.Problems[0].Error(), want, label)
		require.Equal(t, bad.Name, c.Problems[0].Place, label)
		require.NotEmpty(t, c.Problems[0].Message, label)
	}
}

func TestEveryBadLabelOfAContainerIsReported(t *testing.T) {
	c := build([]workload.Container{labelled("c", "prot=1", "wait=x", "stop=y")})
	require.Len(t, c.Problems, 3)
	for _, p := range c.Problems {
		require.Equal(t, "c", p.Workload)
	}
}

func TestAPortHasToBeKnown(t *testing.T) {
	none, several := labelled("none"), labelled("several")
	none.Ports, several.Ports = nil, []int{80, 443}
	c := build([]workload.Container{none, several})
	require.Empty(t, c.Workloads)
	require.Equal(t, []string{
		"none: container none exposes no port (set port in the file, or rouse.port)",
		"several: container several exposes several ports: 80, 443 (set port in the file, or rouse.port)",
	}, errorsOf(c))

	none.Labels["port"], several.Labels["port"] = "8080", "443"
	c = build([]workload.Container{none, several})
	require.Empty(t, c.Problems)
	require.Equal(t, 8080, c.Workloads[0].Port)
	require.Equal(t, 443, c.Workloads[1].Port)

	healthy := labelled("worker", "ready=docker")
	healthy.Ports, healthy.HealthCheck = nil, true
	require.Empty(t, build([]workload.Container{healthy}).Problems, "nothing dials it")
}

func TestRoutesBelongToOneWorkload(t *testing.T) {
	c := build([]workload.Container{
		labelled("a", "host=x.example.com,y.example.com"),
		labelled("b", "host=y.example.com", "path=/"),
		labelled("c", "host=x.example.com", "path=/api"),
		labelled("d", "host=x.example.com", "path=/api/"),
		labelled("e", "host=*.example.com"),
	})
	require.Equal(t, []string{"a", "c", "e"}, names(c), "nested prefixes and wildcards are routes of their own")
	require.Equal(t, []string{
		"b: the route y.example.com/ belongs to a already (a) (give one of them another host or path)",
		"d: the route x.example.com/api belongs to c already (c) (give one of them another host or path)",
	}, errorsOf(c))

	c = build([]workload.Container{labelled("a", "host=x.example.com")},
		entries(t, "- {name: z, container: z, host: x.example.com}")...)
	require.Equal(t, []string{"z"}, names(c), "the file wins over labels")
}

func TestANameBelongsToOneWorkload(t *testing.T) {
	es := entries(t, "- {name: web, container: one}\n- {name: web, container: two}\n- {name: x, container: one}\n- {name: y, service: s}\n- {name: z, service: s}")
	c := build([]workload.Container{labelled("web")}, es...)
	require.Equal(t, []string{"web", "y"}, names(c))
	require.Equal(t, []string{
		"rouse.yaml:2:3: the name web is taken by rouse.yaml:1:3 (give one of them another name)",
		"web: the name web is taken by rouse.yaml:1:3, which does not mean this container (set another rouse.name)",
		"rouse.yaml:3:3: container one belongs to web already (rouse.yaml:1:3) (name another, or remove one of the entries)",
		"rouse.yaml:5:3: service s belongs to y already (rouse.yaml:4:3) (name another, or remove one of the entries)",
	}, errorsOf(c))
}

func TestAServiceEntryIsOneProjectsAndAllItsContainers(t *testing.T) {
	first, second := service("p", "web"), service("p", "web")
	second.Name = "p-web-2"
	es := entries(t, "- {name: web, service: web, host: web.example.com}")
	c := build([]workload.Container{first, second}, es...)
	require.Empty(t, c.Problems)
	require.Equal(t, "web", c.Workloads[0].Service)

	c = build([]workload.Container{first, service("q", "web")}, es...)
	require.Empty(t, c.Workloads)
	require.Contains(t, c.Problems[0].Error(), "service web is in two projects: p and q (name the container instead)")

	c = build([]workload.Container{first}, entries(t, "- {name: a, service: web}\n- {name: b, container: p-web-1}")...)
	require.Equal(t, []string{"b"}, names(c))
	require.Contains(t, c.Problems[0].Error(), "container p-web-1 of service web belongs to b already")
}

func TestAnEntryAboutNothingIsAProblem(t *testing.T) {
	c := build(nil, entries(t, "- {name: web}")...)
	require.Empty(t, c.Workloads)
	require.Contains(t, c.Problems[0].Error(), "web names no container, service or process, and no container carries the name")
}

func TestAProcessIsAWorkload(t *testing.T) {
	c := build(nil, entries(t, `- name: hello
  host: hello.localhost
  process: { command: ["./serve", "{port}"], dir: /srv, env: { A: b } }
`)...)
	require.Empty(t, c.Problems)
	w := c.Workloads[0]
	require.Equal(t, "process", w.Runtime)
	require.Equal(t, &workload.Process{Command: []string{"./serve", "{port}"}, Dir: "/srv", Env: []string{"A=b"}}, w.Process)
	require.Zero(t, w.Port)
}

func TestAProcessHasNothingOfAContainer(t *testing.T) {
	c := build(nil, entries(t, `- { name: a, process: { command: [a] }, stop: pause }
- { name: b, process: { command: [b] }, network: front }
- { name: c, process: { command: [c] }, stop: stop }
`)...)
	require.Len(t, c.Workloads, 1)
	require.Equal(t, "c", c.Workloads[0].Name)
	require.Equal(t, "rouse.yaml:1:41: a process can be neither paused nor throttled (leave stop out, or write stop: stop)", c.Problems[0].Error())
	require.Equal(t, "rouse.yaml:2:41: a process has no container network (leave network out)", c.Problems[1].Error())

	defaults := catalog.BuiltIn()
	defaults.Stop = workload.StopPause
	c = catalog.Build(catalog.Input{Defaults: defaults, Entries: entries(t, "- { name: a, process: { command: [a] } }")})
	require.Empty(t, c.Problems)
	require.Equal(t, workload.StopStop, c.Workloads[0].Stop, "the default is for containers")
}

func TestAHealthCheckByDefaultIsForThoseThatHaveOne(t *testing.T) {
	defaults := catalog.BuiltIn()
	defaults.Ready.Kind = workload.ReadyDocker
	with, without := labelled("with"), labelled("without")
	with.HealthCheck = true
	c := catalog.Build(catalog.Input{Defaults: defaults, Containers: []workload.Container{with, without}})
	require.Empty(t, c.Problems)
	require.Equal(t, workload.ReadyDocker, c.Workloads[0].Ready.Kind)
	require.Equal(t, workload.ReadyAuto, c.Workloads[1].Ready.Kind)
}

func TestComposeDependenciesAreTheDefault(t *testing.T) {
	web, db, other := service("p", "web"), service("p", "db", "name=database"), service("q", "cache")
	web.DependsOn = []string{"db", "cache", "web", "not-a-workload"}
	c := build([]workload.Container{web, db, other})
	require.Empty(t, c.Problems)
	require.Equal(t, []string{"database"}, c.Workloads[2].DependsOn, "only workloads of the same project")

	web.Labels["depends-on"] = ""
	c = build([]workload.Container{web, db, other})
	require.Empty(t, c.Problems)
	require.Empty(t, c.Workloads[2].DependsOn, "an empty label says none")
}

func TestUnknownDependenciesAreCut(t *testing.T) {
	c := build([]workload.Container{labelled("web", "depends-on=databse,cache"), labelled("database"), labelled("cache", "wait=x")})
	require.Equal(t, []string{"database", "web"}, names(c))
	require.Empty(t, c.Workloads[1].DependsOn)
	require.Len(t, c.Problems, 3)
	require.Equal(t, "web: web depends on databse, which is no workload or has a problem of its own; it starts without (did you mean database?)", c.Problems[1].Error())
	require.Contains(t, c.Problems[2].Message, "web depends on cache")
}

func TestCirclesOfDependenciesAreCut(t *testing.T) {
	c := build([]workload.Container{
		labelled("a", "depends-on=b"), labelled("b", "depends-on=c,d"), labelled("c", "depends-on=a"), labelled("d", "depends-on=d"), labelled("e", "depends-on=a"),
	})
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, names(c))
	require.Equal(t, []string{
		"c: dependencies go in a circle: a -> b -> c -> a; c starts without a (remove one of them)",
		"d: dependencies go in a circle: d -> d; d starts without d (remove one of them)",
	}, errorsOf(c))
	require.Equal(t, []string{"c", "d"}, c.Workloads[1].DependsOn)
	require.Empty(t, c.Workloads[2].DependsOn)
	require.Equal(t, []string{"a"}, c.Workloads[4].DependsOn)
}

func TestCheckFindsWhatEntriesAloneTell(t *testing.T) {
	es := entries(t, "- {name: a, container: a, host: x.y}\n- {name: b, container: b, host: x.y}\n- {name: c, depends_on: [somewhere]}\n- {name: d, min: 3, max: 2}\n- {name: p, process: {command: [x]}, ready: docker}")
	var lines []string
	for _, p := range catalog.Check(catalog.BuiltIn(), es) {
		lines = append(lines, p.Error())
	}
	require.Equal(t, []string{
		"rouse.yaml:2:27: the route x.y/ belongs to a already (rouse.yaml:1:3) (give one of them another host or path)",
		"rouse.yaml:4:13: min 3 is more than max 2 (lower min or raise max)",
		"rouse.yaml:5:38: p is to be ready by a health check and has none (add a HEALTHCHECK to the image, or use auto, tcp or http:/path)",
	}, lines, "that c is nothing, only the containers can tell")
}

func TestBuildLeavesItsInputAlone(t *testing.T) {
	defaults := catalog.BuiltIn()
	defaults.NoWake = []string{"/a", "/b"}
	in := catalog.Input{Defaults: defaults, Containers: []workload.Container{labelled("b", "no-wake=/x"), labelled("a")}}
	first := catalog.Build(in)
	require.Equal(t, "b", in.Containers[0].Name)
	require.Equal(t, []string{"/a", "/b"}, in.Defaults.NoWake)
	require.Equal(t, first, catalog.Build(in), "the same input makes the same catalog")
}
