package events

import (
	"context"
	"time"
)

// setBack is by how much a wake must be younger than the server's clock shows
// for that clock to count as set back.
const setBack = time.Second

// free has wakes delivered again that the server would leave for as long as
// its clock was set back by: it reckons AckWait by that clock, and a scaler
// that died with a wake in hand would block the workload for an hour. Such a
// wake lies in the stream with a time that has not come yet. Other wakes in
// work are delivered twice then, which is harmless.
func (s *wakeServer) free(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	ctx, done := s.bus.guards.brief(ctx)
	defer done()
	info, err := s.bus.info(ctx, streamWakes)
	first := info.State.FirstTime
	if err != nil || info.State.Messages == 0 || first.Sub(info.Now) < setBack || first.Equal(s.freed) {
		return
	}
	if _, err := s.bus.js.ResetConsumer(ctx, streamWakes, s.consumer); err != nil {
		s.bus.log.Warn("clock of the nats server was set back, and wakes wait for it", "error", s.bus.explain(ctx, err))
		return
	}
	s.freed = first
	s.bus.log.Warn("clock of the nats server was set back: wakes are delivered again", "by", first.Sub(info.Now).Round(time.Second))
}
