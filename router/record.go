package router

import (
	"net/http"
	"strconv"
	"time"
)

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
	if log := x.router.access; log != nil && !x.quiet && log.takes(x.outcome == outcomeWarm && x.status < http.StatusBadRequest) {
		x.line = x.appendLog(x.line[:0], log.format)
		log.write(x.line)
	}
}

// appendLog writes the line of the access log.
func (x *exchange) appendLog(b []byte, format LogFormat) []byte {
	if format == LogCLF {
		return x.appendCLF(b)
	}
	return newLogLine(b, format).
		time("time", x.trace.Arrived).
		text("request_id", x.requestID).
		text("trace_id", traceID(x.traceparent)).
		text("client", x.client).
		text("method", x.req.Method).text("host", x.req.Host).text("path", x.req.URL.Path).text("user_agent", x.req.Header.Get("User-Agent")).
		number("status", int64(x.status)).number("bytes", x.bytes).
		text("workload", x.workloadName()).text("replica", x.replica).
		text("outcome", x.outcome.String()).flag("cold", x.cold).
		seconds("total_seconds", x.trace.Ended.Sub(x.trace.Arrived)).
		seconds("added_seconds", x.trace.Added()).
		seconds("queued_seconds", x.trace.Held).
		seconds("upstream_seconds", x.trace.Upstream()).
		end()
}

// appendCLF is it in the Combined Log Format.
func (x *exchange) appendCLF(b []byte) []byte {
	b = appendCLF(b, x.client)
	b = append(b, " - - ["...)
	b = x.trace.Arrived.UTC().AppendFormat(b, "02/Jan/2006:15:04:05 -0700")
	b = append(b, `] "`...)
	b = append(appendCLF(b, x.req.Method), ' ')
	b = append(appendCLF(b, x.req.URL.Path), ' ')
	b = append(appendCLF(b, x.req.Proto), `" `...)
	b = append(strconv.AppendInt(b, int64(x.status), 10), ' ')
	b = strconv.AppendInt(b, x.bytes, 10)
	for _, name := range [...]string{"Referer", "User-Agent"} {
		b = append(appendCLF(append(b, ` "`...), x.req.Header.Get(name)), '"')
	}
	b = append(appendCLF(append(b, ' '), x.workloadName()), ' ')
	b = append(b, x.outcome.String()...)
	for _, took := range [...]time.Duration{x.trace.Added(), x.trace.Held, x.trace.Upstream()} {
		b = appendSeconds(append(b, ' '), took)
	}
	return append(b, '\n')
}
