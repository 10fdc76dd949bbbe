package system_test

import (
	"flag"
	"sync"
	"testing"
	"time"
)

var (
	chaosRounds = flag.Int("chaos.rounds", 0, "rounds of every fault, one after the other; 0 is one of the quick ones, beside each other")
	chaosFile   = flag.String("chaos.report", "", "file whose table of faults is written anew")
	chaosBudget = flag.Duration("chaos.budget", 16*time.Minute, "time after which no round is begun that would not end in it")
)

// How many rounds are under way at the same time.
const (
	quickAtOnce = 4
	chaosAtOnce = 3
)

// A fault is one thing that goes wrong while requests come: a row of the table
// in docs/reliability.md.
type fault struct {
	name string
	// quick ones are part of make test.
	quick bool
	// round makes parts of its own, has r.load requests come, does what goes
	// wrong in r.inject, and lets r.settle count.
	round func(t *testing.T, r *round)
}

// registered are all faults, in the order of their files.
var registered []fault

// register adds faults. It is for the initial value of a package variable.
func register(faults ...fault) struct{} {
	registered = append(registered, faults...)
	return struct{}{}
}

// TestFaults lets things go wrong under a steady load, and counts what became
// of each request.
func TestFaults(t *testing.T) {
	if *chaosRounds > 0 {
		chaos(t)
		return
	}
	t.Parallel()
	beside := newBeside(quickAtOnce)
	for _, f := range registered {
		if f.quick {
			beside.do(func() { t.Run(f.name, func(t *testing.T) { once(t, f) }) })
		}
	}
	beside.wait()
}

// beside does some things at the same time whatever -parallel says: rounds
// mostly wait.
type beside struct {
	places chan struct{}
	all    sync.WaitGroup
}

func newBeside(most int) *beside { return &beside{places: make(chan struct{}, most)} }

// do waits for a place, and does it.
func (b *beside) do(what func()) {
	b.places <- struct{}{}
	b.all.Go(func() {
		defer func() { <-b.places }()
		what()
	})
}

func (b *beside) wait() { b.all.Wait() }

// once runs one round, and tells what it came to; nil if it came to nothing.
func once(t *testing.T, f fault) *tally {
	r := newRound(t, f)
	f.round(t, r)
	if r.tally == nil {
		t.Errorf("%s: the round did not settle", f.name)
	}
	return r.tally
}

// chaos goes round by round over all faults, so that each has had its turn
// when the time is over.
func chaos(t *testing.T) {
	if _, err := binaries(); err != nil { // not on the first fault's account
		t.Fatal(err)
	}
	c := newChaosReport(t)
	end := time.Now().Add(*chaosBudget)
	beside := newBeside(chaosAtOnce)
	for range *chaosRounds {
		for _, f := range registered {
			beside.do(func() {
				if time.Now().Add(c.longest(f.name)).Before(end) {
					c.run(f)
				}
			})
		}
	}
	beside.wait()
	c.close()
}
