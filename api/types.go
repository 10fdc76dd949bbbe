package api

import (
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A Workload is what a workload is and does at one moment. A time that is
// absent is unknown or does not apply.
type Workload struct {
	Name  string         `json:"name"`
	Phase workload.Phase `json:"phase"`
	// Since is when the phase began.
	Since  time.Time       `json:"since,omitzero"`
	Reason workload.Reason `json:"reason,omitzero"`
	Hosts  []string        `json:"hosts"`
	Path   string          `json:"path,omitempty"`

	Replicas []Replica `json:"replicas"`
	// Queued and InFlight count requests: those held, and those under way at
	// any replica.
	Queued   int `json:"queued"`
	InFlight int `json:"in_flight"`

	LastRequestAt time.Time `json:"last_request_at,omitzero"`
	// SleepsAt is when it will sleep if nothing uses it until then.
	SleepsAt time.Time `json:"sleeps_at,omitzero"`
	// KeptUntil is until when somebody has it kept awake.
	KeptUntil time.Time `json:"kept_until,omitzero"`
	// RetryAt is, in the phase failed, when the next wake may start it.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// ColdStarts counts the wakes that made it ready, as far back as the
	// history goes.
	ColdStarts int    `json:"cold_starts"`
	Generation uint64 `json:"generation"`

	Node    string `json:"node,omitempty"`
	Runtime string `json:"runtime,omitempty"`
	// Origin tells where the workload is described.
	Origin string `json:"origin,omitempty"`
	// Problems are what is wrong with descriptions of this name.
	Problems []workload.Problem `json:"problems,omitempty"`
}

// A Replica is one running copy and the requests it is answering.
type Replica struct {
	ID       string `json:"id"`
	Address  string `json:"address"`
	InFlight int    `json:"in_flight"`
}

// Describe fills in what a workload's description and state tell. The traffic
// (Queued, InFlight, also of each replica, LastRequestAt, SleepsAt) and
// ColdStarts are left for the caller, who knows them.
func Describe(w workload.Workload, s workload.State) Workload {
	d := Workload{
		Name:       w.Name,
		Phase:      s.Phase,
		Since:      s.Since,
		Reason:     s.Reason,
		Hosts:      append([]string{}, w.Hosts...),
		Path:       w.Path,
		Replicas:   make([]Replica, 0, len(s.Replicas)),
		RetryAt:    s.RetryAt,
		KeptUntil:  s.KeptUntil,
		Generation: s.Generation,
		Node:       w.Node,
		Runtime:    w.Runtime,
		Origin:     w.Origin,
	}
	for _, r := range s.Replicas {
		d.Replicas = append(d.Replicas, Replica{ID: r.ID, Address: r.Address})
	}
	return d
}

// WorkloadList is the answer of GET /api/v1/workloads.
type WorkloadList struct {
	Workloads []Workload `json:"workloads"`
	// Problems are those of every description, of names that have no
	// workload because of them too; and of the kind "nats", what NATS tells.
	Problems []workload.Problem `json:"problems"`
}

// WakeList is the answer of GET /api/v1/wakes, newest first.
type WakeList struct {
	Wakes []Wake `json:"wakes"`
}

// LogLines is the answer of GET /api/v1/workloads/NAME/logs, oldest first.
type LogLines struct {
	Workload string   `json:"workload"`
	Lines    []string `json:"lines"`
}

// A Finding is one thing that is wrong, or could be better.
type Finding struct {
	// Severity is error, warning or note.
	Severity string `json:"severity"`
	// Code is one of a fixed set, for scripts.
	Code string `json:"code"`
	// Place is where it is: a container, file:line:col, an address.
	Place string `json:"place"`
	// What is wrong, Why it matters, and the Fix: a sentence each.
	What string `json:"what"`
	Why  string `json:"why"`
	Fix  string `json:"fix"`
}

// FindingList is the answer of GET /api/v1/findings, the worst first.
type FindingList struct {
	Findings []Finding `json:"findings"`
}

// A Check is one thing that Rouse needs in order to do its work.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Detail is one line for a person. It is left out of an answer to
	// somebody who has not shown the token.
	Detail string `json:"detail,omitempty"`
}

// Readiness is the answer of GET /readyz: ready when every check is.
type Readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks"`
}
