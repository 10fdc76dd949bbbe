//go:build linux

package selftest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/selftest"
)

func TestTheGeneratorTellsTheTruth(t *testing.T) {
	checks, err := selftest.Run(t.Context(), selftest.Config{Stall: 100 * time.Millisecond, Rate: 1000, Busy: true})
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, selftest.Text(&text, checks))
	t.Log("\n" + text.String())
	for _, c := range checks {
		assert.True(t, c.OK, "%s: want %s, got %s", c.Name, c.Want, c.Got)
	}
	assert.True(t, selftest.Passed(checks))
	assert.Len(t, checks, 19)
}

func TestNoCheckIsNoProof(t *testing.T) {
	assert.False(t, selftest.Passed(nil))
	assert.False(t, selftest.Passed([]selftest.Check{{OK: true}, {OK: false}}))
}
