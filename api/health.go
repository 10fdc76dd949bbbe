package api

import (
	"fmt"
	"io"
	"net/http"
)

// health says that the process answers, and no more.
func (s *server) health(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
	return nil
}

// ready says whether the process can do its work: 503 while it cannot. The
// details may name hosts and paths, so they are for those who may see the
// rest.
func (s *server) ready(w http.ResponseWriter, r *http.Request) error {
	body := Readiness{Ready: true, Checks: append([]Check{}, s.backend.Ready(r.Context())...)}
	trusted := s.trusted(r)
	for i := range body.Checks {
		body.Ready = body.Ready && body.Checks[i].OK
		if !trusted {
			body.Checks[i].Detail = ""
		}
	}
	status := http.StatusOK
	if !body.Ready {
		status = http.StatusServiceUnavailable
	}
	return reply(w, status, body)
}

func (s *server) config(w http.ResponseWriter, r *http.Request) error {
	config, err := s.backend.Config(r.Context())
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	return reply(w, http.StatusOK, config)
}
