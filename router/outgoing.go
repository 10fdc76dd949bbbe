package router

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"time"
)

// An outgoing is the request that goes to a replica, and all that belongs to
// it, in one piece of memory. It is made anew for each request, and not used
// again: goroutines of the transport may look at it, and hand on a late
// informational answer, when the exchange has ended and serves another one.
//
// It is its request's context too: the client's, with the trace.
type outgoing struct {
	context.Context
	req    http.Request
	url    url.URL
	values values // of the headers that Rouse sets
	body   retryBody
	trace  httptrace.ClientTrace
	hints  hints
	conn   net.Conn // of an upgrade, the last one tried
}

// outgoing makes the request that goes out. Host, path, query and trailers
// are the client's, as they came; the trailers pass because both requests
// share one map, which net/http fills in as the body ends. The header is the
// client's own too, changed in place: nobody needs it as it came any more, and
// no try to send it has begun.
func (x *exchange) outgoing() (*outgoing, error) {
	in := x.req
	o := &outgoing{url: *in.URL}
	o.Context, x.limits = limitsOf(in.Context(), x.route.workload)
	if err := x.setHeaders(&o.values); err != nil {
		return nil, err
	}
	if in.ProtoAtLeast(1, 1) {
		o.hints.to = x.w // HTTP/1.0 knows no informational answers
	}
	o.trace.Got1xxResponse = o.hints.pass
	if in.Header["Upgrade"] != nil {
		o.trace.GotConn = func(got httptrace.GotConnInfo) { o.conn = got.Conn }
	}
	if l := x.limits; l != nil {
		o.trace.WroteRequest = func(httptrace.WroteRequestInfo) { l.sent() }
	}
	o.req = *in.WithContext(o)
	o.req.URL = o.target()
	o.req.Close = false // whether the client keeps its connection is not the workload's concern
	o.req.Body = nil    // what has none can be sent again by the transport
	if in.ContentLength != 0 {
		o.body.Reader = in.Body
		if o.body.expects = expectationOf(in); o.body.expects != nil {
			o.trace.Got100Continue = o.body.expects.proceed
		}
		o.body.limits = x.limits
		if in.ContentLength > 0 {
			flow := http.NewResponseController(x.w)
			o.body.patience = newPatience(x.router.bodyTimeout, func() error { return flow.SetReadDeadline(time.Unix(1, 0)) })
		}
		x.body = &o.body
		o.req.Body, o.req.GetBody = x.body, x.body.again
	}
	return o, nil
}

// target makes the URL one that the transport takes. A space, which HTTP/2
// lets through, would end the target in a request line of HTTP/1.
func (o *outgoing) target() *url.URL {
	o.url.Scheme = "http"
	o.url.RawQuery = strings.ReplaceAll(o.url.RawQuery, " ", "%20")
	o.url.Opaque = strings.ReplaceAll(o.url.Opaque, " ", "%20")
	return &o.url
}

// traced knows the one key that httptrace looks for its trace by, and keeps to
// itself.
var traced = httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{})

// Value adds the trace to the values of the client's context, as
// httptrace.WithClientTrace does by a context of its own.
func (o *outgoing) Value(key any) any {
	if traced.Value(key) != nil {
		return &o.trace
	}
	return o.Context.Value(key)
}

// setHeaders changes the client's header to the one that goes out. What is
// set is set after all that is dropped, so that no Connection header of the
// client's can take it away.
func (x *exchange) setHeaders(v *values) error {
	h := x.req.Header
	upgrade, err := upgradeOf(x.req)
	if err != nil {
		return err
	}
	trailers := takesTrailers(h)
	v.forwarding(x.req, x.peer)
	v[valueRequestID], v[valueTraceparent] = x.requestID, x.passedOn

	dropHopByHop(h)
	dropForeign(h, x.peer.trusted)

	setUpgrade(h, upgrade)
	if trailers {
		h["Te"] = teTrailers
	}
	setForwarded(h, v)
	h["X-Request-Id"] = v.header(valueRequestID)
	h["Traceparent"] = v.header(valueTraceparent)
	if !x.traceJoined {
		delete(h, "Tracestate") // it belonged to a trace that was not joined
	}
	if x.granted != nil {
		x.setGranted(h)
	}
	if _, sent := h["User-Agent"]; !sent {
		h["User-Agent"] = noUserAgent
	}
	return nil
}

// Values that are the same for every request; nobody changes them.
var (
	noUserAgent = []string{""} // keeps net/http from putting its own name there
	teTrailers  = []string{"trailers"}
)

// The values of the headers that Rouse sets in a request, in one array: each
// header is a slice of it.
type values [valueCount]string

const (
	valueFor = iota
	valueHost
	valueProto
	valueForwarded
	valueRequestID
	valueTraceparent
	valueCount
)

func (v *values) header(i int) []string { return v[i : i+1 : i+1] }

// hints hands the informational answers of a workload to the client, until
// the final one is there or the request is given up. A transport that was
// given up may still read some.
type hints struct {
	mu sync.Mutex
	to http.ResponseWriter // nil: it is over; guarded by mu, as is all use of it before that
}

// pass is a ClientTrace's Got1xxResponse. What a workload says to a client
// that waits to send its body, net/http says when the body is read.
func (h *hints) pass(status int, header textproto.MIMEHeader) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.to == nil || status == http.StatusContinue {
		return nil
	}
	head := h.to.Header()
	maps.Copy(head, http.Header(header))
	h.to.WriteHeader(status)
	clear(head) // they are not the final answer's
	return nil
}

func (h *hints) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.to = nil
}
