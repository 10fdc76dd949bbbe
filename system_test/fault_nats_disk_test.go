package system_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var _ = register(fault{name: "disk of the NATS store full", round: func(t *testing.T, r *round) {
	disk := smallDisk(t, "32m")
	s := newSite(t, r, sitePlan{store: filepath.Join(disk, "nats")})
	s.begin(midUse)
	r.inject(func() {
		release := fill(t, disk)
		for end := time.Now().Add(away); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			a := s.gateways[0].get(siteWarm+".localhost", "/healthz")
			require.NoError(t, a.err)
			assert.Equal(t, 200, a.status, "what is awake does not need the disk: %s", a.body)
		}
		release()
	})
	r.settle()
}})

// smallDisk mounts a file system of its own in memory.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "a disk that can be full needs root, for a mount")
	}
	dir := t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size))
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// fill takes all the space there is on a disk, and gives it back when told.
func fill(t *testing.T, disk string) (release func()) {
	t.Helper()
	file := filepath.Join(disk, "filler")
	f, err := os.Create(file)
	require.NoError(t, err)
	defer f.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	return func() { require.NoError(t, os.Remove(file)) }
}

// missing ends a test of what the machine cannot do: where nothing may be
// missing that is a failure.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("CI=true and %s", what)
	}
	t.Skip(what)
}
