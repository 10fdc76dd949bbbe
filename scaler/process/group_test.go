//go:build linux

package process

import (
	"bytes"
	"os"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestStatIsReadWhateverTheProgramIsCalled(t *testing.T) {
	const rest = " S 1 4242 4242 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0 18446744073709551615\n"
	for _, name := range []string{"sh", "a b", ") Z 1 1 1 (", "((("} {
		st, err := parseStat([]byte("4242 (" + name + ")" + rest))
		require.NoError(t, err)
		require.Equal(t, stat{'S', 4242, 987654}, st)
	}
	own, err := readStat(os.Getpid())
	require.NoError(t, err)
	require.NotZero(t, own.start)
	require.False(t, own.dead())
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("1 (a) S 1 1 1 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 9 0"))
	f.Add([]byte("1 (a) Z"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if st, err := parseStat(data); err != nil {
			require.Zero(t, st)
		}
	})
}

func FuzzLastLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n=== started by rouse at x ===\nc"), 2)
	f.Add([]byte("\n\xff"), 10)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		lines := lastLines(data, n)
		require.LessOrEqual(t, len(lines), max(0, n))
		for _, l := range lines {
			require.True(t, utf8.ValidString(l))
			require.NotContains(t, l, "\n")
		}
		require.LessOrEqual(t, len(lines), bytes.Count(data, []byte("\n"))+1)
	})
}
