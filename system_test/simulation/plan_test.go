package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// beginning is how long the nodes may take to be told to begin.
const beginning = 500 * time.Millisecond

// A plan is all that a seed decides beforehand: who is there, how good the
// links are, which requests come and what goes wrong.
type plan struct {
	seed     uint64
	gateways int
	scalers  int
	specs    []workload.Workload
	copies   map[string]int // workload -> containers
	storm    time.Duration  // how long things go wrong
	arrivals []arrival
	faults   []fault

	lostGateway time.Duration
	grace       time.Duration // of a gateway that ends
	queue       int           // requests held for each workload

	low, high, tail time.Duration // delays of the bus; tail is of a few
	tails           float64
	loss, twice     float64
	unconfirmed     float64

	start, boot, stop, events, callBack time.Duration // at most
	startFails, neverReady, exits       float64
	stopFails                           float64
	swaps                               bool
}

// An arrival is a request that will come.
type arrival struct {
	at            time.Duration
	gateway       int
	workload      string
	noWake        bool
	head, service time.Duration
	patience      time.Duration // 0: the client stays
	hold          time.Duration
}

// A chance is rand with the words that plans are made of.
type chance struct{ *rand.Rand }

func (c chance) of(p float64) bool { return c.Float64() < p }

func (c chance) between(low, high time.Duration) time.Duration {
	return low + time.Duration(c.Float64()*float64(high-low))
}

// some gives n times about mean: small ones often, large ones seldom.
func (c chance) about(mean time.Duration) time.Duration {
	return min(time.Duration(c.ExpFloat64()*float64(mean)), 20*mean) + 1
}

func newPlan(seed uint64) *plan {
	c := chance{rand.New(rand.NewPCG(seed, 0x5eed))}
	p := &plan{
		seed: seed, gateways: 1 + c.IntN(3), scalers: 1 + c.IntN(2), copies: map[string]int{},
		storm: c.between(10*time.Second, 25*time.Second), lostGateway: 8 * time.Second,
		grace: c.between(time.Second, 5*time.Second), queue: 5 + c.IntN(40),
		low: 50 * time.Microsecond, high: c.between(200*time.Microsecond, 20*time.Millisecond),
		tail: c.between(20*time.Millisecond, 450*time.Millisecond), tails: c.Float64() * 0.05,
		loss: c.Float64() * 0.04, twice: c.Float64() * 0.1, unconfirmed: c.Float64() * 0.02,
		start: c.between(50*time.Millisecond, time.Second), boot: c.between(5*time.Millisecond, 300*time.Millisecond),
		stop: c.between(20*time.Millisecond, 2*time.Second), callBack: c.between(time.Millisecond, 50*time.Millisecond),
		events:     c.between(time.Millisecond, 500*time.Millisecond),
		startFails: c.Float64() * 0.1, neverReady: c.Float64() * 0.05, exits: c.Float64() * 0.15,
		stopFails: c.Float64() * 0.05, swaps: c.of(0.5),
	}
	if c.of(0.2) {
		p.stop = c.between(5*time.Second, 9*time.Second) // beyond a lease
	}
	for i := range 1 + c.IntN(3) {
		p.describe(c, i)
	}
	p.conflict(chance{rand.New(rand.NewPCG(seed, 0xc0f1))})
	for i := range p.specs {
		p.load(c, &p.specs[i])
	}
	slices.SortFunc(p.arrivals, func(a, b arrival) int { return int(a.at - b.at) })
	p.trouble(c)
	return p
}

func (p *plan) describe(c chance, i int) {
	w := workload.Workload{
		Strategy: workload.StrategyRoundRobin, Name: fmt.Sprintf("w%d", i), Node: "n", Runtime: "sim", Ready: workload.Readiness{Kind: workload.ReadyAuto},
		IdleTimeout: c.between(1500*time.Millisecond, 4*time.Second), HoldTimeout: c.between(4*time.Second, 20*time.Second),
		WakeTimeout: c.between(2*time.Second, 5*time.Second), StopTimeout: 10 * time.Second, Stop: workload.StopStop,
	}
	if i > 0 && c.of(0.2) {
		w.DependsOn = []string{"w0"}
	}
	p.copies[w.Name] = 1
	if c.of(0.2) {
		p.copies[w.Name] = 2
	}
	p.specs = append(p.specs, w)
}

// conflict makes rivals of two that do not need each other. It has chances of
// its own, so that the rest of a plan is what it was without.
func (p *plan) conflict(c chance) {
	if len(p.specs) < 2 || p.stop > 5*time.Second || !c.of(0.3) {
		return
	}
	a, b := &p.specs[len(p.specs)-2], &p.specs[len(p.specs)-1]
	if slices.Contains(b.DependsOn, a.Name) || len(a.DependsOn)+len(b.DependsOn) > 1 {
		return
	}
	a.ConflictsWith, b.ConflictsWith = []string{b.Name}, []string{a.Name}
	for i := range p.specs { // they may wait for each other
		p.specs[i].WakeTimeout = 15 * time.Second
	}
}

// load plans the requests of one workload: a steady stream of them, bursts, or
// single ones with pauses that let it sleep, and a few that take long.
func (p *plan) load(c chance, w *workload.Workload) {
	kind := c.IntN(3)
	for at := beginning + c.about(time.Second); at < p.storm; {
		n, gap := 1, time.Duration(0)
		switch kind {
		case 0:
			gap = c.about(900 * time.Millisecond)
		case 1:
			n, gap = 1+c.IntN(12), c.about(w.IdleTimeout*3/2)
		case 2:
			gap = w.IdleTimeout + c.about(600*time.Millisecond) // just as it falls asleep
		}
		for range n {
			p.arrivals = append(p.arrivals, p.arrival(c, w, at+c.between(0, 20*time.Millisecond)))
		}
		at += gap
	}
}

func (p *plan) arrival(c chance, w *workload.Workload, at time.Duration) arrival {
	a := arrival{
		at: at, gateway: c.IntN(p.gateways), workload: w.Name, noWake: c.of(0.05),
		service: c.about(30 * time.Millisecond), hold: w.HoldTimeout,
	}
	if c.of(0.06) {
		a.service = c.about(2 * w.IdleTimeout)
	}
	a.head = time.Duration(c.Float64() * float64(a.service))
	if c.of(0.1) {
		a.patience = c.about(2 * time.Second)
	}
	return a
}

// trouble plans the faults.
func (p *plan) trouble(c chance) {
	for range 2 + c.IntN(8) {
		f := fault{at: c.between(time.Second, p.storm-2*time.Second), kind: faultKinds[c.IntN(len(faultKinds))]}
		f.target, f.lasts = c.IntN(100), c.about(2*time.Second)
		if f.kind == cutGateway && c.of(0.5) {
			f.lasts = c.between(workload.Gone, p.lostGateway*3/2)
		}
		f.lasts = min(f.lasts, p.storm-time.Second-f.at)
		p.faults = append(p.faults, f)
	}
	slices.SortFunc(p.faults, func(a, b fault) int { return int(a.at - b.at) })
}
