package eventstest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// A Proxy stands between a client and a server and does what networks do. It
// is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup // one for the listener, two for each connection

	mu      sync.Mutex
	links   map[*link]struct{} // guarded by mu
	refused bool               // new connections are cut at once; guarded by mu
	lost    bool               // new connections lead nowhere; guarded by mu
	ended   bool               // guarded by mu
}

// A link is one connection through the proxy.
type link struct {
	client, server net.Conn

	mu    sync.Mutex
	muted bool // what the server says is dropped; guarded by mu
	lost  bool // whatever either says is dropped; guarded by mu
}

// NewProxy forwards to target, a host:port, until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("proxy: %v", err)
	}
	p := &Proxy{listener: l, target: target, links: map[*link]struct{}{}}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// URL is where clients connect.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Cut ends every connection. Clients may connect again.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Refuse cuts every connection, and new ones as well until Admit.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	p.refused = true
	p.mu.Unlock()
	p.Cut()
}

// Lose drops whatever either side says, on the connections of now and on new
// ones until Admit. Nobody is told: connections stand and new ones succeed.
func (p *Proxy) Lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = true
	for l := range p.links {
		l.lose()
	}
}

// Admit lets clients connect again. A connection that something was lost of
// is cut: nobody could go on with it.
func (p *Proxy) Admit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused, p.lost = false, false
	for l := range p.links {
		if _, lost := l.silence(); lost {
			l.close()
		}
	}
}

// Mute drops whatever the server says on the connections of now: requests
// arrive, answers do not.
func (p *Proxy) Mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.mu.Lock()
		l.muted = true
		l.mu.Unlock()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.join(client)
	}
}

// join connects a client through, unless that is refused now.
func (p *Proxy) join(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, server: server}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused || p.ended {
		l.close()
		return
	}
	if p.lost {
		l.lose()
	}
	p.links[l] = struct{}{}
	p.running.Go(func() { p.pump(l, l.requests) })
	p.running.Go(func() { p.pump(l, l.answers) })
}

// pump runs one direction; when it ends so does the other.
func (p *Proxy) pump(l *link, copy func() error) {
	_ = copy() // however it ends, it ends
	l.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (l *link) requests() error {
	return forward(l.server, l.client, func() bool { _, lost := l.silence(); return lost })
}

func (l *link) answers() error {
	return forward(l.client, l.server, func() bool { muted, lost := l.silence(); return muted || lost })
}

// forward copies what it reads unless it is to be dropped.
func forward(to io.Writer, from io.Reader, dropped func() bool) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return err
		}
		if dropped() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return err
		}
	}
}

func (l *link) silence() (muted, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.muted, l.lost
}

func (l *link) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = true
}

func (l *link) close() { _ = errors.Join(l.client.Close(), l.server.Close()) }

func (p *Proxy) close() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.running.Wait()
}
