package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/rouse-dev/rouse/events/natsd"
)

// listeners are a process's own, opened before anything else is started, or
// were handed over to it.
type listeners struct {
	admin    net.Listener
	traffic  net.Listener // nil for roles without
	redirect net.Listener // to HTTPS; nil: there is none
	sablier  net.Listener // for Sablier's plugins; nil: there is none
	// shared says that traffic was handed over: another process may serve it
	// too.
	shared bool
}

func openListeners(cfg Config, traffic bool) (*listeners, error) {
	handed, err := inherit()
	if err != nil {
		return nil, err
	}
	l := &listeners{}
	if err := l.open(&handed, cfg, traffic); err != nil {
		handed.close()
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *listeners) open(handed *inherited, cfg Config, traffic bool) (err error) {
	if l.admin, _, err = handed.listen("admin.listen", cfg.Admin.Listen); err != nil {
		return err
	}
	if traffic {
		if l.traffic, l.shared, err = handed.listen("listen", cfg.Listen); err != nil {
			return err
		}
		if cfg.TLS.Redirect != "" {
			if l.redirect, _, err = handed.listen("tls.redirect", cfg.TLS.Redirect); err != nil {
				return err
			}
		}
	}
	if traffic && cfg.Sablier.Listen != "" {
		if l.sablier, _, err = handed.listen("sablier.listen", cfg.Sablier.Listen); err != nil {
			return err
		}
	}
	return handed.none()
}

// close closes what nobody has closed by serving it.
func (l *listeners) close() {
	for _, one := range []net.Listener{l.admin, l.traffic, l.redirect, l.sablier} {
		if one != nil {
			_ = one.Close()
		}
	}
}

// A natsServer is the embedded server, or nothing where nats.url names one.
type natsServer struct{ *natsd.Server }

func startNATS(ctx context.Context, c *core, moveStoreAside bool) (natsServer, error) {
	if c.cfg.NATS.URL != "" {
		return natsServer{}, nil
	}
	s, err := natsd.Start(ctx, natsd.Options{
		Listen: c.cfg.NATS.Listen, StoreDir: c.cfg.NATS.StoreDir, Name: c.name, Logger: c.log,
		SyncAlways: c.cfg.NATS.SyncAlways, MoveAside: moveStoreAside,
	})
	switch {
	case errors.Is(err, natsd.ErrStorePlace):
		err = fail(exitConfig, fmt.Errorf("nats.store_dir: %s: %w (give it to this user with all that is in it, or name another)", c.cfg.NATS.StoreDir, err))
	case errors.Is(err, natsd.ErrStoreDamaged):
		err = fmt.Errorf("%w\nNothing was changed. Bring the files back from a copy, or start with --move-store-aside: what is there gets another name, and a new store is begun. "+
			"What runs is found again; the history is not", err)
	}
	return natsServer{s}, err
}

// Run blocks until ctx ends and shuts the server down.
func (s natsServer) Run(ctx context.Context) error {
	if s.Server == nil {
		<-ctx.Done()
		return nil
	}
	return s.Server.Run(ctx)
}

// Shutdown ends it and waits; once is enough, more are harmless.
func (s natsServer) Shutdown() {
	if s.Server != nil {
		s.Server.Shutdown()
	}
}

// A station is what every role has before it serves: its listeners, the NATS
// server where that is in the process, and the connection to it.
type station struct {
	core      *core
	listeners *listeners
	server    natsServer
}

// open brings a station up, in an order that tells what is wrong before
// anything that outlives the attempt was begun. name is the role's to NATS.
func open(ctx context.Context, r role, name string, traffic bool) (*station, error) {
	l, err := openListeners(r.cfg, traffic)
	if err != nil {
		return nil, err
	}
	s := &station{core: newCore(r.cfg, os.Stderr), listeners: l}
	if err = s.core.openTracing(ctx); err != nil {
		s.close()
		return nil, err
	}
	if s.server, err = startNATS(ctx, s.core, r.moveStoreAside); err == nil && s.server.Server != nil {
		err = s.core.monitorServer(s.server.Server)
	}
	if err == nil {
		err = s.core.connect(ctx, name, s.server.Server)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close ends what was opened; what has ended already is left alone.
func (s *station) close() {
	if s.core.bus != nil {
		s.core.bus.Close()
	}
	s.server.Shutdown()
	s.listeners.close()
}
