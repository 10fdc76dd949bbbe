// Package natsd runs a NATS server with JetStream inside the process: the
// events of a single host need no other installation.
//
// Clients in the same process connect through memory (InProcessConn); a TCP
// listener exists only when Options.Listen asks for one. It knows nothing of
// Rouse's subjects and streams: package events brings those.
//
// Guarantees: Start returns a server that takes connections, or an error that
// says what to change. A store that is damaged is never used in part: the
// server by itself would start without what it cannot read. One store directory serves one server at a time: a
// second one is refused with ErrStoreInUse, also from another process. A
// server that ended cannot be started again, and clients in the process can
// not move to another: treat its end as the end of the process. Shutdown
// returns only once the store is closed, because a store that is cut off in
// the middle is damaged.
package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ErrStopped is wrapped by what Run returns when the server ended without
// having been asked to.
var ErrStopped = errors.New("nats server stopped")

// startTimeout bounds one start; 100,000 messages are recovered in 0.4 s.
const startTimeout = 30 * time.Second

// storeMost bounds the store: not at all. By default the server takes what
// was free when it started for a bound, and keeps to it when there is more;
// the bounds of each stream and the disk are enough.
const storeMost = 1 << 40

// Options describe the server. Only StoreDir is needed.
type Options struct {
	// Listen is the host:port of a TCP listener; empty means none. Port 0
	// takes a free one.
	Listen string
	// StoreDir keeps the streams. It is created when missing.
	StoreDir string
	// Name is shown in logs and to clients; empty means "rouse".
	Name string
	// Token admits a client to everything when it is not empty.
	Token string
	// Users are admitted by name and password. With neither Token nor Users
	// every client is admitted to everything.
	Users []User
	// SyncAlways has every write on the disk before it is acknowledged: none is
	// lost when the machine loses power. Without it the last two minutes may be.
	SyncAlways bool
	// MoveAside gives a store that is damaged another name, and begins a new
	// one. A sound store is kept.
	MoveAside bool
	// Logger takes the server's log; nil discards it.
	Logger *slog.Logger
}

// Server is a running server. It is safe for concurrent use.
type Server struct {
	inner    *server.Server
	access   *access
	lock     *os.File
	log      *slog.Logger
	dir      string
	failed   <-chan struct{} // has one when a stream could not be written
	stopping chan struct{}   // closed when Shutdown was asked for
	noted    chan struct{}   // closed when the manifest is no longer kept
	ended    chan struct{}   // closed when the server has ended and the store is free
	once     sync.Once
}

// Start brings the server up and returns when it takes connections, or with
// an error when it cannot: the store is in use or not writable, the address
// is taken, or ctx ended.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	lock, err := lockStore(opts.StoreDir)
	if err != nil {
		return nil, err
	}
	s, err := start(ctx, opts, lock)
	if errors.Is(err, ErrStoreDamaged) && opts.MoveAside {
		s, err = startAnew(ctx, opts, lock, err)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	go s.watch()
	return s, nil
}

func startAnew(ctx context.Context, opts Options, lock *os.File, reason error) (*Server, error) {
	to, err := moveAside(opts.StoreDir)
	if err != nil {
		return nil, errors.Join(reason, err)
	}
	opts.Logger.Warn("damaged nats store moved aside, a new one is begun", "moved_to", to, "reason", reason)
	return start(ctx, opts, lock)
}

func start(ctx context.Context, opts Options, lock *os.File) (*Server, error) {
	access := newAccess(opts)
	native, err := nativeOptions(opts, access)
	if err != nil {
		return nil, err
	}
	forget(opts)
	err = inspect(opts.StoreDir, func(place, what string) {
		opts.Logger.Warn("nats store was cut short", "file", place, "what", what)
	})
	if err != nil {
		return nil, err
	}
	inner, err := server.NewServer(native)
	if err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	logger := newLogger(opts.Logger)
	inner.SetLoggerV2(logger, false, false, false)
	go inner.Start()
	err = awaitReady(ctx, inner, logger.fatal)
	if err == nil {
		err = complete(inner, opts)
	}
	if err != nil {
		inner.Shutdown()
		inner.WaitForShutdown()
		return nil, err
	}
	return &Server{
		inner: inner, access: access, lock: lock, log: opts.Logger, dir: native.StoreDir, failed: logger.failed,
		stopping: make(chan struct{}), noted: make(chan struct{}), ended: make(chan struct{}),
	}, nil
}

func nativeOptions(opts Options, access *access) (*server.Options, error) {
	store, err := filepath.Abs(opts.StoreDir)
	if err != nil {
		return nil, fmt.Errorf("nats store directory: %w", err)
	}
	native := &server.Options{
		ServerName:        opts.Name,
		JetStream:         true,
		JetStreamMaxStore: storeMost,
		SyncAlways:        opts.SyncAlways,
		StoreDir:          store,
		DontListen:        opts.Listen == "",
		NoSigs:            true,
		PingInterval:      5 * time.Second, // a client behind a dead link is gone in 15 s, not 4 minutes
		MaxPingsOut:       2,
	}
	if native.ServerName == "" {
		native.ServerName = "rouse"
	}
	if access.required {
		native.CustomClientAuthentication = access
	}
	if native.DontListen {
		return native, nil
	}
	addr, err := net.ResolveTCPAddr("tcp", opts.Listen)
	if err != nil {
		return nil, fmt.Errorf("nats listen address %q: %w", opts.Listen, err)
	}
	native.Host, native.Port = hostOf(addr), addr.Port
	if native.Port == 0 {
		native.Port = server.RANDOM_PORT
	}
	if !addr.IP.IsLoopback() && !access.required {
		opts.Logger.Warn("nats listens beyond this machine without a token or users", "listen", opts.Listen)
	}
	return native, nil
}

func hostOf(addr *net.TCPAddr) string {
	if addr.IP == nil {
		return "0.0.0.0"
	}
	return addr.IP.String()
}

// awaitReady waits for the listener and for JetStream's recovery; fatal tells
// of what the server itself calls the end.
func awaitReady(ctx context.Context, inner *server.Server, fatal <-chan string) error {
	limit := time.After(startTimeout)
	for {
		select {
		case reason := <-fatal:
			return fmt.Errorf("nats server: %s", reason)
		case <-ctx.Done():
			return fmt.Errorf("nats server: %w", ctx.Err())
		case <-limit:
			return fmt.Errorf("nats server: not ready after %s", startTimeout)
		default:
		}
		if inner.ReadyForConnections(10*time.Millisecond) && inner.JetStreamEnabled() {
			return nil
		}
	}
}

// complete reports, as an error, that the server does not have all that the
// store had.
func complete(inner *server.Server, opts Options) error {
	now, err := present(inner)
	if err == nil {
		err = errors.Join(unloaded(opts.StoreDir, now), readManifest(opts.StoreDir, opts.Logger).compare(opts.StoreDir, now, opts.Logger))
	}
	if err != nil {
		return err
	}
	if err := now.write(opts.StoreDir); err != nil {
		opts.Logger.Warn("list of nats streams not written", "error", err)
	}
	return nil
}

// watch keeps the manifest, and frees the store once the server has ended,
// whoever ended it.
func (s *Server) watch() {
	defer close(s.ended)
	down := make(chan struct{})
	go func() {
		s.inner.WaitForShutdown()
		close(down)
	}()
	s.note(down)
	<-down
	if err := s.lock.Close(); err != nil {
		s.log.Warn("nats store lock not released", "error", err)
	}
}

// note keeps the manifest up to date until the server ends, and the store
// writable.
func (s *Server) note(down <-chan struct{}) {
	defer close(s.noted)
	tick := time.NewTicker(manifestEvery)
	defer tick.Stop()
	var known manifest
	for told := false; ; {
		select {
		case <-down:
			return
		case <-s.stopping:
			return
		case <-s.failed:
			s.repair(down)
			continue
		case <-tick.C:
		}
		now, err := present(s.inner)
		if err == nil && !maps.Equal(now, known) {
			known, err = now, now.write(s.dir)
		}
		if err != nil && !told && s.inner.Running() {
			s.log.Warn("list of nats streams not written", "error", err)
		}
		told = err != nil
	}
}

// Run blocks until ctx ends, then shuts the server down and returns nil. It
// returns earlier, with ErrStopped, when the server ended on its own.
func (s *Server) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		s.Shutdown()
		return nil
	case <-s.ended:
	}
	select {
	case <-s.stopping:
		return nil
	default:
		return fmt.Errorf("%w on its own", ErrStopped)
	}
}

// Shutdown ends the server and returns when the store is closed and free for
// another. It may be called more than once.
func (s *Server) Shutdown() {
	s.once.Do(func() {
		close(s.stopping)
		<-s.noted
		if now, err := present(s.inner); err == nil {
			_ = now.write(s.dir) // an older one will do
		}
		s.inner.Shutdown()
	})
	<-s.ended
}

// InProcessConn opens a connection through memory.
func (s *Server) InProcessConn() (net.Conn, error) { return s.inner.InProcessConn() }

// Credentials admit clients of the same process to everything, made anew for
// each server. Both are empty when the server admits everybody.
func (s *Server) Credentials() (user, password string) {
	return s.access.localUser, s.access.localPassword
}

// Addr is the address of the listener, nil when there is none.
func (s *Server) Addr() net.Addr { return s.inner.Addr() }

// URL is what a client on the same machine connects to, without credentials;
// empty when there is no listener.
func (s *Server) URL() string {
	addr, ok := s.inner.Addr().(*net.TCPAddr)
	if !ok || addr == nil {
		return ""
	}
	if addr.IP.IsUnspecified() {
		return fmt.Sprintf("nats://127.0.0.1:%d", addr.Port)
	}
	return "nats://" + addr.String()
}
