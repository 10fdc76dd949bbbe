package router

import (
	"io"
	"net/http"
	"strings"
)

// relay writes the workload's answer to the client. It panics where either of
// them breaks off, so that net/http ends the client's connection or stream
// and a part is not taken for the whole.
func (x *exchange) relay(res *http.Response) {
	stream := streams(res)
	head := x.w.Header()
	passHeader(head, res.Header)
	x.tell(head)
	announced := len(res.Trailer)
	if x.req.ProtoAtLeast(1, 1) {
		announce(head, res.Trailer)
	}
	x.WriteHeader(res.StatusCode)
	err := x.relayBody(res.Body, stream)
	_ = res.Body.Close() // also fills in the trailers
	if err != nil {
		x.breakOff(err)
	}
	if len(res.Trailer) > 0 {
		x.flush() // or net/http would give a short body a length, and trailers need chunks
		passTrailer(head, res.Trailer, len(res.Trailer) == announced)
	}
}

// breakOff ends an answer that does not come to its end.
func (x *exchange) breakOff(err error) {
	x.router.logger.Debug("answer broke off", "workload", x.route.workload.Name,
		"request_id", x.requestID, "error", err)
	panic(http.ErrAbortHandler)
}

// streams reports an answer whose parts are sent on as they come: one that
// does not know its length is being made while it is sent, and events are, by
// nature. The parts of all others wait for a full buffer.
func streams(res *http.Response) bool {
	if res.ContentLength < 0 {
		return true
	}
	for _, value := range res.Header["Content-Type"] {
		mediaType, _, _ := strings.Cut(value, ";")
		return strings.EqualFold(strings.TrimSpace(mediaType), "text/event-stream")
	}
	return false
}

// passHeader moves the headers of the workload's answer to the client's; the
// values stay where they are in memory.
func passHeader(to, from http.Header) {
	dropNamed(from)
	for name, values := range from {
		if !hopByHop(name) {
			to[name] = values
		}
	}
	if _, typed := to["Content-Type"]; !typed {
		to["Content-Type"] = nil // keeps net/http from guessing one
	}
}

// announce names the trailers in the header, for those that came announced:
// a transport takes the names out of the header and into the trailer.
func announce(head, trailer http.Header) {
	if len(trailer) == 0 {
		return
	}
	names := make([]string, 0, len(trailer))
	for name := range trailer {
		names = append(names, name)
	}
	head["Trailer"] = []string{strings.Join(names, ", ")}
}

// passTrailer moves the trailers. net/http writes one that the header did not
// announce only if its name says so.
func passTrailer(to, trailer http.Header, announced bool) {
	prefix := http.TrailerPrefix
	if announced {
		prefix = ""
	}
	for name, values := range trailer {
		to[prefix+name] = values
	}
}

// relayBody copies the body through a buffer of the pool.
func (x *exchange) relayBody(body io.Reader, stream bool) error {
	if body == http.NoBody {
		return nil
	}
	if stream {
		x.flush() // the head need not wait for the first part
	}
	buf := x.router.buffers.get()
	defer x.router.buffers.put(buf)
	for {
		n, err := body.Read(buf[:])
		if n > 0 {
			x.limits.heard()
			if _, err := x.Write(buf[:n]); err != nil {
				return err
			}
			if stream {
				x.flush()
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// flush sends what has been written. That a client is gone shows in the next
// Write.
func (x *exchange) flush() {
	x.unblocked(func() { _ = http.NewResponseController(x.w).Flush() })
}
