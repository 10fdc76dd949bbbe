package docker_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Connections that the clients keep for their next call are none of ours.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}
