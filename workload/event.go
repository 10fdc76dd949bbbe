package workload

import "time"

// EventKind is one kind of entry in the history of a workload.
type EventKind string

const (
	EventWoken    EventKind = "woken"    // a scaler took the wake
	EventStarted  EventKind = "started"  // the platform's start returned
	EventReady    EventKind = "ready"    // readiness proved
	EventReleased EventKind = "released" // a gateway let its last held request go
	EventFailed   EventKind = "failed"   // the start did not come to readiness
	EventSlept    EventKind = "slept"    // it was put to sleep, or ended
	EventAdopted  EventKind = "adopted"  // it ran already
)

// EventKinds are all that the history has.
func EventKinds() []EventKind {
	return []EventKind{EventWoken, EventStarted, EventReady, EventReleased, EventFailed, EventSlept, EventAdopted}
}

// An Event is one entry in the history. It informs; nothing is decided by it.
type Event struct {
	Workload   string    `json:"workload"`
	Kind       EventKind `json:"kind"`
	At         time.Time `json:"at"`
	Generation uint64    `json:"generation"`
	// Actor is the scaler or gateway that tells.
	Actor  string `json:"actor,omitempty"`
	Reason Reason `json:"reason,omitzero"`
	// FreedBytes is, of EventSlept, the memory in bytes that it took before it
	// was stopped; 0: not known, or it keeps it.
	FreedBytes int64 `json:"freed_bytes,omitempty"`
	// Wake is the cold start as far as it is known; nil where there is none.
	Wake *Wake `json:"wake,omitempty"`
}

// A Drained is one gateway's answer to "close your gate: this is draining".
type Drained struct {
	Gateway string `json:"gateway"`
	// InFlight counts the requests in flight on whatever replica, Queued those
	// that are held. Both zero: the stop may begin.
	InFlight int `json:"in_flight"`
	Queued   int `json:"queued"`
	// Open says that the gate is not closed, since the gateway knows later
	// news: it cannot say what will be in flight in a moment.
	Open bool `json:"open,omitempty"`
}
