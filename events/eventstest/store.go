package eventstest

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// storeDir is a directory for a server, which is removed when the test has
// ended: again and again for a while, since a server may go on writing for a
// moment after it says that it has shut down.
func storeDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rouse-nats-")
	require.NoError(t, err)
	t.Cleanup(func() {
		for end := time.Now().Add(10 * time.Second); os.RemoveAll(dir) != nil; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("%s cannot be removed", dir)
				return
			}
		}
	})
	return dir
}
