// Package dockertest gives tests a real Docker engine and containers of the
// sample workload.
//
// It owns what it makes on the engine: every container carries RunLabel, so
// that one can be told from those of other runs and of people, and is removed
// when the test that made it ends. Only the image stays, tagged by its
// content, for the next run to find.
//
// A test that asks for the engine where there is none is skipped, and fails
// when CI=true: there a missing engine is a fault. Nothing here starts or
// configures an engine.
package dockertest

import (
	"context"
	"crypto/rand"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/client"
)

// labelKey marks what tests made.
const labelKey = "dev.rouse.test"

var runID = sync.OnceValue(func() string { return rand.Text()[:10] })

// RunLabel is the label of everything that this test binary makes, in the
// form key=value.
func RunLabel() string { return labelKey + "=" + runID() }

// connect is done once for all tests of a binary.
var connect = sync.OnceValues(func() (*client.Client, error) {
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = c.Ping(ctx)
	return c, err
})

// Client returns a client of the engine that the environment names, shared by
// all tests of the binary. Without an engine the test is skipped, or fails
// when CI=true.
func Client(t testing.TB) *client.Client {
	t.Helper()
	c, err := connect()
	switch {
	case err == nil:
		return c
	case os.Getenv("CI") == "true":
		t.Fatalf("CI=true and no Docker engine: %v", err)
	default:
		t.Skipf("no Docker engine: %v", err)
	}
	return nil
}

// Prefix makes a label prefix that nobody else uses, so that a runtime under
// test sees the containers of its own test alone.
func Prefix(t testing.TB) string {
	t.Helper()
	return "t" + rand.Text()[:10]
}
