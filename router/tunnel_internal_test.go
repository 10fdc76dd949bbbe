package router

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/bubble"
)

// An end is one of a connection in memory; told is closed when the other side
// has half closed it, which a pipe cannot do.
type end struct {
	net.Conn
	told chan struct{}
}

func (e end) CloseWrite() error { close(e.told); return nil }

// A side that is done and hears of its peer's end, but neither speaks nor
// hangs up, keeps the tunnel for a while; one that speaks for as long as it
// does.
func TestTunnelEndsSoonAfterItsWorkload(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		client, front := net.Pipe()
		workload, back := net.Pipe()
		said := 0
		tun := &tunnel{front: end{front, make(chan struct{})}, buffers: newBuffers(),
			back: end{listening{back, &said}, make(chan struct{})}}
		ended := make(chan struct{})
		go func() { tun.carry(); close(ended) }()
		require.NoError(t, workload.Close())
		<-tun.front.(end).told
		for range 3 {
			time.Sleep(halfTimeout - time.Second)
			_, err := client.Write([]byte("x"))
			require.NoError(t, err)
		}
		began := time.Now()
		<-ended
		assert.Equal(t, halfTimeout, time.Since(began))
		assert.Equal(t, 3, said)
		client.Close()
	})
}

// listening is a workload's end that takes all that is written, though it has
// said its last word.
type listening struct {
	net.Conn
	said *int
}

func (l listening) Write(p []byte) (int, error) { *l.said += len(p); return len(p), nil }

func TestFramesAreFollowedOverAnyCut(t *testing.T) {
	var stream []byte
	var ends []int // of frames, in stream
	for _, n := range []int{0, 1, 125, 126, 1 << 16} {
		head := []byte{0x82, byte(min(n, 126))}
		switch {
		case n >= 1<<16:
			head = []byte{0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0}
		case n == 126:
			head = append(head, 0, 126)
		}
		stream = append(append(stream, head...), make([]byte, n)...)
		ends = append(ends, len(stream))
	}
	for _, size := range []int{1, 2, 3, 7, 4096, len(stream)} {
		var f frames
		at := 0
		for _, end := range ends {
			for at < end {
				n := min(size, end-at)
				f.pass(stream[at:at+n], true)
				at += n
				require.Equal(t, at == end, f.between(), "at %d, pieces of %d", at, size)
			}
		}
		assert.EqualValues(t, len(stream), f.bytes)
	}
}
