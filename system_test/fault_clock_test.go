package system_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/clockjump"
)

// clockBinary is rouse with a wall clock that can be set while it runs. It is
// built once, without the race detector: its runtime is not the usual one.
var clockBinary = sync.OnceValues(func() (string, error) {
	dir, err := binaries()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "rouse-clock")
	return program, clockjump.Build(context.Background(), program, "../cmd/rouse")
})

// setClock sets a node's wall clock, and that of nobody else.
func (n *node) setClock(offset time.Duration) {
	n.t.Helper()
	clock, err := clockjump.Of(n.cmd.Process.Pid)
	require.NoError(n.t, err)
	require.NoError(n.t, clock.Set(offset))
}

// A jump is a clock that is set, to one time and to a second one, and right
// again.
type jump struct {
	whose string
	of    func(*site) []*node
	by    [2]time.Duration
}

var _ = register(jumps()...)

// jumps sets the clock of each role, and of all as one machine's would be.
func jumps() (faults []fault) {
	for _, j := range []jump{
		{whose: "the scaler", of: func(s *site) []*node { return []*node{s.scaler} }},
		{whose: "a gateway", of: func(s *site) []*node { return s.gateways[:1] }},
		{whose: "NATS", of: func(s *site) []*node { return []*node{s.nats} }},
		{whose: "the machine", of: func(s *site) []*node { return append([]*node{s.scaler, s.nats}, s.gateways...) }},
	} {
		for _, j.by = range [][2]time.Duration{{10 * time.Second, time.Hour}, {-10 * time.Second, -time.Hour}} {
			faults = append(faults, fault{
				name:  fmt.Sprintf("clock of %s set by %s, then %s, and right again", j.whose, j.by[0], j.by[1]),
				round: j.round,
			})
		}
	}
	return faults
}

func (j jump) round(t *testing.T, r *round) {
	s := newClockSite(t, r)
	s.begin(midStart)
	r.inject(func() {
		j.set(s, j.by[0])
		s.reach(midUse)
		j.set(s, 0)
		s.reach(midSleep)
		j.set(s, j.by[1])
		s.reach(midUse)
		s.reach(midSleep)
		j.set(s, 0)
	})
	r.settle()
	s.sleeps()
}

func (j jump) set(s *site, offset time.Duration) {
	for _, n := range j.of(s) {
		n.setClock(offset)
	}
}

func newClockSite(t *testing.T, r *round) *site {
	t.Helper()
	program, err := clockBinary()
	require.NoError(t, err)
	return newSite(t, r, sitePlan{gateways: 2, program: program})
}

// sleeps waits until nothing is awake: nobody asks any more.
func (s *site) sleeps() {
	s.t.Helper()
	for _, name := range []string{siteWarm, siteSlow, siteFlap} {
		s.gateways[0].waitPhase(name, "asleep")
	}
}

var _ = register(
	// The server gave the wake to a scaler that died, and reckons by the
	// clock when to give it to another.
	fault{name: "clock of NATS set back by an hour, and the scaler dies with a wake in hand", round: func(t *testing.T, r *round) {
		s := newClockSite(t, r)
		require.NoError(t, s.scaler.cmd.Process.Signal(syscall.SIGSTOP))
		r.load(siteLoad)
		eventually(t, "requests are held", func() bool {
			v, err := s.gateways[0].view(siteSlow)
			return err == nil && v.Queued > 2
		})
		r.inject(func() {
			s.nats.setClock(-time.Hour)
			s.scaler.kill()
			s.scaler = start(t, s.scalerPlan)
		})
		r.settle()
		s.sleeps()
	}},
	// A back-off that ends in an hour, by the clock that is right again.
	fault{name: "clock of the scaler right again, an hour back, in the back-off of a failed start", round: func(t *testing.T, r *round) {
		program, err := clockBinary()
		require.NoError(t, err)
		p := plan{role: "up", dir: t.TempDir(), program: program}
		switched := filepath.Join(p.dir, "program")
		require.NoError(t, os.Symlink("/bin/false", switched))
		p.config = noDocker + "workloads:\n" + strings.Replace(r.process("w", ""), binary(t, "loadtest"), switched, 1)
		n := start(t, p)
		n.setClock(time.Hour)
		r.serve(n, "w.localhost")
		r.load(siteLoad)
		n.waitPhase("w", "failed")
		r.inject(func() {
			n.setClock(0)
			require.NoError(t, os.Remove(switched))
			require.NoError(t, os.Symlink(binary(t, "loadtest"), switched))
		})
		r.settle()
	}},
)
