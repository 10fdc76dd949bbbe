package router

import (
	"net"
	"net/http"
	"time"
)

// lingerTimeout is how long a client may still send of a body that nobody
// reads any more. Its connection is closed only then: closed at once, it could
// lose the answer, which the client may look for only when it has sent all.
const lingerTimeout = 2 * time.Second

// linger bounds what net/http does after an answer that came before the end
// of its request's body: it reads on, for as long as the client likes.
func (x *exchange) linger() {
	if x.duplex && x.status != 0 && (x.body == nil || !x.body.ended.Load()) {
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(lingerTimeout)) // a tunnel has none
	}
}

// reset has the client's connection end in an error rather than in good
// order: the end of an answer to HTTP/1.0 may be that of its connection alone.
func (x *exchange) reset() {
	conn, _ := x.req.Context().Value(connKey{}).(net.Conn)
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0) // it is closed already
	}
}
