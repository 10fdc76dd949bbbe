package system_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// away is how long something is out of reach: longer than every idle_timeout
// of a site, so that whoever is cut off could take what is in use for idle.
const away = 8 * time.Second

var _ = register(killedRoles()...)

// killedRoles kills each role as a crash would, at several moments.
func killedRoles() (faults []fault) {
	for _, at := range []moment{midStart, midUse, midSleep} {
		faults = append(faults,
			fault{
				name: fmt.Sprintf("one of two gateways killed (kill -9) %s", at), quick: at == midUse,
				round: func(t *testing.T, r *round) {
					s := newSite(t, r, sitePlan{gateways: 2})
					s.begin(at)
					r.inject(s.gateways[0].kill)
					r.settle()
				},
			},
			fault{
				name: fmt.Sprintf("scaler killed (kill -9) %s, and started again", at), quick: at == midStart,
				round: func(t *testing.T, r *round) {
					s := newSite(t, r, sitePlan{})
					s.begin(at)
					r.inject(s.scaler.kill)
					start(t, s.scalerPlan)
					r.settle()
				},
			},
			fault{
				name: fmt.Sprintf("NATS killed (kill -9) %s, and started again", at), quick: at == midSleep,
				round: func(t *testing.T, r *round) {
					s := newSite(t, r, sitePlan{})
					s.begin(at)
					r.inject(s.nats.kill)
					start(t, s.natsPlan)
					r.settle()
				},
			},
			fault{
				name: fmt.Sprintf("rouse up killed (kill -9) %s, and started again", at),
				round: func(t *testing.T, r *round) {
					p := plan{role: "up", dir: t.TempDir(), listen: freeAddr(t)}
					p.config = fmt.Sprintf("nats: { store_dir: %q }\n", t.TempDir()) + siteWorkloads(r)
					s := &site{t: t, round: r, gateways: []*node{start(t, p)}}
					aimSite(r, s.gateways[0])
					s.begin(at)
					r.inject(s.gateways[0].kill)
					aimSite(r, start(t, p)) // where it was
					r.settle()
				},
			},
		)
	}
	return faults
}

var _ = register(
	fault{name: "NATS away for longer than idle_timeout", round: func(t *testing.T, r *round) {
		s := newSite(t, r, sitePlan{})
		s.begin(midUse)
		r.inject(func() {
			s.nats.kill()
			time.Sleep(away)
			start(t, s.natsPlan)
		})
		r.settle()
	}},
	fault{name: "NATS hangs (SIGSTOP) for longer than idle_timeout", round: func(t *testing.T, r *round) {
		s := newSite(t, r, sitePlan{})
		s.begin(midUse)
		r.inject(func() { s.nats.freeze(away) })
		r.settle()
	}},
	fault{name: "scaler hangs (SIGSTOP) for longer than its lease", round: func(t *testing.T, r *round) {
		s := newSite(t, r, sitePlan{})
		s.begin(midStart)
		r.inject(func() { s.scaler.freeze(away) })
		r.settle()
	}},
	fault{name: "one of two gateways hangs (SIGSTOP) for longer than idle_timeout", round: func(t *testing.T, r *round) {
		s := newSite(t, r, sitePlan{gateways: 2})
		s.begin(midUse)
		r.inject(func() { s.gateways[0].freeze(away) })
		r.settle()
	}},
	fault{name: "store of NATS lost", round: func(t *testing.T, r *round) {
		s := newSite(t, r, sitePlan{})
		s.begin(midUse)
		r.inject(func() {
			s.nats.kill()
			empty(t, s.store)
			start(t, s.natsPlan)
		})
		r.settle()
	}},
)

// freeze stops the process in its tracks for a while.
func (n *node) freeze(d time.Duration) {
	n.t.Helper()
	require.NoError(n.t, n.cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(d)
	require.NoError(n.t, n.cmd.Process.Signal(syscall.SIGCONT))
}

// empty removes all that a folder has.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
}
