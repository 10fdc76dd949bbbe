package doctor

import (
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A Server is what a running Rouse tells of itself.
type Server struct {
	// Address is where it was asked.
	Address string
	// Err says why it did not answer; the rest is then empty.
	Err string
	// Missing are the checks of its readiness that fail: name -> detail.
	Missing map[string]string
	// Uses are its workloads, as they are now.
	Uses []Use
	// Now is when it was asked.
	Now time.Time
}

// A Use is what one workload does.
type Use struct {
	Name          string
	Phase         workload.Phase
	Since         time.Time
	Reason        string
	InFlight      int
	Queued        int
	LastRequestAt time.Time
}

// Times after which something that goes on is worth a word.
const (
	longHeld = 10 * time.Second // a request waits while nothing wakes
	longUse  = 10 * time.Minute // one request keeps it awake
)

func (s *Server) findings() []Finding {
	if s.Err != "" {
		return []Finding{{Error, "server", s.Address, s.Err,
			"whether anything is routed, woken or put to sleep could not be asked",
			"start it (rouse up, or rouse gateway and rouse scaler), or name its address with --admin"}}
	}
	var all []Finding
	for name, detail := range s.Missing {
		all = append(all, Finding{Error, "not_ready", s.Address, fmt.Sprintf("%s: it does not have %s", name, detail), missingWhy(name), "look at its log; rouse health tells when it has it"})
	}
	for _, u := range s.Uses {
		all = append(all, u.findings(s.Now)...)
	}
	return all
}

func missingWhy(check string) string {
	switch check {
	case "nats":
		return "awake workloads go on, but nothing wakes and nothing is put to sleep until it is back"
	case "docker":
		return "what happens to containers is not heard of until it is back"
	}
	return "this process cannot do all of its work until it has it"
}

func (u Use) findings(now time.Time) []Finding {
	var all []Finding
	if u.Phase == workload.Failed {
		all = append(all, Finding{Error, "start_failed", u.Name, "its last start failed: " + u.Reason,
			"requests for it get 502 or 504",
			fmt.Sprintf("rouse logs %s has its last lines, rouse explain %s the step that it failed in", u.Name, u.Name)})
	}
	if u.Queued > 0 && u.Phase == workload.Asleep && now.Sub(u.Since) > longHeld {
		all = append(all, Finding{Error, "not_taken", u.Name, fmt.Sprintf("%d requests wait, and no scaler takes the wake", u.Queued),
			"they get 503 when their hold_timeout is over",
			"start the scaler of its node, or look why it cannot reach NATS"})
	}
	if idle := now.Sub(u.LastRequestAt); u.Phase == workload.Ready && u.InFlight > 0 && !u.LastRequestAt.IsZero() && idle > longUse {
		all = append(all, Finding{Note, "kept_awake", u.Name,
			fmt.Sprintf("%d in flight, and no new request for %s", u.InFlight, idle.Truncate(time.Second)),
			"a download, stream or WebSocket that is open keeps it awake, however quiet it is",
			"nothing, if that is wanted; silence_timeout ends those that carry nothing"})
	}
	return all
}
