package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A mutant is a product with a fault built in, one of them.
type mutant struct {
	anyRevision    bool // the store compares nothing
	noRedelivery   bool // a wake whose scaler died is not handed out again
	blindFeed      bool // news that was missed is not read
	forgetfulDrain bool // one gateway is not asked
	noInFlight     bool // gateways do not tell what they have in flight
	openDrain      bool // a drain closes no gate
	wakeOnce       bool // an ask is not repeated
	hasty          bool // a gateway that went silent counts as dead at once
	secondTry      bool // a request that broke off is sent again
	leaseless      bool // the lease of another is not respected
}

// mutantSeeds bounds how many seeds a mutant may survive.
const mutantSeeds = 400

// TestEachMutantIsCaught proves that the simulation can fail: each fault that
// is built into the product breaks a rule within a few seeds.
func TestEachMutantIsCaught(t *testing.T) {
	for name, m := range map[string]mutant{
		"the store compares nothing":            {anyRevision: true},
		"wakes are not handed out again":        {noRedelivery: true},
		"news that was missed is not read":      {blindFeed: true},
		"a drain forgets a gateway":             {forgetfulDrain: true},
		"in flight is not told":                 {noInFlight: true},
		"a drain closes no gate":                {openDrain: true},
		"an ask is not repeated":                {wakeOnce: true},
		"a silent gateway counts as dead":       {hasty: true},
		"a request that broke is sent again":    {secondTry: true},
		"the lease of another is not respected": {leaseless: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caught := uint64(0)
			for seed := uint64(1); caught == 0 && seed <= mutantSeeds; seed++ {
				p := newPlan(seed)
				if m.openDrain {
					p = onBadLinks(p)
				}
				if o := simulate(t, p, m); o.failed() {
					caught = seed
					t.Logf("seed %d: %s", seed, o.broken[0])
				}
			}
			assert.NotZero(t, caught, "not caught by %d seeds", mutantSeeds)
		})
	}
}

// onBadLinks makes news late and lost more often, which is when it matters
// what a drain does.
func onBadLinks(p *plan) *plan {
	p.loss, p.tails = 0.1, 0.2
	return p
}

// TestBadLinksAloneBreakNoRule is what makes the end of that mutant its own.
func TestBadLinksAloneBreakNoRule(t *testing.T) {
	for seed := uint64(1); seed <= mutantSeeds/4; seed++ {
		tell(t, simulate(t, onBadLinks(newPlan(seed)), mutant{}), false)
	}
}
