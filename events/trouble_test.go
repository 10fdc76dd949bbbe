package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestTroubleEndsWithTheElectionOfALeader(t *testing.T) {
	var tr trouble
	assert.True(t, tr.hear(advisory{kind: quorumLost, stream: streamWakes}, epoch))
	assert.False(t, tr.hear(advisory{kind: quorumLost, stream: streamWakes}, epoch.Add(20*time.Second)), "known")
	tr.hear(advisory{kind: quorumLost, stream: streamWakes, consumer: "scaler-n"}, epoch.Add(21*time.Second))

	got := tr.problems(epoch.Add(time.Minute))
	require.Len(t, got, 2)
	assert.Equal(t, "nats consumer scaler-n of ROUSE_WAKES", got[0].Place, "the newest first")
	assert.Equal(t, "nats stream ROUSE_WAKES", got[1].Place)
	assert.Equal(t, workload.ProblemNATS, got[1].Kind)
	assert.Contains(t, got[1].Message, "2026-01-01T12:00:20Z")
	assert.NotEmpty(t, got[1].Fix)

	tr.hear(advisory{kind: leaderElected, stream: streamWakes, detail: "a"}, epoch.Add(time.Minute))
	got = tr.problems(epoch.Add(time.Minute))
	require.Len(t, got, 1, "the consumer has none yet")
	assert.Equal(t, "nats consumer scaler-n of ROUSE_WAKES", got[0].Place)
}

func TestManyElectionsAreTrouble(t *testing.T) {
	var tr trouble
	elect := func(after time.Duration) bool {
		return tr.hear(advisory{kind: leaderElected, stream: streamStates, detail: "s1"}, epoch.Add(after))
	}
	assert.False(t, elect(0))
	assert.False(t, elect(10*time.Minute))
	assert.Empty(t, tr.problems(epoch.Add(10*time.Minute)))
	assert.False(t, elect(20*time.Minute), "the first one is forgotten")
	assert.True(t, elect(21*time.Minute))
	got := tr.problems(epoch.Add(21 * time.Minute))
	require.Len(t, got, 1)
	assert.Contains(t, got[0].Message, "its leader changed 3 times within 15 minutes, last to s1")
}

func TestTroubleIsForgotten(t *testing.T) {
	var tr trouble
	for i := range 30 {
		tr.hear(advisory{kind: maxDeliveries, stream: streamWakes, consumer: fmt.Sprint("c", i), detail: "5"}, epoch.Add(time.Duration(i)*time.Second))
	}
	got := tr.problems(epoch.Add(time.Minute))
	require.Len(t, got, troubleShown+1)
	assert.Equal(t, "nats consumer c29 of ROUSE_WAKES", got[0].Place)
	assert.Equal(t, "and 10 more", got[troubleShown].Message)
	assert.Len(t, tr.problems(epoch.Add(troubleLife+25*time.Second)), 4)
	assert.Empty(t, tr.problems(epoch.Add(troubleLife+time.Minute)))
	assert.Empty(t, tr.known)
}

func TestTroubleIsBounded(t *testing.T) {
	var tr trouble
	for i := range 2 * troubleKnown {
		tr.hear(advisory{kind: quorumLost, stream: streamWakes, consumer: fmt.Sprint("c", i)}, epoch.Add(time.Duration(i)))
	}
	last := advisory{kind: quorumLost, stream: streamWakes, consumer: "last"}
	for range 2 * troubleTimes {
		tr.hear(last, epoch.Add(time.Second))
	}
	assert.Len(t, tr.known, troubleKnown)
	assert.Len(t, tr.known[troubleKey{quorumLost, streamWakes, "last"}].times, troubleTimes)
	assert.Equal(t, "nats consumer last of ROUSE_WAKES", tr.problems(epoch.Add(time.Second))[0].Place)
}

func TestWhatIsNoAdvisoryIsRefused(t *testing.T) {
	for subject, data := range map[string]string{
		advisoryRoot + "STREAM.QUORUM_LOST.ROUSE_WAKES": "no json", advisoryRoot + "STREAM": "{}", advisoryRoot + "STREAM.QUORUM_LOST.KV_ROUSE_STATE": `{"type":"io.nats.jetstream.api.v1.stream_info_response"}`, advisoryRoot + "a.b.c.d.e": "{}",
	} {
		_, err := decodeAdvisory(&nats.Msg{Subject: subject, Data: []byte(data)})
		assert.ErrorIs(t, err, ErrMalformed, subject)
	}
}
