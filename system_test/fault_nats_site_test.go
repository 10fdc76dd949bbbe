package system_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/events/eventstest"
)

// The workloads of a site, one for each way in which a fault can meet one.
// Each is a process: hundreds of starts cost less than ten of containers.
const (
	siteWarm = "warm" // is in use all the time
	siteSlow = "slow" // takes two seconds to start, and is asleep when the load begins
	siteFlap = "flap" // falls asleep as soon as it may, which takes it a second
)

// siteLoad is requests per second.
const siteLoad = 15

// A site is the roles of one node as processes of their own, with three
// workloads that note in the round's ledger what they do.
type site struct {
	t        *testing.T
	round    *round
	nats     *node
	scaler   *node
	gateways []*node

	natsPlan, scalerPlan, gatewayPlan plan
	store                             string // of NATS
	// What stands between a role and NATS; the other gateways connect
	// directly.
	scalerLine, gatewayLine *eventstest.Proxy

	lull chan struct{} // closed when the load goes on; nil while it always has
}

// A sitePlan says what is special about a site.
type sitePlan struct {
	gateways int    // 0 is one
	store    string // of NATS; empty is a folder of its own
	url      string // of a NATS that somebody else runs
	replicas int    // of the streams there
	program  string // see plan
}

// newSite starts the roles, and aims the round's load at the workloads.
func newSite(t *testing.T, r *round, p sitePlan) *site {
	t.Helper()
	s := &site{t: t, round: r, store: p.store}
	if s.store == "" {
		s.store = t.TempDir()
	}
	if p.url == "" {
		p.url = s.startNATS(p)
	}
	server := strings.TrimPrefix(p.url, "nats://")
	urls := [3]string{p.url, p.url, p.url} // of the scaler, the first gateway, the others
	if !strings.Contains(server, ",") {
		s.scalerLine, s.gatewayLine = eventstest.NewProxy(t, server), eventstest.NewProxy(t, server)
		urls = [3]string{s.scalerLine.URL(), s.gatewayLine.URL(), p.url}
	}
	s.scalerPlan = plan{role: "scaler", dir: t.TempDir(), program: p.program, config: siteEvents(urls[0], p.replicas) + siteWorkloads(r)}
	s.scaler = start(t, s.scalerPlan)
	for i := range max(1, p.gateways) {
		s.gatewayPlan = plan{role: "gateway", dir: t.TempDir(), program: p.program, config: siteEvents(urls[min(i+1, 2)], 0)}
		s.gateways = append(s.gateways, start(t, s.gatewayPlan))
	}
	for _, g := range s.gateways {
		aimSite(r, g)
	}
	return s
}

func (s *site) startNATS(p sitePlan) (url string) {
	s.t.Helper()
	addr := freeAddr(s.t)
	s.natsPlan = plan{
		role: "nats", dir: s.t.TempDir(), program: p.program,
		config: fmt.Sprintf("nats: { listen: %q, store_dir: %q }\n", addr, s.store),
	}
	s.nats = start(s.t, s.natsPlan)
	return "nats://" + addr
}

func siteEvents(url string, replicas int) string {
	if replicas == 0 {
		return fmt.Sprintf("nats: { url: %q }\n", url)
	}
	return fmt.Sprintf("nats: { url: %q, replicas: %d }\n", url, replicas)
}

// siteWorkloads is the part of the configuration that has the workloads.
func siteWorkloads(r *round) string {
	return noDocker + "defaults: { hold_timeout: 20s }\nworkloads:\n" +
		r.process(siteWarm, "    idle_timeout: 5s\n") +
		r.process(siteSlow, "    idle_timeout: 5s\n", "--startup", "2s") +
		r.process(siteFlap, "    idle_timeout: 200ms\n    stop_timeout: 1s\n", "--ignore-sigterm")
}

// aimSite has a gateway asked for all of the workloads.
func aimSite(r *round, g *node) {
	for _, name := range []string{siteWarm, siteSlow, siteFlap} {
		r.serve(g, name+".localhost")
	}
}

// A moment is when a fault comes.
type moment string

const (
	midStart moment = "in the middle of a start"
	midUse   moment = "in use"
	midSleep moment = "in the middle of a sleep"
)

// begin lets the load begin, and waits until the moment that a fault is to
// meet.
func (s *site) begin(at moment) {
	s.t.Helper()
	s.round.load(siteLoad)
	s.reach(at)
}

// reach waits for a moment under load.
func (s *site) reach(at moment) {
	s.t.Helper()
	if s.lull != nil {
		<-s.lull
	}
	g := s.gateways[0]
	switch at {
	case midStart:
		g.waitPhase(siteSlow, "waking")
	case midUse:
		g.waitPhase(siteWarm, "ready")
		g.waitPhase(siteSlow, "ready")
	case midSleep:
		g.waitPhase(siteSlow, "ready")
		s.lull = make(chan struct{})
		go func() {
			defer close(s.lull)
			s.round.lull(4 * time.Second) // less than the idle_timeout of the others
		}()
		g.waitPhase(siteFlap, "draining")
	}
}
