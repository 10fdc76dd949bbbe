package mimic

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// rehearse answers one request on a loopback port of its own before anybody
// can ask, as programs do that warm up: a fresh process pays for the code it
// runs for the first time, and the first answer is what cold starts are
// measured by.
//
// Neither the counts nor Config.Delay know of it. An answer that does not
// come costs a second, and nothing else.
func (s *Server) rehearse() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return // no loopback: the first answer will be a slow one
	}
	server := s.server()
	server.Handler = http.HandlerFunc(s.report)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer server.Close()
	conn, err := net.DialTimeout("tcp", listener.Addr().String(), time.Second)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: rehearsal\r\nAccept: */*\r\n\r\n"); err != nil {
		return
	}
	if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
	}
}
