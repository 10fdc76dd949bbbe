package mimic

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"
)

// echo answers with the request's own body, piece by piece as it comes in:
// both directions flow at once, over HTTP/1.1 too.
func echo(w http.ResponseWriter, r *http.Request) {
	flow := http.NewResponseController(w)
	_ = flow.EnableFullDuplex() // HTTP/2 always is, and says so by an error
	if kind := r.Header.Get("Content-Type"); kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	if r.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	_, _ = io.Copy(flushed{w, flow}, r.Body)
}

// flushed sends each write off at once.
type flushed struct {
	io.Writer
	flow *http.ResponseController
}

func (f flushed) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	if err != nil {
		return n, err
	}
	return n, f.flow.Flush()
}

// sse sends an event at once and then one each `every`, `n` in all; without
// n it goes on until the client leaves or the workload drains.
func (s *Server) sse(w http.ResponseWriter, r *http.Request) {
	every, ok := interval(w, r, time.Second)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	s.pace(w, r, pieces{"id: %[1]d\ndata: %[1]d\n\n", every, count(r, math.MaxInt), s.draining})
}

// chunked sends n pieces (5 without n), `every` apart, without a length.
func (s *Server) chunked(w http.ResponseWriter, r *http.Request) {
	every, ok := interval(w, r, 50*time.Millisecond)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	s.pace(w, r, pieces{"chunk %d\n", every, count(r, 5), nil})
}

// pieces is a body that comes bit by bit: format is given the number of each.
type pieces struct {
	format string
	every  time.Duration
	most   int
	end    <-chan struct{} // ends it early; nil: it is sent to its end
}

// pace sends the pieces, each flushed.
func (s *Server) pace(w http.ResponseWriter, r *http.Request, p pieces) {
	out := flushed{w, http.NewResponseController(w)}
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for i := 1; i <= p.most; i++ {
		if _, err := fmt.Fprintf(out, p.format, i); err != nil || i == p.most {
			return
		}
		select {
		case <-tick.C:
		case <-p.end:
			return
		case <-r.Context().Done():
			s.canceled.Add(1)
			return
		}
	}
}

// ws echoes each message; a drain closes it with "going away".
func (s *Server) ws(w http.ResponseWriter, r *http.Request) {
	s.sockets.Add(1) // the request counts until here, so the drain still waits
	defer s.sockets.Done()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	conn.SetReadLimit(16 << 20)
	done := make(chan struct{})
	go func() {
		defer close(done)
		echoMessages(r.Context(), conn)
	}()
	select {
	case <-done:
	case <-s.draining:
		_ = conn.Close(websocket.StatusGoingAway, "draining")
		<-done
	}
	_ = conn.CloseNow()
}

// echoMessages returns when the connection has ended.
func echoMessages(ctx context.Context, conn *websocket.Conn) {
	for {
		kind, message, err := conn.Read(ctx)
		if err != nil || conn.Write(ctx, kind, message) != nil {
			return
		}
	}
}

// trailers reads the whole body, answers, and then sends two trailers: how
// long the body was, and the request's own trailer Mimic-Sent.
func trailers(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Trailer", "Mimic-Length, Mimic-Received")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	length, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(flushed{w, http.NewResponseController(w)}, "trailers follow\n")
	w.Header().Set("Mimic-Length", strconv.FormatInt(length, 10))
	w.Header().Set("Mimic-Received", r.Trailer.Get("Mimic-Sent"))
}

// interval reads the query's `every`, or answers 400.
func interval(w http.ResponseWriter, r *http.Request, usual time.Duration) (time.Duration, bool) {
	text := r.URL.Query().Get("every")
	if text == "" {
		return usual, true
	}
	every, err := time.ParseDuration(text)
	if err != nil || every <= 0 {
		http.Error(w, "every: want a positive duration such as 1s", http.StatusBadRequest)
		return 0, false
	}
	return every, true
}

// count reads the query's `n`; anything but a number is the usual.
func count(r *http.Request, usual int) int {
	n, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil || n < 0 {
		return usual
	}
	return n
}
