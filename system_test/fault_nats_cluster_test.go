package system_test

import (
	"testing"
	"time"

	"github.com/rouse-dev/rouse/events/eventstest"
)

var _ = register(
	fault{name: "JetStream cluster of three loses the leader of the states, and gets it back", round: func(t *testing.T, r *round) {
		loseServer(t, r, func(c *eventstest.Cluster) { c.StopLeader(t, "KV_ROUSE_STATE") })
	}},
	fault{name: "JetStream cluster of three loses a follower, and gets it back", round: func(t *testing.T, r *round) {
		loseServer(t, r, func(c *eventstest.Cluster) { c.StopFollower(t, "KV_ROUSE_STATE") })
	}},
	fault{name: "JetStream cluster of three loses its majority, and gets it back", round: func(t *testing.T, r *round) {
		loseServer(t, r, (*eventstest.Cluster).StopMost)
	}},
)

func loseServer(t *testing.T, r *round, lose func(*eventstest.Cluster)) {
	t.Helper()
	c := eventstest.StartCluster(t, 3)
	s := newSite(t, r, sitePlan{gateways: 2, url: c.URL(), replicas: 3})
	s.begin(midUse)
	r.inject(func() {
		lose(c)
		time.Sleep(away)
		c.Resume(t)
	})
	r.settle()
}
