package router

// record makes the entries of a request that ended.
func (x *exchange) record() {
	if x.kind == kindStatus && x.trace.Sent.IsZero() {
		return // a waiting page's question, and no concern of the workload's
	}
	m := x.router.nowhere
	if x.route != nil {
		m = x.route.meter
	}
	m.requests[x.outcome].Inc()
	if !x.trace.Answered.IsZero() {
		m.observe(x.cold, x.trace.Added())
	}
	if x.router.access != nil && !x.quiet {
		x.line = x.appendLog(x.line[:0])
		x.router.access.write(x.line)
	}
}

// appendLog writes the line of the access log.
func (x *exchange) appendLog(b logLine) logLine {
	b = append(b, '{')
	b = b.time("time", x.trace.Arrived)
	b = b.text("request_id", x.requestID)
	b = b.text("trace_id", traceID(x.traceparent))
	b = b.text("client", x.client)
	b = b.text("method", x.req.Method).text("host", x.req.Host).text("path", x.req.URL.Path)
	b = b.number("status", int64(x.status)).number("bytes", x.bytes)
	b = b.text("workload", x.workloadName()).text("replica", x.replica)
	b = b.text("outcome", x.outcome.String()).flag("cold", x.cold)
	b = b.seconds("total_seconds", x.trace.Ended.Sub(x.trace.Arrived))
	b = b.seconds("added_seconds", x.trace.Added())
	b = b.seconds("queued_seconds", x.trace.Held)
	b = b.seconds("upstream_seconds", x.trace.Upstream())
	return append(b, "}\n"...)
}
