package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// newRoleCommands are the commands that serve.
func newRoleCommands(g *globals) []*cobra.Command {
	return []*cobra.Command{
		newRole(g, "up", "Run everything in one process, with an embedded NATS server", runUp),
		newRole(g, "gateway", "Run the router and the activator", runGateway),
		newRole(g, "scaler", "Run the scaler, the only one that needs the Docker socket", runScaler),
		newRole(g, "nats", "Run the embedded NATS server alone", runNATS),
	}
}

// A role is a process that serves until ctx ends.
type role struct {
	cfg Config
	// moveStoreAside: a damaged store of the embedded server makes room.
	moveStoreAside bool
	load           func() (Config, error) // reads the configuration again
}

func newRole(g *globals, name, short string, run func(context.Context, role) error) *cobra.Command {
	var listen, compat string
	var moveStoreAside bool
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			load := func() (Config, error) {
				flags := map[string]string{}
				if listen != "" {
					flags["listen"] = listen
				}
				if compat != "" {
					flags["compat"] = compat
				}
				return g.load(flags)
			}
			cfg, err := load()
			if err != nil {
				return err
			}
			if moveStoreAside && name == "up" && cfg.NATS.URL != "" {
				return fail(exitUsage, errors.New("--move-store-aside: the server at nats.url has its own store"))
			}
			return run(cmd.Context(), role{cfg: cfg, load: load, moveStoreAside: moveStoreAside})
		},
	}
	if name == "up" || name == "gateway" {
		cmd.Flags().StringVar(&listen, "listen", "", "`address` for traffic (listen)")
	}
	if name == "up" || name == "scaler" {
		cmd.Flags().StringVar(&compat, "compat", "", "read the labels of other `products` too: sablier (compat)")
	}
	if name == "up" || name == "nats" {
		cmd.Flags().BoolVar(&moveStoreAside, "move-store-aside", false, "give a damaged store another name and begin a new one; a sound one is kept")
	}
	return cmd
}

// needURL refuses a role that cannot do without a NATS server.
func needURL(cfg Config, name string) error {
	if cfg.NATS.URL != "" {
		return nil
	}
	return fail(exitConfig, fmt.Errorf("nats.url: rouse %s needs a NATS server: set it, or give --nats-url (rouse nats runs one; rouse up needs none)", name))
}

// runUp is every role in one process. What serves ends first: the traffic
// with its requests, then the scaler, the connection, and the server.
func runUp(ctx context.Context, r role) (err error) {
	s, err := open(ctx, r, "rouse", true)
	if err != nil {
		return err
	}
	defer s.close()
	c, l := s.core, s.listeners
	n, err := newNode(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	g, err := newGateway(c, l)
	if err != nil {
		return err
	}
	admin, err := serveAdmin(c, l.admin, newBackend(c, g, n))
	if err != nil {
		return err
	}
	c.log.Info("rouse is up", "version", programBuild().Version, "listen", l.traffic.Addr().String(), "admin", l.admin.Addr().String())
	return c.traced(ctx, func(ctx context.Context) error {
		return beneath(ctx, s.server.Run, func(ctx context.Context) error {
			defer c.bus.Close() // before the server ends
			return beneath(ctx, all(c.follow, n.run, n.watchConfig(r.load), admin), after(n.known, g.run))
		})
	})
}

func runGateway(ctx context.Context, r role) error {
	if err := needURL(r.cfg, "gateway"); err != nil {
		return err
	}
	s, err := open(ctx, r, "gateway", true)
	if err != nil {
		return err
	}
	defer s.close()
	c, l := s.core, s.listeners
	g, err := newGateway(c, l)
	if err != nil {
		return err
	}
	admin, err := serveAdmin(c, l.admin, newBackend(c, g, nil))
	if err != nil {
		return err
	}
	c.log.Info("gateway is up", "version", programBuild().Version, "listen", l.traffic.Addr().String(), "admin", l.admin.Addr().String())
	return c.traced(ctx, func(ctx context.Context) error {
		return beneath(ctx, all(c.follow, noReload(c), admin), after(c.known, g.run))
	})
}

func runScaler(ctx context.Context, r role) (err error) {
	if err := needURL(r.cfg, "scaler"); err != nil {
		return err
	}
	s, err := open(ctx, r, "scaler", false)
	if err != nil {
		return err
	}
	defer s.close()
	c, l := s.core, s.listeners
	n, err := newNode(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	admin, err := serveAdmin(c, l.admin, newBackend(c, nil, n))
	if err != nil {
		return err
	}
	c.log.Info("scaler is up", "version", programBuild().Version, "node", r.cfg.Node, "admin", l.admin.Addr().String())
	return c.traced(ctx, all(c.follow, n.run, n.watchConfig(r.load), admin))
}

// runNATS is the server alone, with a listener for the others. It has an
// admin API too: all that it answers with comes from the events.
func runNATS(ctx context.Context, r role) error {
	if r.cfg.NATS.Listen == "" {
		r.cfg.NATS.Listen = "127.0.0.1:4222"
	}
	r.cfg.NATS.URL, r.cfg.Tracing = "", TracingConfig{} // it has no spans
	s, err := open(ctx, r, "rouse", false)
	if err != nil {
		return err
	}
	defer s.close()
	c, l := s.core, s.listeners
	admin, err := serveAdmin(c, l.admin, newBackend(c, nil, nil))
	if err != nil {
		return err
	}
	c.log.Info("nats is up", "version", programBuild().Version, "listen", r.cfg.NATS.Listen, "admin", l.admin.Addr().String())
	return beneath(ctx, s.server.Run, func(ctx context.Context) error {
		defer c.bus.Close() // before the server ends
		return together(ctx, c.follow, noReload(c), admin)
	})
}
