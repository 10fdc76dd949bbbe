package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/doctor"
	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/scaler/docker"
	"github.com/rouse-dev/rouse/workload"
)

// An examination gathers what a doctor looks at.
type examination struct {
	g   *globals
	cfg Config
	doctor.Evidence
}

// examine asks everybody who can be reached, each for a few seconds at most.
func (g *globals) examine(ctx context.Context) doctor.Evidence {
	x := &examination{g: g}
	x.settings()
	x.server(ctx)
	x.engine(ctx)
	x.nats(ctx)
	return x.Evidence
}

func (x *examination) checked(format string, args ...any) {
	x.Checked = append(x.Checked, fmt.Sprintf(format, args...))
}

func (x *examination) unchecked(what, why string) {
	x.Unchecked = append(x.Unchecked, doctor.Unchecked{What: what, Why: why})
}

func (x *examination) settings() {
	cfg, err := x.g.load(nil)
	x.cfg = cfg
	var wrong *configError
	if errors.As(err, &wrong) {
		for _, p := range wrong.problems {
			x.Settings = append(x.Settings, workload.Problem{Place: p.Place, Message: p.Message, Fix: p.Fix})
		}
	}
	file := cfg.File
	if file == "" {
		file = "no file, defaults"
	}
	x.checked("configuration (%s)", file)
}

// server asks a running Rouse.
func (x *examination) server(ctx context.Context) {
	c, err := x.g.client()
	if err != nil {
		x.unchecked("a running Rouse", err.Error())
		return
	}
	list, err := workloadsWithin(ctx, c, askWithin)
	switch {
	case errors.Is(err, client.ErrUnreachable):
		x.Server = &doctor.Server{Address: c.Base(), Err: err.Error()}
		return
	case err != nil:
		x.unchecked("the running Rouse at "+c.Base(), apiError(err).Error())
		return
	}
	x.uses(c.Base(), list.Workloads)
	x.Server.Missing = missing(ctx, c)
	x.Problems = list.Problems
	x.checked("Rouse at %s, %s", c.Base(), several(len(list.Workloads), "workload"))
}

// uses takes in what a running Rouse says of its workloads.
func (x *examination) uses(address string, list []api.Workload) {
	x.Server = &doctor.Server{Address: address, Now: time.Now()}
	for _, w := range list {
		x.Server.Uses = append(x.Server.Uses, doctor.Use{
			Name: w.Name, Phase: w.Phase, Since: w.Since, Reason: w.Reason.String(),
			InFlight: w.InFlight, Queued: w.Queued, LastRequestAt: w.LastRequestAt,
		})
		x.know(workload.Workload{Name: w.Name})
	}
}

// know adds a workload unless one of its name is there; the first told most.
func (x *examination) know(w workload.Workload) {
	for _, known := range x.Workloads {
		if known.Name == w.Name {
			return
		}
	}
	x.Workloads = append(x.Workloads, w)
}

func missing(ctx context.Context, c *client.Client) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	ready, err := c.Ready(ctx)
	if err != nil {
		return map[string]string{"readyz": err.Error()}
	}
	missing := map[string]string{}
	for _, check := range ready.Checks {
		if !check.OK {
			missing[check.Name] = check.Detail
		}
	}
	return missing
}

// engine asks the Docker engine, where there is one on this machine.
func (x *examination) engine(ctx context.Context) {
	cfg := x.cfg.Docker
	if cfg.Host == "" {
		x.unchecked("containers", "docker.host is empty")
		return
	}
	if path, ok := strings.CutPrefix(cfg.Host, "unix://"); ok && x.cfg.Origin("docker.host") == "default" {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			x.unchecked("containers", "there is no "+path+" here; only the scaler has it, so run rouse doctor where the scaler runs")
			return
		}
	}
	x.Engine = &doctor.Engine{Host: cfg.Host, Prefix: cfg.LabelPrefix, Inside: ownContainer()}
	x.Engine.Local = x.Engine.Inside == "" && x.cfg.NATS.URL == ""
	r, err := docker.New(docker.Config{
		Host: cfg.Host, LabelPrefix: cfg.LabelPrefix, ForeignPrefixes: foreignPrefixes(x.cfg.Compat), Address: docker.Addressing(cfg.Address),
	})
	if err != nil {
		x.Engine.Err = err.Error()
		return
	}
	s, err := r.Survey(ctx, x.named)
	x.see(s, err)
	if err == nil {
		x.describe()
		x.checked("Docker engine %s (API %s) at %s, %s", s.Version, s.Newest, cfg.Host, several(len(s.Containers), "container"))
	}
}

// ownContainer is the host name where that is a container's: the beginning of
// its ID, unless somebody gave it another.
func ownContainer() string {
	if _, err := os.Stat("/.dockerenv"); err != nil {
		return ""
	}
	name, _ := os.Hostname() // without it nobody is found
	return name
}

// named reports a container that an entry names.
func (x *examination) named(c workload.Container) bool {
	for _, e := range x.cfg.Workloads {
		if e.Container != "" && e.Container == c.Name || e.Service != "" && e.Service == c.Service {
			return true
		}
	}
	return false
}

func (x *examination) see(s docker.Survey, err error) {
	e := x.Engine
	e.Version, e.Newest, e.Oldest, e.Spoken = s.Version, s.Newest, s.Oldest, s.Spoken
	e.Socket, e.Plain, e.Offset, e.Told, e.Published = s.Socket, s.Plain, s.Offset, s.Told, s.Published
	for _, c := range s.Containers {
		e.Containers = append(e.Containers, doctor.Container(c))
	}
	if err != nil {
		e.Err = err.Error()
	}
}

// describe makes the catalog of this node, as its scaler would.
func (x *examination) describe() {
	in := catalog.Input{Node: x.cfg.Node, Prefix: x.cfg.Docker.LabelPrefix, Defaults: x.cfg.Defaults, Entries: x.cfg.Workloads}
	for _, c := range x.Engine.Containers {
		in.Containers = append(in.Containers, c.Container)
	}
	c := catalog.Build(in)
	others := x.Workloads // of which a running Rouse told no more than their names
	x.Workloads, x.Problems = c.Workloads, append(x.Problems, c.Problems...)
	for _, w := range others {
		x.know(w)
	}
	x.UTC = time.Local.String() == "UTC" || os.Getenv("TZ") == "" && zoneless()
}

// zoneless reports that local time is UTC for want of anything else.
func zoneless() bool {
	name, offset := time.Now().Zone()
	return name == "UTC" && offset == 0
}

// nats asks the server at nats.url, or the embedded one if it listens.
func (x *examination) nats(ctx context.Context) {
	n := &doctor.NATS{Place: redact(x.cfg.NATS.URL), LostGatewayAfter: x.cfg.Limits.LostGatewayAfter}
	url := x.cfg.NATS.URL
	if url == "" {
		n.Dir, n.Free = roomOf(x.cfg.NATS.StoreDir)
		n.Open = beyond(x.cfg.NATS.Listen)
		if n.Dir != "" {
			x.NATS = n
			x.checked("disk of %s", n.Dir)
		}
		if x.cfg.NATS.Listen == "" {
			x.unchecked("NATS", "the server is embedded and does not listen (nats.listen); Rouse itself says above whether it has it")
			return
		}
		url = strings.Replace(dialable(x.cfg.NATS.Listen), "http://", "nats://", 1)
		n.Place = url
	}
	x.NATS = n
	s, err := survey(ctx, events.Config{URL: url, Creds: x.cfg.NATS.Creds, Name: "doctor", Role: x.role()})
	switch {
	case errors.Is(err, events.ErrDenied):
		x.unchecked("NATS at "+n.Place, "the server denies it to this role: "+err.Error())
	case err != nil:
		n.Err = err.Error()
	case s.Nodes == nil:
		x.unchecked("whether every node has a scaler", "only the scaler's account may know it, or there are no workloads yet")
		fallthrough
	default:
		x.checked("NATS at %s", n.Place)
	}
	x.hear(s)
}

// natsWithin is how long NATS may take to answer at all.
const natsWithin = 3 * time.Second

func survey(ctx context.Context, cfg events.Config) (events.Survey, error) {
	ctx, cancel := context.WithTimeout(ctx, natsWithin)
	defer cancel()
	bus, err := events.Connect(ctx, cfg)
	if err != nil {
		return events.Survey{}, err
	}
	defer bus.Close()
	return bus.Survey(ctx)
}

// role is whose inbox is used: with accounts, each role has but its own.
func (x *examination) role() string {
	if x.Engine != nil && x.Engine.Err == "" {
		return "scaler"
	}
	return "gateway"
}

func (x *examination) hear(s events.Survey) {
	n := x.NATS
	n.Offset, n.Told, n.Store, n.StoreMost, n.Nodes = s.Offset, s.Told, s.Store, s.StoreMost, s.Nodes
	for _, stream := range s.Streams {
		n.Streams = append(n.Streams, doctor.Stream(stream))
	}
	for _, p := range s.Peers {
		n.Peers = append(n.Peers, doctor.Peer(p))
	}
}

// beyond is an address if others than this machine reach it.
func beyond(listen string) string {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || host == "localhost" {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return ""
	}
	return listen
}
