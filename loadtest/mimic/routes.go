package mimic

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", s.report)
	mux.HandleFunc("/echo", echo)
	mux.HandleFunc("/delay/{ms}", s.delay)
	mux.HandleFunc("/bytes/{n}", bytes)
	mux.HandleFunc("/status/{code}", status)
	mux.HandleFunc("/sse", s.sse)
	mux.HandleFunc("/ws", s.ws)
	mux.HandleFunc("/chunked", s.chunked)
	mux.HandleFunc("/trailers", trailers)
	mux.HandleFunc("/crash", s.crashed)
	mux.HandleFunc("/hang", s.hang)
	mux.HandleFunc("/eat/{mib}", s.eat)
	mux.HandleFunc("/health/{code}", s.feel)

	outer := http.NewServeMux()
	outer.HandleFunc("/healthz", s.healthz)
	outer.Handle("/", s.entered(s.counted(mux)))
	return outer
}

// counted counts the request and makes it wait as Config.Delay says.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.served.Add(1)
		if s.cfg.Delay > 0 && !s.wait(r, s.cfg.Delay) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// wait reports that the time has passed and the client is still there.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		s.canceled.Add(1)
		return false
	}
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	code := int(s.healthzCode.Load())
	w.WriteHeader(code)
	_, _ = io.WriteString(w, http.StatusText(code)+"\n")
}

func (s *Server) delay(w http.ResponseWriter, r *http.Request) {
	ms, ok := number(w, r, "ms", 24*60*60*1000)
	if ok && s.wait(r, time.Duration(ms)*time.Millisecond) {
		s.report(w, r)
	}
}

// status answers with the code; an informational one is followed by a 200.
func status(w http.ResponseWriter, r *http.Request) {
	code, ok := number(w, r, "code", 999)
	if !ok {
		return
	}
	if code < 100 || code == http.StatusSwitchingProtocols {
		http.Error(w, "not a status to answer with", http.StatusBadRequest)
		return
	}
	w.WriteHeader(int(code))
	if code < 200 {
		w.WriteHeader(http.StatusOK)
	}
}

// block is what /bytes repeats, so that a reader can check what it got.
const block = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-\n"

// bytes answers n bytes with their length, in constant memory.
func bytes(w http.ResponseWriter, r *http.Request) {
	n, ok := number(w, r, "n", 1<<40)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	_, _ = io.CopyN(w, &pattern{}, n)
}

// pattern reads block over and over.
type pattern struct{ at int }

func (p *pattern) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		c := copy(b[n:], block[p.at:])
		n += c
		p.at = (p.at + c) % len(block)
	}
	return n, nil
}

// crashed ends the process without an answer.
func (s *Server) crashed(http.ResponseWriter, *http.Request) {
	s.cfg.Logger.Error("crashing as asked")
	select {
	case s.crash <- struct{}{}:
	default: // it is under way
	}
	panic(http.ErrAbortHandler) // no half answer: the connection is cut
}

// hang never answers; it ends when the client does.
func (s *Server) hang(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	s.canceled.Add(1)
}

// memory is what /eat has taken and not given back.
type memory struct {
	mu     sync.Mutex
	blocks [][]byte // guarded by mu
}

// eat takes memory, touches it, and keeps it for the rest of the run.
func (s *Server) eat(w http.ResponseWriter, r *http.Request) {
	mib, ok := number(w, r, "mib", 1<<20)
	if !ok {
		return
	}
	s.eaten.mu.Lock()
	defer s.eaten.mu.Unlock()
	for range mib {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		s.eaten.blocks = append(s.eaten.blocks, block)
	}
	s.report(w, r)
}

// feel sets what /healthz answers from now on.
func (s *Server) feel(w http.ResponseWriter, r *http.Request) {
	code, ok := number(w, r, "code", 599)
	if !ok {
		return
	}
	if code < http.StatusOK {
		http.Error(w, "not a status to answer with", http.StatusBadRequest)
		return
	}
	s.healthzCode.Store(code)
	s.report(w, r)
}

// number reads a path value between 0 and most, or answers 400.
func number(w http.ResponseWriter, r *http.Request, name string, most int64) (int64, bool) {
	n, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err == nil && (n < 0 || n > most) {
		err = errors.New("out of range")
	}
	if err != nil {
		http.Error(w, name+": "+err.Error(), http.StatusBadRequest)
		return 0, false
	}
	return n, true
}
