//go:build linux

// Package report makes a page for a person from the files that a measurement
// has left: one HTML file that needs no other, no network and no script.
//
// It reads the directories of `loadtest run`, `compare`, `coldstart` and
// `burst`, and a directory of such directories. It measures nothing, and no
// figure on the page is only believed: what a summary says is computed again
// from the histograms, logs and trials beside it, and where they disagree the
// page says so before anything else.
package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Name of the page.
const Name = "report.html"

// A source is a directory's result, of one kind.
type source interface {
	// check compares what it says with what its files come to.
	check() Check
	// part is its part of the page.
	part() part
}

// Write makes the page of a directory, and gives what its figures were worth.
// It replaces an older page. An error is a directory without a result, or
// one that cannot be read.
func Write(dir string) (Verdict, error) {
	page, err := compose(dir)
	if err != nil {
		return Verdict{}, err
	}
	file, err := os.CreateTemp(dir, Name+".*")
	if err != nil {
		return Verdict{}, fmt.Errorf("write report: %w", err)
	}
	defer os.Remove(file.Name()) // nothing, once it has its name
	err = errors.Join(page.render(file), file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(dir, Name))
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("write report: %w", err)
	}
	return page.Verdict, nil
}

// Verify compares what the summaries of a directory say with what its other
// files come to.
func Verify(dir string) (Check, error) {
	sources, err := open(dir)
	if err != nil {
		return Check{}, err
	}
	var all Check
	for _, s := range sources {
		all.add(s.check(), s.name)
	}
	return all, nil
}

// compose makes the page.
func compose(dir string) (*page, error) {
	sources, err := open(dir)
	if err != nil {
		return nil, err
	}
	p := &page{}
	for _, s := range sources {
		one := s.part()
		one.Name = s.name
		one.Verdict.doubt(s.check())
		p.Parts = append(p.Parts, one)
	}
	p.conclude(sources)
	return p, nil
}
