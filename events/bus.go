package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Bus is one connection to the events. It is safe for concurrent use.
type Bus struct {
	cfg     Config
	log     *slog.Logger
	nc      *nats.Conn
	js      jetstream.JetStream
	metrics *metrics
	guards  guards
	muffler muffler
	trouble trouble
	resync  broadcast     // told when something may have been missed
	closed  chan struct{} // closed when the connection has ended for good

	connections atomic.Int64 // so far
	recalled    atomic.Int64 // the connection on which every gateway's last word is known
	source      string       // ce-source of every message

	// provisions is set once Provision made or checked the streams with the
	// right to do so: from then on a stream that is missing is made again.
	provisions atomic.Bool
	ackWait    time.Duration // of the wake consumer
	lostGrace  time.Duration // of workloads in a store that was made anew
}

// defaultAckWait is after how long a wake, unacknowledged and without a sign
// of work on it, is given to another scaler.
const defaultAckWait = 5 * time.Second

// Connect opens the connection and returns once it stands, trying until ctx
// ends. Refused credentials and a malformed Config end it at once. Later
// losses are mended in the background, for ever.
func Connect(ctx context.Context, cfg Config) (*Bus, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	b, err := newBus(cfg)
	if err != nil {
		return nil, err
	}
	if b.nc, err = b.dial(ctx); err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	if b.js, err = jetstream.New(b.nc); err != nil {
		b.Close()
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	b.metrics.connected.Set(1)
	b.metrics.census.connect(b.nc)
	b.connections.Add(1)
	return b, nil
}

func newBus(cfg Config) (*Bus, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Role == "" {
		cfg.Role = "rouse"
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	return &Bus{
		cfg: cfg, log: cfg.Logger, metrics: m, ackWait: defaultAckWait, lostGrace: lostGrace,
		closed: make(chan struct{}),
		guards: guards{inbox: inboxPrefix(cfg.Role)},
		source: "/rouse/" + escapeHeader(cfg.Role) + "/" + escapeHeader(cfg.Name),
	}, nil
}

func (c Config) check() error {
	if c.Server == nil && c.URL == "" {
		return errors.New("neither a url nor an embedded server")
	}
	for one := range strings.SplitSeq(c.URL, ",") {
		if !strings.Contains(one, "://") {
			one = "nats://" + strings.TrimSpace(one)
		}
		if _, err := url.Parse(strings.TrimSpace(one)); err != nil {
			return errors.New("malformed url") // not the text: it may hold a password
		}
	}
	if c.Creds == "" {
		return nil
	}
	if _, err := os.Stat(c.Creds); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	return nil
}

func inboxPrefix(role string) string { return "_INBOX_" + encodeToken(role) }

func (b *Bus) dial(ctx context.Context) (*nats.Conn, error) {
	opts := b.options()
	for {
		nc, err := nats.Connect(b.cfg.URL, opts...)
		if err == nil {
			return nc, nil
		}
		if refused(err) {
			return nil, fmt.Errorf("%w: %w", ErrDenied, err)
		}
		b.log.Debug("nats not reached yet", "error", err)
		if !sleep(ctx, 2*retryPause+rand.N(2*retryPause)) {
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

func refused(err error) bool {
	for _, end := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// options are the measured ones: a dead peer is noticed in 4 to 6 s, a
// reconnect tried each 50 to 250 ms, and a write without a connection fails
// instead of being sent when nobody waits for it any more.
func (b *Bus) options() []nats.Option {
	opts := []nats.Option{
		nats.Name(strings.TrimSpace(b.cfg.Role + " " + b.cfg.Name)),
		nats.Timeout(time.Second),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(50 * time.Millisecond),
		nats.ReconnectJitter(200*time.Millisecond, 200*time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(), // credentials may be mended while we run
		nats.PingInterval(2 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.CustomInboxPrefix(inboxPrefix(b.cfg.Role)),
		nats.ErrorHandler(b.onError),
		nats.DisconnectErrHandler(b.onDisconnect),
		nats.ReconnectHandler(b.onReconnect),
		nats.ClosedHandler(b.onClosed),
	}
	if b.cfg.Server != nil {
		opts = append(opts, nats.InProcessServer(b.cfg.Server), nats.UserInfoHandler(b.cfg.Server.Credentials))
	}
	if b.cfg.Creds != "" {
		opts = append(opts, nats.UserCredentials(b.cfg.Creds))
	}
	return opts
}

func (b *Bus) onDisconnect(nc *nats.Conn, err error) {
	b.metrics.connected.Set(0)
	b.guards.lose()
	if !nc.IsClosed() {
		b.log.Warn("nats connection lost", "error", err)
	}
}

func (b *Bus) onReconnect(nc *nats.Conn) {
	b.metrics.connected.Set(1)
	b.log.Info("nats connection is back", "server", nc.ConnectedServerName())
	b.connections.Add(1)
	b.guards.forget()
	b.resync.tell()
	if b.cfg.Reconnected != nil {
		b.cfg.Reconnected()
	}
}

func (b *Bus) onClosed(nc *nats.Conn) {
	b.metrics.connected.Set(0)
	b.metrics.census.close(nc)
	close(b.closed)
}

// onError is told of what no call returns.
func (b *Bus) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		if !b.guards.tell(err) {
			b.warn("denied", "nats denied", "", err)
		}
	case errors.Is(err, nats.ErrSlowConsumer):
		b.warn("slow_consumer", "nats messages dropped here", sub.Subject, err)
		b.resync.tell()
	default:
		b.warn("other", "nats error", "", err)
	}
}

// Connected reports whether there is a connection now.
func (b *Bus) Connected() bool { return b.nc.IsConnected() }

// Err says what is wrong now, for a readiness check: ErrClosed,
// ErrDisconnected, or the last ErrDenied since the connection stands. nil
// when all is well.
func (b *Bus) Err() error {
	switch {
	case b.nc.IsClosed():
		return ErrClosed
	case !b.nc.IsConnected():
		return ErrDisconnected
	}
	return b.guards.err()
}

// Close sends what was handed over, for at most 250 ms, and ends the
// connection. Everything that blocks in this Bus returns ErrClosed. It may be
// called more than once.
func (b *Bus) Close() {
	if b.nc.IsConnected() {
		_ = b.nc.FlushTimeout(250 * time.Millisecond) // the last words are a courtesy
	}
	b.nc.Close()
	<-b.closed
}

// sleep waits d and reports whether ctx still stands.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
