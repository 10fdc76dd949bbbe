package api

import (
	"fmt"
	"net/http"
)

// maxWakes bounds the limit parameter; without it all that are known are
// given.
const maxWakes = 1_000_000

// wakes lists the recent cold starts, of one workload with workload=NAME and
// at most limit=N.
func (s *server) wakes(w http.ResponseWriter, r *http.Request) error {
	limit, err := numberOf(r, "limit", maxWakes, maxWakes)
	if err != nil {
		return err
	}
	all, err := s.backend.Wakes(r.Context())
	if err != nil {
		return fmt.Errorf("list wakes: %w", err)
	}
	name := r.URL.Query().Get("workload")
	list := WakeList{Wakes: []Wake{}}
	for _, wake := range all {
		if len(list.Wakes) < limit && (name == "" || name == wake.Workload) {
			list.Wakes = append(list.Wakes, wake)
		}
	}
	return reply(w, http.StatusOK, list)
}

func (s *server) wakeByID(w http.ResponseWriter, r *http.Request) error {
	wake, err := s.backend.WakeByID(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, wake)
}
