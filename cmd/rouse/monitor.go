package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/natsd"
	"github.com/rouse-dev/rouse/events/series"
)

// advisoriesAgain is after how long a role that was denied them asks to hear
// advisories again.
const advisoriesAgain = 10 * time.Minute

// monitorServer shows the server in this process, and what room its disk has.
func (c *core) monitorServer(s *natsd.Server) error {
	room := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rouse_nats_store_free_bytes",
		Help: "Room on the disk of the embedded NATS server's store; NaN where it is not known.",
	}, func() float64 { return roomFor(c.cfg.NATS.StoreDir) })
	err := errors.Join(c.reg.Register(series.NewCollector(s.Snapshot)), c.reg.Register(room))
	if err != nil {
		return fmt.Errorf("register metrics of nats: %w", err)
	}
	return nil
}

// monitorNATS shows what may be asked of a server elsewhere. Scalers do so:
// only they may ask about consumers, and one is enough.
func (c *core) monitorNATS() error {
	if c.cfg.NATS.URL == "" {
		return nil // monitorServer knows all of it
	}
	nodes := func() []string { return append([]string{c.cfg.Node}, c.dir.nodes()...) }
	m := c.bus.Monitor("rouse/"+c.cfg.Node, nodes)
	if err := c.reg.Register(series.NewCollector(m.Snapshot)); err != nil {
		return fmt.Errorf("register metrics of nats: %w", err)
	}
	return nil
}

// roomFor is roomOf for a metric.
func roomFor(dir string) float64 {
	place, free := roomOf(dir)
	if place == "" {
		return math.NaN()
	}
	return float64(free)
}

// followAdvisories keeps the trouble that NATS tells of. It informs only, so
// that no failure of it may end the process.
func (c *core) followAdvisories(ctx context.Context) error {
	for told := false; ctx.Err() == nil; told = true {
		err := c.bus.FollowAdvisories(ctx)
		if err == nil {
			return nil
		}
		if errors.Is(err, events.ErrClosed) {
			<-ctx.Done()
			return nil
		}
		if !told {
			c.log.Warn("advisories of nats are not heard, so that its troubles are not among the problems", "error", err)
		}
		select {
		case <-time.After(advisoriesAgain):
		case <-ctx.Done():
		}
	}
	return nil
}
