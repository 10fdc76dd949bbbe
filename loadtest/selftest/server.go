//go:build linux

package selftest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
)

// A behaviour is given each request of a connection: its path and its id. It
// answers, and tells whether the connection goes on.
type behaviour func(conn net.Conn, path, id string) bool

// A server is what the generator is tried on.
type server struct {
	listener net.Listener
	behave   behaviour
	work     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu
}

func serve(behave behaviour) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{listener: listener, behave: behave, conns: map[net.Conn]bool{}}
	s.work.Go(s.accept)
	return s, nil
}

func (s *server) address() string { return s.listener.Addr().String() }

// close ends all connections.
func (s *server) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.work.Wait()
}

func (s *server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		open := s.conns != nil
		if open {
			s.conns[conn] = true
		}
		s.mu.Unlock()
		if !open {
			_ = conn.Close()
			return
		}
		s.work.Go(func() { s.converse(conn) })
	}
}

func (s *server) converse(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
	}()
	for in := bufio.NewReader(conn); ; {
		path, id, err := readRequest(in)
		if err != nil || !s.behave(conn, path, id) {
			return
		}
	}
}

// readRequest reads a request without a body.
func readRequest(in *bufio.Reader) (path, id string, err error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "":
			return path, id, nil
		case path == "":
			_, path, _ = strings.Cut(strings.TrimSuffix(line, " HTTP/1.1"), " ")
		default:
			if name, value, _ := strings.Cut(line, ": "); name == "X-Request-ID" {
				id = value
			}
		}
	}
}

// answer writes a whole answer with the id in its body.
func answer(conn net.Conn, status, body string) bool {
	_, err := fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	return err == nil
}
