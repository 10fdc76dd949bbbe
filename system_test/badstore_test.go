package system_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// written runs a node for a moment, so that its store has something in it.
func written(t *testing.T, p plan) {
	t.Helper()
	n := start(t, p)
	require.Equal(t, 200, n.get("tool.localhost", "/").status)
	n.kill()
}

func damage(t *testing.T, dir string) (place string) {
	t.Helper()
	place = filepath.Join(dir, "data", "jetstream", "$G", "streams", "KV_ROUSE_STATE", "msgs", "1.blk")
	data, err := os.ReadFile(place)
	require.NoError(t, err)
	data[len(data)/4] ^= 0x55
	require.NoError(t, os.WriteFile(place, data, 0o600))
	return place
}

// A damaged store ends the program with its place and the way out, and is
// moved aside only when told to; then all works, with a new store.
func TestDamagedStoreEndsTheProgramUntilItIsToldToMoveIt(t *testing.T) {
	t.Parallel()
	p := plan{role: "up", dir: t.TempDir(), config: noDocker + processConfig(t, "tool", "")}
	written(t, p)
	place := damage(t, p.dir)
	for _, role := range []string{"up", "nats"} {
		code, out := refuse(t, plan{role: role, dir: p.dir, config: p.config})
		assert.Equal(t, 1, code, out)
		assert.Contains(t, out, strings.TrimPrefix(place, p.dir+"/"), "the place")
		assert.Contains(t, out, "--move-store-aside", "the way out")
	}
	aside := filepath.Join(p.dir, "data", "jetstream.broken-*")
	found, err := filepath.Glob(aside)
	require.NoError(t, err)
	require.Empty(t, found, "nothing was moved")

	p.args = []string{"--move-store-aside"}
	n := start(t, p)
	assert.Equal(t, 200, n.get("tool.localhost", "/").status)
	found, err = filepath.Glob(aside)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Contains(t, n.log.String(), filepath.Base(found[0]))
}

// A place that cannot be used is a mistake in the configuration, which is
// named with its key.
func TestStoreThatCannotBeUsedIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, role := range []string{"up", "nats"} {
		code, out := refuse(t, plan{role: role, dir: dir, config: noDocker + "nats: { store_dir: file }\n" + processConfig(t, "tool", "")})
		assert.Equal(t, 3, code, out)
		assert.Contains(t, out, "nats.store_dir: file")
	}
}

// A store that belongs to somebody else is not started without what cannot be
// read. This needs a second user, and so root.
func TestStoreOfAnotherUserIsNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be somebody else")
	}
	const nobody = 65534
	p := plan{role: "up", dir: t.TempDir(), config: noDocker + processConfig(t, "tool", "")}
	written(t, p)
	open := func(path string) {
		for ; path != "/" && path != os.TempDir(); path = filepath.Dir(path) {
			require.NoError(t, os.Chmod(path, 0o755))
		}
	}
	open(filepath.Dir(binary(t, "rouse")))
	open(p.dir)
	config := filepath.Join(p.dir, "other.yaml")
	require.NoError(t, os.WriteFile(config, []byte(p.config+"admin: { listen: \"127.0.0.1:0\" }\nlisten: \"127.0.0.1:0\"\n"), 0o644))
	owned := func(uid int, except string) {
		require.NoError(t, filepath.WalkDir(filepath.Join(p.dir, "data"), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && !strings.Contains(path, except) {
				err = os.Chown(path, uid, uid)
			}
			return err
		}))
	}
	for _, except := range []string{"data", "jetstream", "KV_ROUSE_STATE", "1.blk"} {
		owned(0, "nothing")
		owned(nobody, except)
		cmd := exec.Command(binary(t, "rouse"), "up", "--config", config)
		cmd.Dir = p.dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := cmd.CombinedOutput()
		require.Error(t, err, string(out))
		assert.Equal(t, 3, cmd.ProcessState.ExitCode(), "%s of root: %s", except, out)
		assert.Contains(t, string(out), "nats.store_dir")
		assert.Contains(t, string(out), "permission denied")
	}
}
