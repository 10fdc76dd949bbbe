package router

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A door is a listener that lets in so many connections, and watches that
// none of them is blocked by a client that does not read.
type door struct {
	net.Listener
	most, perClient int            // 0: no bound
	exempt          []netip.Prefix // proxies, behind which there are many clients
	writeTimeout    time.Duration
	logger          *slog.Logger

	mu      sync.Mutex
	inside  map[*guest]struct{} // guarded by mu
	clients map[netip.Addr]int  // client -> connections; guarded by mu
	refused int                 // since it was last told of; guarded by mu
}

// A guest is one connection that was let in.
type guest struct {
	*net.TCPConn
	door    *door
	client  netip.Addr   // whom it counts for
	exempt  bool         // a proxy's
	writing atomic.Int64 // since when, in Unix nanoseconds; 0: not
	carries atomic.Bool  // what it writes comes from another socket, and may not be there
}

func newDoor(l net.Listener, cfg ServerConfig, r *Router) *door {
	return &door{
		Listener: l, most: cfg.Connections, perClient: cfg.ConnectionsPerClient, exempt: r.policy.trusted,
		writeTimeout: r.writeTimeout, logger: r.logger, inside: map[*guest]struct{}{}, clients: map[netip.Addr]int{},
	}
}

// Accept lets the next one in. Whoever is too many is hung up on: to tell him
// why would cost what the bound is to save.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return conn, nil // of a kind that has no clients far away
		}
		from := clientOf(tcp)
		g := &guest{TCPConn: tcp, door: d, client: household(from), exempt: within(d.exempt, from)}
		if d.admit(g) {
			return g, nil
		}
		_ = tcp.SetLinger(0) // no socket of it stays behind
		_ = tcp.Close()
	}
}

func clientOf(conn *net.TCPConn) netip.Addr {
	addr, _ := conn.RemoteAddr().(*net.TCPAddr)
	if addr == nil {
		return netip.Addr{} // it has left already
	}
	return addr.AddrPort().Addr().Unmap().WithZone("")
}

func (d *door) admit(g *guest) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	full := d.most > 0 && len(d.inside) >= d.most
	if full || d.perClient > 0 && d.clients[g.client] >= d.perClient && !g.exempt {
		d.refused++
		return false
	}
	d.inside[g] = struct{}{}
	d.clients[g.client]++
	return true
}

func (d *door) leave(g *guest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, in := d.inside[g]; !in {
		return
	}
	delete(d.inside, g)
	if d.clients[g.client]--; d.clients[g.client] == 0 {
		delete(d.clients, g.client)
	}
}

// watch looks after those inside until ctx ends.
func (d *door) watch(ctx context.Context) {
	tick := time.NewTicker(min(d.writeTimeout/4+time.Millisecond, 10*time.Second))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			d.check(now)
		case <-ctx.Done():
			return
		}
	}
}

// check ends the writes that have been blocked for too long, and tells of
// those that were not let in.
func (d *door) check(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused > 0 {
		d.logger.Warn("connections were refused, there are too many", "refused", d.refused, "open", len(d.inside))
		d.refused = 0
	}
	before := now.Add(-d.writeTimeout).UnixNano()
	for g := range d.inside {
		switch since := g.writing.Load(); {
		case since == 0 || since >= before:
		case g.carries.Load() && unsent(g.TCPConn) == 0:
			g.writing.CompareAndSwap(since, now.UnixNano()) // the client has read all there was
		default:
			_ = g.SetWriteDeadline(time.Unix(1, 0)) // it is closed already
		}
	}
}

// Write tells the door how long it takes.
func (g *guest) Write(p []byte) (int, error) {
	g.writing.Store(time.Now().UnixNano())
	defer g.writing.Store(0)
	return g.TCPConn.Write(p)
}

// ReadFrom does so too, though it may be waiting for what is to be written.
func (g *guest) ReadFrom(r io.Reader) (int64, error) {
	g.carries.Store(true)
	g.writing.Store(time.Now().UnixNano())
	defer g.carries.Store(false)
	defer g.writing.Store(0)
	return g.TCPConn.ReadFrom(r)
}

// Close may be called again.
func (g *guest) Close() error {
	g.door.leave(g)
	return g.TCPConn.Close()
}
