package scaler

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/bubble"
)

func TestPlacesAreGivenInTheOrderOfTheAsk(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPlaces(1)
		require.NoError(t, p.take(t.Context()))
		var got []int
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				require.NoError(t, p.take(t.Context()))
				got = append(got, i) // a place is a lock here
				p.give()
			})
			synctest.Wait()
		}
		p.give()
		all.Wait()
		assert.Equal(t, []int{0, 1, 2, 3, 4}, got)
		assert.Equal(t, 1, p.free)
	})
}

// Whoever leaves at the moment its turn comes gives the place on.
func TestNoPlaceIsLostToThoseWhoLeave(t *testing.T) {
	const n = 3
	p := newPlaces(n)
	var under, most atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 100 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(200))*time.Microsecond)
				if p.take(ctx) == nil {
					if u := under.Add(1); u > most.Load() {
						most.Store(u)
					}
					under.Add(-1)
					p.give()
				}
				cancel()
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, most.Load(), int64(n))
	assert.Equal(t, n, p.free)
	assert.Empty(t, p.waiting)
}

func TestTheErrorOfATakeIsTheCause(t *testing.T) {
	p, cause := newPlaces(0), errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	assert.ErrorIs(t, p.take(ctx), cause)
}

func TestTriesComeFirstEachMillisecondAndThenLessOften(t *testing.T) {
	for elapsed, want := range map[time.Duration]time.Duration{
		0: time.Millisecond, 50 * time.Millisecond: time.Millisecond, 100 * time.Millisecond: 2 * time.Millisecond,
		time.Second: 20 * time.Millisecond, time.Minute: 25 * time.Millisecond,
	} {
		assert.Equal(t, want, probePause(elapsed), elapsed)
	}
}

func TestATryMayTakeLongerTheLongerItHasRun(t *testing.T) {
	for elapsed, want := range map[time.Duration]time.Duration{
		0: 250 * time.Millisecond, time.Second: 250 * time.Millisecond, 10 * time.Second: time.Second, time.Hour: 5 * time.Second,
	} {
		assert.Equal(t, want, tryLimit(elapsed), elapsed)
	}
}

func TestTheBackOffGrowsToAMinuteAndStays(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 7: time.Minute, 1000: time.Minute,
	} {
		for _, chance := range []float64{0, 0.5, 0.99} {
			got := backoffAfter(failures, chance)
			assert.InDelta(t, want.Seconds(), got.Seconds(), want.Seconds()*0.2+1e-6, failures)
			assert.LessOrEqual(t, got, time.Minute)
		}
	}
}
