//go:build linux

package report

import "fmt"

// A Verdict is what a result is worth. The zero value is valid.
type Verdict struct {
	// Against are reasons for which it is not valid.
	Against []string
	// Reservations do not make it invalid, but should be known.
	Reservations []string
	// For says what was found to be well.
	For []string
}

// Valid tells that nothing speaks against it.
func (v Verdict) Valid() bool { return len(v.Against) == 0 }

// Word is the verdict in short.
func (v Verdict) Word() string {
	switch {
	case !v.Valid():
		return "Not valid"
	case len(v.Reservations) > 0:
		return "Valid, with reservations"
	}
	return "Valid"
}

// Level is the verdict for a style sheet: valid, reserved or invalid.
func (v Verdict) Level() string {
	switch {
	case !v.Valid():
		return "invalid"
	case len(v.Reservations) > 0:
		return "reserved"
	}
	return "valid"
}

// Err is nil of a valid result.
func (v Verdict) Err() error {
	if v.Valid() {
		return nil
	}
	return fmt.Errorf("not valid: %s", v.Against[0])
}

func (v *Verdict) against(bad bool, format string, args ...any) {
	if bad {
		v.Against = append(v.Against, fmt.Sprintf(format, args...))
	}
}

func (v *Verdict) reserve(doubtful bool, format string, args ...any) {
	if doubtful {
		v.Reservations = append(v.Reservations, fmt.Sprintf(format, args...))
	}
}

func (v *Verdict) speakFor(format string, args ...any) {
	v.For = append(v.For, fmt.Sprintf(format, args...))
}

// mostTold bounds the disagreements that a page lists.
const mostTold = 10

// doubt takes in what the comparison with the files has shown.
func (v *Verdict) doubt(c Check) {
	if len(c.Disagreements) > 0 {
		v.For = nil
	}
	for i, d := range c.Disagreements {
		if i == mostTold {
			v.against(true, "and %d more disagreements", len(c.Disagreements)-i)
			break
		}
		v.against(true, "%s", d)
	}
	if c.Figures > 0 && len(c.Disagreements) == 0 {
		v.speakFor("%d figures were computed again from the files beside, and agree.", c.Figures)
	}
}
