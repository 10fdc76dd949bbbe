package clockjump_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/clockjump"
)

func TestTheWallClockJumpsAndTheMonotonicOneDoesNot(t *testing.T) {
	program := filepath.Join(t.TempDir(), "clock")
	require.NoError(t, clockjump.Build(t.Context(), program, "./testdata/clock"))
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { require.NoError(t, cmd.Wait()) }()
	defer in.Close()
	clock, err := clockjump.Of(cmd.Process.Pid)
	require.NoError(t, err)

	_, before := ask(t, in, out)
	for _, offset := range []time.Duration{time.Hour, -time.Hour, 10 * time.Second, 0} {
		require.NoError(t, clock.Set(offset))
		wall, elapsed := ask(t, in, out)
		assert.InDelta(t, offset.Seconds(), time.Until(wall).Seconds(), 0.9)
		assert.Greater(t, elapsed, before)
		assert.Less(t, elapsed-before, time.Minute)
		before = elapsed
	}
}

func ask(t *testing.T, in io.Writer, out io.Reader) (wall time.Time, elapsed time.Duration) {
	t.Helper()
	_, err := fmt.Fprintln(in)
	require.NoError(t, err)
	var nanos int64
	_, err = fmt.Fscanln(out, &nanos, &elapsed)
	require.NoError(t, err)
	return time.Unix(0, nanos), elapsed
}

func TestAProcessOfAnotherBuildHasNoClock(t *testing.T) {
	_, err := clockjump.Of(os.Getpid())
	require.ErrorContains(t, err, "not built by clockjump")
}
