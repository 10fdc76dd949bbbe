package router

import (
	"context"
	"net/http"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/router/lean"
	"github.com/rouse-dev/rouse/workload"
)

// A kind is what a request may get while its workload sleeps.
type kind uint8

const (
	kindPlain      kind = iota // held; problems as JSON
	kindNavigation             // held or shown the page; problems as pages
	kindStatus                 // a waiting page asks whether the wait is over
)

// An exchange is one request on its way, and the ResponseWriter that the
// answer is written through. One goroutine uses it, and it is used again for
// later requests: whatever may outlive the request must not point into it.
type exchange struct {
	router *Router
	line   []byte  // scratch of the access log
	ids    madeIDs // of a plain request
	spans  spanNames
	call
}

// A call is the part of an exchange that belongs to one request.
type call struct {
	w      http.ResponseWriter
	req    *http.Request
	plain  *lean.Writer   // w, where it is one; else nil
	values                // of the headers that go out, of a plain request
	out    *outgoing      // of all others
	res    *http.Response // to out
	hints  hints          // of a plain request

	route *route // nil: nobody serves it
	kind  kind
	peer  peer
	trace Trace

	client string // its address, for the access log and spans

	identity
	duplex bool // over HTTP/1, with a body that the answer need not wait for
	quiet  bool // neither wakes nor keeps awake
	barred bool // comes from where it may not wake
	http2  bool // goes to the replica over HTTP/2

	granted http.Header // what the authentication service said; nil: it was not asked
	cookies []string    // that it wants to be kept
	limits  *limits     // of its workload; nil: none
	stall   *watch      // nil: nothing was written over HTTP/2
	body    *retryBody  // nil: it has none, or did not get that far
	lease   activator.Lease
	turn    turn           // of a request that was held, until it is answered
	wake    *workload.Wake // the cold start it waited for
	cold    bool
	replica string // ID of the last one tried
	calling bool   // it was sent, and that try has no span of its own

	outcome    outcome
	status     int
	bytes      int64
	writeError bool // the client took no more
	whole      bool // it came to its end without a panic
}

func (x *exchange) begin(w http.ResponseWriter, req *http.Request) {
	x.router.running.Add(1)
	x.call = call{w: w, req: req, trace: Trace{Arrived: time.Now()}}
	var room *madeIDs
	var names *spanNames
	if x.plain, _ = w.(*lean.Writer); x.plain != nil {
		room, names = &x.ids, &x.spans
	}
	tracer := x.router.tracer
	x.identity = identify(req.Header, tracer, room)
	if tracer != nil {
		x.nameSpans(names)
	}
	x.peer = x.farEnd()
	if x.router.access != nil || x.traced { // now, for forwarding changes the header
		x.client = x.router.policy.clientText(x.peer, req)
	}
}

// farEnd is the peer, which is the same for all requests of a connection.
func (x *exchange) farEnd() peer {
	if x.plain == nil {
		return x.router.policy.peerOf(x.req)
	}
	known, ok := x.plain.Known().(*peer)
	if !ok {
		p := x.router.policy.peerOf(x.req)
		known = &p
		x.plain.Know(known)
	}
	return *known
}

// serve finds the workload, holds the request while it sleeps, and forwards
// it, or answers in the workload's place.
func (x *exchange) serve() {
	x.setDuplex()
	if x.req.Method == http.MethodConnect {
		x.say(noTunnels)
		return
	}
	if x.find(); x.route == nil {
		x.say(noSuchHost(x.req))
		return
	}
	x.quiet = x.kind != kindStatus && x.router.policy.quiet(x.req, x.route.workload)
	x.barred = !x.router.policy.mayWake(x.req, x.peer, x.route.workload)
	if !x.admitted() || !x.affordable() {
		return
	}
	if x.kind == kindStatus {
		x.attend()
		return
	}
	if err := x.acquire(""); err != nil {
		x.refuse(err)
		return
	}
	x.forward()
}

// setDuplex lets an answer begin while the body is still on its way. Without
// it net/http reads a body first, so that a slow sender could not even be told
// that the queue is full. HTTP/2 is so by nature.
func (x *exchange) setDuplex() {
	if x.req.ProtoMajor == 1 && x.req.ContentLength != 0 {
		// A writer that cannot do it answers all the same, only later.
		x.duplex = http.NewResponseController(x.w).EnableFullDuplex() == nil
	}
}

// find sets the route, and what kind of request it is to that workload.
func (x *exchange) find() {
	routes := x.router.table.Load()
	if x.route = statusRoute(routes, x.req); x.route != nil {
		x.kind = kindStatus
		return
	}
	if navigation(x.req) {
		x.kind = kindNavigation
	}
	x.route = routes.match(x.req.Host, x.req.URL.Path)
}

// end closes the books of the request, also when it panics: the lease is
// given back, the metrics and the log get their entry.
func (x *exchange) end() {
	x.turn.end()
	x.lease.Release()
	x.trace.Ended = time.Now()
	x.limits.end()
	if x.body != nil {
		x.body.end()
	}
	if x.whole {
		x.linger()
	} else {
		x.brokenOff()
	}
	x.record()
	if x.traced {
		x.recordSpans()
	}
	if x.whole && x.plain != nil {
		_ = x.plain.Complete() // while what its header says is still x's; it goes no further if it fails
	}
	x.router.running.Add(-1)
	if x.whole {
		x.call = call{} // points at nothing of the request any more
		x.router.exchanges.Put(x)
	}
}

// brokenOff notes whose doing it is that the answer did not come to its end.
func (x *exchange) brokenOff() {
	x.outcome = outcomeError
	status := http.StatusInternalServerError
	switch {
	case x.limits.overrun() != nil:
		x.outcome, status = outcomeTimeout, http.StatusGatewayTimeout
	case x.clientLeft():
		x.outcome, status = outcomeCanceled, statusClientGone
	}
	if x.status == 0 {
		x.status = status
	} else if !x.req.ProtoAtLeast(1, 1) {
		x.reset()
	}
}

// clientLeft reports that the client went away: its connection or stream
// ended, it took no more of the answer, or sent no more of its body.
func (x *exchange) clientLeft() bool {
	ctx := x.req.Context()
	return x.writeError || (x.body != nil && x.body.broken.Load()) || (ctx.Err() != nil && !x.cutOff()) ||
		x.plain != nil && x.plain.Left()
}

// keep makes what is known of the request last for longer than its bytes are
// there. The warm path goes without.
func (x *exchange) keep() {
	if x.plain != nil {
		x.plain.Keep()
		x.identity = x.identity.clone()
	}
}

// cutOff reports that the server ends what is left at the end of its grace.
func (x *exchange) cutOff() bool { return context.Cause(x.req.Context()) == errCutOff }

func (x *exchange) workloadName() string {
	if x.route == nil {
		return ""
	}
	return x.route.workload.Name
}

// Header, WriteHeader and Write make an exchange the ResponseWriter of its
// answer; Unwrap leads http.ResponseController to the connection behind.
func (x *exchange) Header() http.Header { return x.w.Header() }

// WriteHeader notes the final status; informational ones pass.
func (x *exchange) WriteHeader(status int) {
	if status >= http.StatusOK && x.status == 0 {
		x.status = status
		if x.last() {
			x.w.Header().Set("Connection", "close")
		}
	}
	x.w.WriteHeader(status)
}

// last reports an answer that ends its connection, of HTTP/1: because the
// server stops, or because it begins before the body has been read: net/http
// would read the rest of the body away after the handler, start to watch the
// connection when it comes to its end, and then panic as it reads the next
// request. So does the answer to a body in chunks: net/http does not tell
// whether there was a Content-Length as well, after which RFC 9112, section
// 6.1, has the connection closed, since a server in front may have taken what
// follows for a part of the body.
func (x *exchange) last() bool {
	if x.req.ProtoMajor != 1 {
		return false
	}
	return x.router.leaving.Load() ||
		x.duplex && (x.body == nil || !x.body.ended.Load() || x.req.TransferEncoding != nil)
}

// Write counts what the client takes.
func (x *exchange) Write(p []byte) (int, error) {
	var n int
	var err error
	x.unblocked(func() { n, err = x.w.Write(p) })
	x.bytes += int64(n)
	if err != nil {
		x.writeError = true
	}
	return n, err
}

// Unwrap gives the writer behind.
func (x *exchange) Unwrap() http.ResponseWriter { return x.w }
