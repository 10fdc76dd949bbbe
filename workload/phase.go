package workload

import "fmt"

// A Phase is where a workload is in its life. The zero value is Asleep.
type Phase uint8

const (
	// Asleep: nothing runs; the next counted request wakes it.
	Asleep Phase = iota
	// Waking: a scaler is starting it or proving it ready.
	Waking
	// Ready: at least one replica answers; gates are open.
	Ready
	// Draining: gates are closed and the last requests are ending, or the
	// stop is under way.
	Draining
	// Failed: the last start did not come to readiness; State.Reason says
	// why, and State.RetryAt when the next wake may try again.
	Failed
)

var phaseNames = [...]string{"asleep", "waking", "ready", "draining", "failed"}

// Phases lists every phase in the order of a life.
func Phases() []Phase { return []Phase{Asleep, Waking, Ready, Draining, Failed} }

// String gives the name used in the API, the metrics and the events.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// MarshalText writes the name.
func (p Phase) MarshalText() ([]byte, error) {
	if int(p) >= len(phaseNames) {
		return nil, fmt.Errorf("no such phase: %d", uint8(p))
	}
	return []byte(phaseNames[p]), nil
}

// UnmarshalText reads a name; any other text is an error.
func (p *Phase) UnmarshalText(text []byte) error {
	for i, name := range phaseNames {
		if name == string(text) {
			*p = Phase(i)
			return nil
		}
	}
	return fmt.Errorf("no such phase: %q", text)
}
