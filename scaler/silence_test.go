package scaler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// silence makes a gateway one of which nothing is heard, or ends that.
func (w *world) silence(gateway string, silent bool) {
	g := w.gateway(gateway)
	w.mu.Lock()
	defer w.mu.Unlock()
	g.silent = silent
}

// A gateway that is cut off from the events goes on serving what it knows as
// ready, and nobody hears of it.
func TestAGatewayThatWentSilentKeepsEverythingAwakeUntilItIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{LostGateway: 5 * time.Minute}, spec("wiki"))
		w.gateway("g2")
		time.Sleep(5 * time.Second)
		n.wake(t, "wiki")
		w.silence("g2", true) // it never used the workload, as far as is known
		time.Sleep(3 * time.Minute)
		w.ready("wiki", 1)
		assert.Zero(t, n.SleepsAt("wiki"))
		err := n.Sleep(t.Context(), "wiki")
		require.ErrorIs(t, err, scaler.ErrUnsure)
		require.ErrorContains(t, err, "nothing is heard of gateway g2")

		w.silence("g2", false) // it was cut off, and is back
		w.use("g2", "wiki", 1)
		time.Sleep(10 * time.Minute)
		w.ready("wiki", 1)
		w.use("g2", "wiki", 0)
		time.Sleep(62 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)

		n.wake(t, "wiki")
		w.silence("g2", true)
		time.Sleep(5*time.Minute - 2*time.Second)
		w.ready("wiki", 2)
		time.Sleep(5 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase, "it counts as dead")
	})
}

func TestAGatewayThatIsReplacedAtItsPlaceKeepsNothingAwake(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		w.board.Hear(workload.Activity{Gateway: "killed", Place: "host :8080"}, time.Now())
		time.Sleep(5 * time.Second)
		n.wake(t, "wiki")
		time.Sleep(90 * time.Second)
		w.ready("wiki", 1)
		w.board.Hear(workload.Activity{Gateway: "again", Place: "host :8080", Leaving: true}, time.Now())
		time.Sleep(2 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
	})
}
