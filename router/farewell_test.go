package router_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/router"
)

// A proxy in front sends a request over a connection that it has kept, at the
// very moment that the gateway stops.
func TestAKeptConnectionIsGoodForOneMoreRequestWhenTheServerStops(t *testing.T) {
	rig := newRig(t, rigConfig{server: router.ServerConfig{Grace: patience}}, wiki())
	rig.ready("wiki", 1, upstream(t, ok("served")))
	conn, err := net.Dial("tcp", rig.addr)
	require.NoError(t, err)
	defer conn.Close()
	in := bufio.NewReader(conn)
	ask := func() *http.Response {
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: wiki.test\r\n\r\n")
		res, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		assert.Equal(t, "served", string(b))
		return res
	}
	assert.False(t, ask().Close)
	rig.stop()
	require.Eventually(t, func() bool {
		other, err := net.Dial("tcp", rig.addr)
		if err == nil {
			_ = other.Close()
		}
		return err != nil
	}, patience, 1e6, "no new connection is accepted")
	assert.True(t, ask().Close, "it hears that this was the last")
	_, err = in.ReadByte()
	assert.ErrorIs(t, err, io.EOF)
	require.NoError(t, <-rig.served)
}
