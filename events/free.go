package events

import (
	"context"
	"time"
)

// setBack is by how much a message must be younger than the server's clock
// shows for that clock to count as set back.
const setBack = time.Second

// free has messages delivered again that the server would leave for as long as
// its clock was set back by: it reckons AckWait by that clock, and a scaler
// that died with a wake in hand would block the workload for an hour. The
// stream begins or ends with a time that has not come yet then. Other messages
// in work are delivered twice, which is harmless.
func (w *worker) free(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	ctx, done := w.bus.guards.brief(ctx)
	defer done()
	info, err := w.bus.info(ctx, w.stream)
	newest := info.State.FirstTime
	if info.State.LastTime.After(newest) {
		newest = info.State.LastTime
	}
	if err != nil || info.State.Messages == 0 || newest.Sub(info.Now) < setBack || newest.Equal(w.freed) {
		return
	}
	if _, err := w.bus.js.ResetConsumer(ctx, w.stream, w.want.Durable); err != nil {
		w.bus.log.Warn("clock of the nats server was set back, and messages wait for it", "consumer", w.want.Durable, "error", w.bus.explain(ctx, err))
		return
	}
	w.freed = newest
	w.bus.log.Warn("clock of the nats server was set back: messages are delivered again", "consumer", w.want.Durable, "by", newest.Sub(info.Now).Round(time.Second))
}
