//go:build linux

package soak

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Leaks reads a process so many times and tells of each series that is
// judged whether it leaks.
func Leaks(t *testing.T, p Process, readings int) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	series, err := watch(ctx, p, time.Millisecond, func(map[string]float64) {
		if readings--; readings == 0 {
			cancel()
		}
	})
	require.NoError(t, err)
	leaks := map[string]bool{}
	for name := range series {
		allowance, judged := allowances[name]
		if judged {
			leaks[name] = trendOf(series[name]).leaks(allowance)
		}
	}
	return leaks
}
