package mimic

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

// A ledger is a file that says what this and every other copy of a workload
// did, a line for each:
//
//	start <Unix ns>         a copy began to run
//	begin <X-Request-ID>    a request came to its handler
//	end <X-Request-ID>      its handler returned, or gave up
//	term <n>                the copy was asked to end, with n requests in flight
//
// Each line is one write to the end of the file, so that copies can share it,
// and kill -9 loses none that was written. A nil ledger keeps nothing.
type ledger struct {
	file *os.File
}

// openLedger is nil without a path.
func openLedger(path string) (*ledger, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	l := &ledger{file}
	return l, l.write("start", time.Now().UnixNano())
}

// write adds a line.
func (l *ledger) write(what string, value any) error {
	if l == nil {
		return nil
	}
	if _, err := fmt.Fprintf(l.file, "%s %v\n", what, value); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	return nil
}

func (l *ledger) close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// entered writes down the request's begin and, in the end, its end. What
// cannot be written down is refused: nobody may rely on a ledger with gaps.
func (s *Server) entered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inFlight.Add(1)
		defer s.inFlight.Add(-1)
		id := r.Header.Get("X-Request-ID")
		if err := s.ledger.write("begin", id); err != nil {
			http.Error(w, err.Error(), http.StatusInsufficientStorage)
			return
		}
		defer func() {
			if err := s.ledger.write("end", id); err != nil {
				s.cfg.Logger.Error("ledger has a gap", "error", err)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// told notes that the workload was asked to end.
func (s *Server) told() {
	if err := s.ledger.write("term", s.inFlight.Load()); err != nil {
		s.cfg.Logger.Error("ledger has a gap", "error", err)
	}
}
