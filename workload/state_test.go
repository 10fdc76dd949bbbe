package workload_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/workload"
)

// The writer's clock may differ from the reader's, and Since is by the same.
func TestABackOffLastsNoLongerThanItsWriterMeant(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		written time.Time // by the writer's clock
		want    time.Duration
	}{
		"clocks agree":                {now, 10 * time.Second},
		"seen a while later":          {now.Add(-4 * time.Second), 6 * time.Second},
		"the writer's is ahead":       {now.Add(time.Hour), 10 * time.Second},
		"the writer's is behind":      {now.Add(-time.Hour), 10*time.Second - time.Hour},
		"the writer's is a bit ahead": {now.Add(time.Second), 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := workload.State{Since: c.written.Round(0), RetryAt: c.written.Add(10 * time.Second).Round(0)}
			assert.Equal(t, c.want, s.SeenAt(now).RetryAt.Sub(now))
		})
	}
	assert.Zero(t, workload.State{Since: now}.SeenAt(now).RetryAt)
}
