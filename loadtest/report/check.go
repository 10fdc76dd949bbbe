//go:build linux

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// A Check is the comparison of what a result says with what its files come
// to. The zero value has compared nothing.
type Check struct {
	// Figures is how many were compared.
	Figures int
	// Disagreements are those that differ, and files that cannot be read.
	Disagreements []Disagreement
}

// A Disagreement is one figure, by its place in a file.
type Disagreement struct {
	File, Figure string
	Said, Found  string
}

// String is the disagreement in a sentence.
func (d Disagreement) String() string {
	if d.Figure == "" {
		return fmt.Sprintf("%s: %s", d.File, d.Found)
	}
	return fmt.Sprintf("%s says %s = %s; its files come to %s", d.File, d.Figure, d.Said, d.Found)
}

// Err is nil if all agree.
func (c Check) Err() error {
	if len(c.Disagreements) == 0 {
		return nil
	}
	errs := []error{fmt.Errorf("%d of %d figures disagree with their files", len(c.Disagreements), c.Figures)}
	for _, d := range c.Disagreements {
		errs = append(errs, errors.New(d.String()))
	}
	return errors.Join(errs...)
}

// add takes over another, of a directory below.
func (c *Check) add(other Check, dir string) {
	c.Figures += other.Figures
	for _, d := range other.Disagreements {
		if dir != "" {
			d.File = dir + "/" + d.File
		}
		c.Disagreements = append(c.Disagreements, d)
	}
}

// unreadable notes that a figure's file cannot be had.
func (c *Check) unreadable(file string, err error) {
	c.Figures++
	c.Disagreements = append(c.Disagreements, Disagreement{File: file, Found: err.Error()})
}

// within compares a figure with bounds.
func (c *Check) within(file, figure string, said, low, high float64) {
	c.Figures++
	if !(said >= low && said <= high) {
		c.Disagreements = append(c.Disagreements, Disagreement{file, figure, fmt.Sprint(said), fmt.Sprintf("%g to %g", low, high)})
	}
}

// same compares all figures of two values by their JSON.
func (c *Check) same(file string, said, found any) {
	a, err := tree(said)
	b, otherErr := tree(found)
	if err = errors.Join(err, otherErr); err != nil {
		c.unreadable(file, err)
		return
	}
	c.compare(file, "", a, b)
}

func tree(value any) (t any, err error) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	return t, err
}

func (c *Check) compare(file, at string, said, found any) {
	switch said := said.(type) {
	case map[string]any:
		if found, ok := found.(map[string]any); ok {
			c.compareMaps(file, at, said, found)
			return
		}
	case []any:
		if found, ok := found.([]any); ok && len(found) == len(said) {
			for i := range said {
				c.compare(file, fmt.Sprintf("%s[%d]", at, i), said[i], found[i])
			}
			return
		}
	}
	c.Figures++
	if !equal(said, found) {
		c.Disagreements = append(c.Disagreements, Disagreement{file, at, short(said), short(found)})
	}
}

func (c *Check) compareMaps(file, at string, said, found map[string]any) {
	keys := map[string]bool{}
	for key := range said {
		keys[key] = true
	}
	for key := range found {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		place := key
		if at != "" {
			place = at + "." + key
		}
		c.compare(file, place, said[key], found[key])
	}
}

// equal lets numbers differ by the last bits of a sum.
func equal(a, b any) bool {
	x, isNumber := a.(float64)
	y, other := b.(float64)
	if isNumber && other {
		return math.Abs(x-y) <= 1e-9*max(1, math.Abs(x), math.Abs(y))
	}
	left, _ := json.Marshal(a) // of what came from JSON
	right, _ := json.Marshal(b)
	return string(left) == string(right)
}

func short(value any) string {
	if value == nil {
		return "nothing"
	}
	text, _ := json.Marshal(value) // of what came from JSON
	if len(text) > 80 {
		return string(text[:77]) + "…"
	}
	return string(text)
}
