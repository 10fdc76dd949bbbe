package bubble_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/internal/bubble"
)

// Without the single processor this dies within seconds under the race
// detector.
func TestTimersThatAreDueCanBeReadByMany(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	for range 4 {
		bubble.Test(t, func(*testing.T) {
			var readers sync.WaitGroup
			for range 100 {
				readers.Go(func() {
					for range 500 {
						<-time.NewTimer(0).C
					}
				})
			}
			readers.Wait()
		})
	}
	assert.Equal(t, before, runtime.GOMAXPROCS(0), "they are given back")
}
