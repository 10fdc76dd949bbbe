package main

import (
	"slices"
	"strings"
)

// worthAnother are the tests and packages to run a second time: none if more
// than most failed.
func (r *report) worthAnother(most int) []name {
	if len(r.failed) > most {
		return nil
	}
	var tests []name
	for _, f := range r.failed {
		if n := f.top(); !r.proved[f] && !slices.Contains(tests, n) {
			tests = append(tests, n)
		}
	}
	return tests
}

// top is the test that n is part of.
func (n name) top() name {
	test, _, _ := strings.Cut(n.test, "/")
	return name{n.pkg, test}
}

// holds reports that other is n or a part of it.
func (n name) holds(other name) bool {
	return n.pkg == other.pkg && (n.test == "" || n.test == other.top().test)
}

// replace puts the second run of n in the place of its first. If nothing
// failed in it, and something passed, n was unsteady.
func (r *report) replace(n name, second *report) {
	isOld := func(o name) bool { return n.holds(o) }
	r.passed = append(slices.DeleteFunc(r.passed, isOld), second.passed...)
	r.skipped = append(slices.DeleteFunc(r.skipped, isOld), second.skipped...)
	r.failed = slices.DeleteFunc(r.failed, isOld)
	for parent := range second.parent {
		r.parent[parent] = true
	}
	for skipped, why := range second.reasons {
		r.reasons[skipped] = why
	}
	switch {
	case len(second.failed) > 0:
		r.failed = append(r.failed, second.failed...)
	case len(second.passed) == 0:
		r.failed = append(r.failed, n)
	default:
		r.unsteady = append(r.unsteady, n)
	}
}
