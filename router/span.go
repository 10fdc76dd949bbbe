package router

import (
	"encoding/hex"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/rouse-dev/rouse/tracing"
	"github.com/rouse-dev/rouse/workload"
)

// recordSpans tells of the call that answered a request, or was to, and of the
// request, which has ended: the last of its spans.
func (x *exchange) recordSpans() {
	if x.kind == kindStatus && x.trace.Sent.IsZero() {
		return // a waiting page's question, as in record
	}
	if x.calling {
		x.recordCall()
	}
	method, other := knownMethod(x.req.Method)
	request := x.span(x.traceparent, x.trace.Arrived, x.trace.Ended)
	request.Kind, request.Name = tracing.Server, method
	_, _ = hex.Decode(request.Parent[:], []byte(x.parent)) // it is hex, or nothing
	if name := x.workloadName(); name != "" {
		request.Name += " " + name
	}
	request.Failed = x.status >= http.StatusInternalServerError || !x.whole && x.outcome != outcomeCanceled
	request.Attributes = []tracing.Attribute{
		tracing.Text("http.request.method", method), tracing.Text("url.scheme", scheme(x.req)), tracing.Text("url.path", x.req.URL.Path),
		tracing.Text("server.address", x.req.Host), tracing.Text("client.address", x.client),
		tracing.Text("network.protocol.version", protocolVersion(x.req)), tracing.Text("user_agent.original", x.req.Header.Get("User-Agent")),
		tracing.Number("http.response.status_code", int64(x.status)), tracing.Number("http.response.body.size", x.bytes),
		tracing.Flag("faas.coldstart", x.cold),
		tracing.Text("rouse.workload", x.workloadName()), tracing.Text("rouse.outcome", x.outcome.String()), tracing.Text("rouse.request_id", x.requestID),
	}
	if other != "" {
		request.Attributes = append(request.Attributes, tracing.Text("http.request.method_original", other))
	}
	x.router.tracer.Record(request)
}

// recordCall tells of the last try.
func (x *exchange) recordCall() {
	call := x.callSpan(x.passedOn, x.lease.Replica(), x.trace.Ended)
	if x.trace.Answered.IsZero() {
		call.Failed, call.Reason = true, "no answer"
	} else {
		call.Failed = x.status >= http.StatusBadRequest || !x.whole
		call.Attributes = append(call.Attributes, tracing.Number("http.response.status_code", int64(x.status)))
	}
	x.router.tracer.Record(call)
}

// recordTry tells of a try that is followed by another. Its own span has
// another name than the one that the replica may have seen, which is the last
// try's.
func (x *exchange) recordTry(replica workload.Replica, err error) {
	x.calling = false
	if !x.traced {
		return
	}
	call := x.callSpan(x.passedOn, replica, time.Now())
	call.ID, call.Failed, call.Reason = tracing.NewSpanID(), true, err.Error()
	x.router.tracer.Record(call)
}

// recordHold tells of a wait at the gate, and of the cold start that it was
// for, which mostly belongs to the trace of the request that came first.
func (x *exchange) recordHold(began time.Time, wake *workload.Wake, err error) {
	if !x.traced {
		return
	}
	hold := x.span(x.traceparent, began, time.Now())
	hold.Parent, hold.ID, hold.Name = hold.ID, tracing.NewSpanID(), "hold"
	hold.Attributes = []tracing.Attribute{tracing.Text("rouse.workload", x.workloadName())}
	if err != nil {
		hold.Failed, hold.Reason = true, err.Error()
	}
	if wake != nil {
		if start := tracing.ColdStart(x.router.tracer, wake); start.Sampled && start.Trace != hold.Trace {
			hold.Links = []tracing.Context{start}
		}
	}
	x.router.tracer.Record(hold)
}

// span begins with the name that a traceparent gives it.
func (x *exchange) span(traceparent string, start, end time.Time) *tracing.Span {
	c, _ := tracing.Parse(traceparent) // it was made here
	return &tracing.Span{Trace: c.Trace, ID: c.Span, Start: start, End: end}
}

// callSpan is one try to send the request to a replica.
func (x *exchange) callSpan(traceparent string, replica workload.Replica, end time.Time) *tracing.Span {
	method, _ := knownMethod(x.req.Method)
	call := x.span(traceparent, x.trace.Sent, end)
	own, _ := tracing.Parse(x.traceparent)
	call.Parent, call.Kind, call.Name = own.Span, tracing.Client, method+" "+x.workloadName()
	call.Attributes = []tracing.Attribute{
		tracing.Text("http.request.method", method), tracing.Text("url.full", "http://"+replica.Address+x.req.URL.EscapedPath()),
		tracing.Text("rouse.workload", x.workloadName()), tracing.Text("rouse.replica", replica.ID),
	}
	if host, port, err := net.SplitHostPort(replica.Address); err == nil {
		number, _ := strconv.ParseInt(port, 10, 64)
		call.Attributes = append(call.Attributes, tracing.Text("server.address", host), tracing.Number("server.port", number))
	}
	return call
}

// knownMethod is what a span may be grouped by; other is the method where it
// is none of those known.
func knownMethod(method string) (known, other string) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method, ""
	}
	return "_OTHER", method
}

func protocolVersion(r *http.Request) string {
	if r.ProtoMajor == 2 {
		return "2"
	}
	return strconv.Itoa(r.ProtoMajor) + "." + strconv.Itoa(r.ProtoMinor)
}
