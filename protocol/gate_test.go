package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

func ready(revision uint64) protocol.News {
	return protocol.News{Phase: workload.Ready, Revision: revision, Serving: true}
}

func TestAGateOpensByNewerNewsThanItsDrainAlone(t *testing.T) {
	var g protocol.Gate
	assert.True(t, g.Shut())
	assert.Equal(t, protocol.HeardFirst, g.Hear(ready(3)))
	assert.False(t, g.Shut())
	assert.True(t, g.Drain(6), "closed")
	assert.Equal(t, protocol.HeardMore, g.Hear(ready(5)), "written before the drain")
	assert.True(t, g.Shut())
	assert.Equal(t, protocol.HeardOld, g.Hear(ready(4)))
	assert.Equal(t, protocol.HeardAgain, g.Hear(ready(5)))
	assert.True(t, g.Shut())
	assert.Equal(t, protocol.HeardNew, g.Hear(protocol.News{Phase: workload.Ready, Generation: 1, Revision: 7, Serving: true}))
	assert.False(t, g.Shut())
	assert.False(t, g.Drain(6), "long past")
	assert.False(t, g.Shut())
}

func TestTheNewsOfANewStoreIsTakenWhateverItsRevision(t *testing.T) {
	var g protocol.Gate
	g.Hear(ready(70))
	g.Drain(71)
	g.Forget()
	assert.True(t, g.Shut(), "until it comes")
	assert.Equal(t, protocol.HeardFirst, g.Hear(ready(2)))
	assert.False(t, g.Shut())

	g.Forget()
	assert.True(t, g.Drain(4), "of the new one")
	g.Hear(ready(3))
	assert.True(t, g.Shut())
	g.Hear(ready(5))
	assert.False(t, g.Shut())
}

func TestARefusalIsOverWithNewerNewsOrARetry(t *testing.T) {
	var g protocol.Gate
	g.Hear(ready(1))
	g.Refuse()
	assert.True(t, g.Shut())
	assert.True(t, g.Unreachable())
	g.Hear(ready(1))
	assert.True(t, g.Shut())
	g.Retry()
	assert.False(t, g.Shut())
	g.Refuse()
	g.Hear(ready(2))
	assert.False(t, g.Shut())
}

func TestOnlyNewsOfAFailureEndsThoseWhoWait(t *testing.T) {
	failed := protocol.News{Phase: workload.Failed, Revision: 1}
	assert.True(t, protocol.HeardNew.Fails(failed, false))
	assert.True(t, protocol.HeardFirst.Fails(failed, true))
	assert.False(t, protocol.HeardFirst.Fails(failed, false), "it may be long ago")
	assert.False(t, protocol.HeardAgain.Fails(failed, true))
	assert.False(t, protocol.HeardMore.Fails(failed, true), "who waits has come after it")
	assert.False(t, protocol.HeardNew.Fails(ready(1), true))
}

func TestWhoCouldNotSayIsNotTakenForIdle(t *testing.T) {
	idle := workload.Drained{Gateway: "a"}
	sum := protocol.SumUp([]workload.Drained{idle}, []string{"a"})
	assert.Equal(t, protocol.Sum{}, sum)
	assert.False(t, sum.Busy(false))
	for name, s := range map[string]protocol.Sum{
		"nobody was asked":  protocol.SumUp(nil, nil),
		"one is missing":    protocol.SumUp([]workload.Drained{idle}, []string{"a", "b"}),
		"one is open":       protocol.SumUp([]workload.Drained{{Gateway: "a", Open: true}}, []string{"a"}),
		"one nobody asked":  protocol.SumUp([]workload.Drained{idle, {Gateway: "b", InFlight: 1}}, []string{"a"}),
		"something is held": protocol.SumUp([]workload.Drained{{Gateway: "a", Queued: 1}}, []string{"a"}),
	} {
		assert.True(t, s.Busy(false), name)
		assert.Equal(t, name != "something is held", s.Busy(true), name)
	}
}
