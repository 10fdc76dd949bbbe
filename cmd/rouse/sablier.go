package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/api/sablier"
	"github.com/rouse-dev/rouse/workload"
)

// A sablierAPI is what Sablier's proxy plugins call, on a listener of its own:
// they send no token, so that it is kept apart from the admin API. nil is a
// gateway without it.
type sablierAPI struct {
	handler  *sablier.API
	listener net.Listener
	log      *slog.Logger
}

// newSablierAPI gives nil where there is no listener for it.
func newSablierAPI(c *core, l net.Listener, act *activator.Activator) *sablierAPI {
	if l == nil {
		return nil
	}
	healthy := func() bool { return c.learned.Load() && c.bus.Err() == nil }
	return &sablierAPI{handler: sablier.New(sablier.Config{Healthy: healthy, Logger: c.log, Registerer: c.reg}, act), listener: l, log: c.log}
}

func (s *sablierAPI) update(ws []workload.Workload) {
	if s != nil {
		s.handler.Update(ws)
	}
}

// sablierIdle is longer than the proxies in front keep a connection that they
// do not use, so that none of them sends a call on one that is being closed.
const sablierIdle = 5 * time.Minute

// serve answers until ctx ends, and then ends the calls that wait.
func (s *sablierAPI) serve(ctx context.Context) error {
	if s == nil {
		<-ctx.Done()
		return nil
	}
	s.log.Info("sablier's API is up", "listen", s.listener.Addr().String())
	return serveUntil(ctx, &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       sablierIdle,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}, s.listener)
}
