package mimic

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
)

// Report is the JSON body of `/` and of every path that means nothing else:
// who answered, and what reached it.
type Report struct {
	// Hostname and PID tell one copy from another.
	Hostname string `json:"hostname"`
	PID      int    `json:"pid"`
	// ListeningAt is the moment of this copy's listen(), in Unix
	// nanoseconds of its own clock.
	ListeningAt int64 `json:"listening_at_unix_ns"`
	// Served counts the requests of this copy, this one included, health
	// checks excluded; Canceled those whose client left before the answer.
	Served   int64 `json:"served"`
	Canceled int64 `json:"canceled"`

	Method  string      `json:"method"`
	Path    string      `json:"path"`
	Query   string      `json:"query,omitempty"`
	Proto   string      `json:"proto"`
	Host    string      `json:"host"`
	Remote  string      `json:"remote"`
	Headers http.Header `json:"headers"`

	// Padding brings the body to the size asked for.
	Padding string `json:"padding,omitempty"`
}

func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	report := Report{
		Hostname:    s.hostname,
		PID:         os.Getpid(),
		ListeningAt: s.listeningAt.Load(),
		Served:      s.served.Load(),
		Canceled:    s.canceled.Load(),
		Method:      r.Method,
		Path:        r.URL.Path,
		Query:       r.URL.RawQuery,
		Proto:       r.Proto,
		Host:        r.Host,
		Remote:      r.RemoteAddr,
		Headers:     r.Header,
	}
	body, err := report.encode(s.cfg.Size)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client left: nobody to tell
}

// encode gives a body of at least size bytes.
func (r *Report) encode(size int) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil || len(body) >= size {
		return body, err
	}
	r.Padding = strings.Repeat("x", max(0, size-len(body)-len(`,"padding":""`)))
	if r.Padding == "" {
		r.Padding = "x"
	}
	return json.Marshal(r)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
