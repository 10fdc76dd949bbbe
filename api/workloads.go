package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

const (
	defaultLines = 100
	maxLines     = 10_000
)

func (s *server) workloads(w http.ResponseWriter, r *http.Request) error {
	list, err := s.list(r)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, list)
}

// list puts each problem beside the workload of its name too.
func (s *server) list(r *http.Request) (WorkloadList, error) {
	workloads, err := s.backend.Workloads(r.Context())
	if err != nil {
		return WorkloadList{}, fmt.Errorf("list workloads: %w", err)
	}
	list := WorkloadList{
		Workloads: make([]Workload, len(workloads)),
		Problems:  append([]workload.Problem{}, s.backend.Problems(r.Context())...),
	}
	for i, w := range workloads {
		list.Workloads[i] = complete(w, list.Problems)
	}
	return list, nil
}

// findings are what rouse doctor finds from here.
func (s *server) findings(w http.ResponseWriter, r *http.Request) error {
	found, err := s.backend.Findings(r.Context())
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, FindingList{Findings: append([]Finding{}, found...)})
}

// complete adds the problems, and makes lists that are nil empty ones: a
// caller need not tell null from [].
func complete(w Workload, problems []workload.Problem) Workload {
	w.Problems = problemsOf(problems, w.Name)
	if w.Hosts == nil {
		w.Hosts = []string{}
	}
	if w.Replicas == nil {
		w.Replicas = []Replica{}
	}
	return w
}

func (s *server) workload(w http.ResponseWriter, r *http.Request) error {
	return s.named(r, func(name string) error { return s.replyWorkload(w, r, name) })
}

func (s *server) replyWorkload(w http.ResponseWriter, r *http.Request, name string) error {
	got, err := s.backend.Workload(r.Context(), name)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, complete(got, s.backend.Problems(r.Context())))
}

// named calls do with the name in the path, and says of its error which
// workload it is about. A name that no workload can have gets no further.
func (s *server) named(r *http.Request, do func(name string) error) error {
	name := r.PathValue("name")
	if err := workload.ValidName(name); err != nil {
		return fmt.Errorf("%w: %w", ErrNoWorkload, err)
	}
	if err := do(name); err != nil {
		return s.about(r.Context(), name, err)
	}
	return nil
}

// wake answers 200 with a workload that is ready, and 202 with one whose wake
// is on its way.
func (s *server) wake(w http.ResponseWriter, r *http.Request) error {
	wait, err := waitOf(r)
	if err != nil {
		return err
	}
	return s.named(r, func(name string) error {
		s.begin(w, r, "wake asked for", name)
		got, err := s.backend.Wake(r.Context(), name, wait)
		if err != nil {
			return notReady(got, err)
		}
		status := http.StatusAccepted
		if got.Phase == workload.Ready {
			status = http.StatusOK
		}
		return reply(w, status, complete(got, s.backend.Problems(r.Context())))
	})
}

// notReady adds why a start failed to the error that says so.
func notReady(w Workload, err error) error {
	if !errors.Is(err, ErrFailed) {
		return err
	}
	p := *problemOf(err)
	p.Reason = w.Reason
	return &p
}

func waitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, badRequest("wait=%q is not a duration such as 30s", text)
	}
	return wait, nil
}

func (s *server) sleep(w http.ResponseWriter, r *http.Request) error {
	return s.named(r, func(name string) error {
		s.begin(w, r, "sleep asked for", name)
		if err := s.backend.Sleep(r.Context(), name); err != nil {
			return err
		}
		return s.replyWorkload(w, r, name)
	})
}

// keep answers with the workload as it is, kept until when the scaler said:
// the news of it may still be on its way.
func (s *server) keep(w http.ResponseWriter, r *http.Request) error {
	text := r.URL.Query().Get("for")
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 || span > 0 && span < time.Second || span > workload.MaxKeep {
		return badRequest("for=%q is not a duration such as 1h, from 1s to %s, or 0 to end it", text, workload.MaxKeep)
	}
	return s.named(r, func(name string) error {
		s.begin(w, r, "keep asked for", name)
		until, err := s.backend.Keep(r.Context(), name, span)
		if err != nil {
			return err
		}
		got, err := s.backend.Workload(r.Context(), name)
		if err != nil {
			return err
		}
		got.KeptUntil = until
		return reply(w, http.StatusOK, complete(got, s.backend.Problems(r.Context())))
	})
}

// begin logs a write, and lets it take as long as the workload does, whatever
// limit the server has for an answer.
func (s *server) begin(w http.ResponseWriter, r *http.Request, message, name string) {
	s.cfg.Logger.InfoContext(r.Context(), message, "workload", name, "remote", r.RemoteAddr)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // no deadline to lift is fine
}

func (s *server) logs(w http.ResponseWriter, r *http.Request) error {
	n, err := numberOf(r, "lines", defaultLines, maxLines)
	if err != nil {
		return err
	}
	return s.named(r, func(name string) error {
		lines, err := s.backend.Logs(r.Context(), name, n)
		if err != nil {
			return err
		}
		return reply(w, http.StatusOK, LogLines{Workload: name, Lines: append([]string{}, lines...)})
	})
}

// numberOf reads a query parameter between 0 and limit.
func numberOf(r *http.Request, key string, unset, limit int) (int, error) {
	text := r.URL.Query().Get(key)
	if text == "" {
		return unset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > limit {
		return 0, badRequest("%s=%q is not a number from 0 to %d", key, text, limit)
	}
	return n, nil
}
