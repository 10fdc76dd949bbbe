package router

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/bubble"
)

// all takes every turn there is.
func all(t *testing.T, turns *turns) []turn {
	taken := make([]turn, turnsPerCore*runtime.GOMAXPROCS(0))
	for i := range taken {
		var err error
		taken[i], err = turns.take(t.Context(), 0)
		require.NoError(t, err)
		require.NotNil(t, taken[i].limit, "there are turns left")
	}
	return taken
}

func TestATurnIsWaitedForUntilAnotherEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		turns := newTurns()
		taken := all(t, turns)
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				mine, err := turns.take(t.Context(), time.Hour)
				assert.NoError(t, err)
				order <- i
				mine.end()
			}()
			synctest.Wait()
		}
		assert.Empty(t, order)
		taken[0].end()
		taken[0].end() // once more is no harm
		for i := range 3 {
			assert.Equal(t, i, <-order)
		}
		assert.Len(t, turns.places, len(taken)-1)
		for i := range taken {
			taken[i].end()
		}
		assert.Empty(t, turns.places)
	})
}

func TestATurnEndsAtItsLimitThoughNoAnswerCame(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		turns := newTurns()
		taken := all(t, turns)
		began := time.Now()
		late, err := turns.take(t.Context(), time.Hour)
		require.NoError(t, err)
		assert.Equal(t, turnLimit, time.Since(began))
		synctest.Wait()
		for i := range taken {
			taken[i].end() // gives back nothing that the limit has given already
		}
		assert.Len(t, turns.places, 1)
		late.end()
		assert.Empty(t, turns.places)
	})
}

func TestARequestGoesWithoutATurnOnceItsHoldIsOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		turns := newTurns()
		taken := all(t, turns)
		none, err := turns.take(t.Context(), time.Millisecond)
		require.NoError(t, err)
		none.end()
		assert.Len(t, turns.places, len(taken), "it gave back what it never had")
		time.Sleep(turnLimit)
	})
}

func TestAClientThatLeavesTakesNoTurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		turns := newTurns()
		taken := all(t, turns)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		_, err := turns.take(ctx, time.Hour)
		assert.ErrorIs(t, err, gone)
		assert.Len(t, turns.places, len(taken))
		time.Sleep(turnLimit)
	})
}
