//go:build linux

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rouse-dev/rouse/loadtest/coldstart"
	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

// A named is a source and the name of its directory in that of the report;
// empty of the report's own.
type named struct {
	name string
	source
}

// errUnknown is a result that this program knows nothing of.
var errUnknown = errors.New("of a schema that is not known")

// A stranger is a result that this program knows nothing of, among others.
type stranger struct{ err error }

func (s stranger) check() Check { return Check{} }

func (s stranger) part() (p part) {
	p.Title = "Not shown"
	p.Verdict.reserve(true, "%s", s.err)
	return p
}

// errNone is a directory without a result.
var errNone = errors.New("no result: neither summary.json nor result.json nor " + openloop.LogName)

// open finds the result of a directory or, where it has none itself, those of
// the directories in it, by name.
func open(dir string) ([]named, error) {
	s, err := openOne(dir)
	if err == nil {
		return []named{{"", s}}, nil
	}
	if !errors.Is(err, errNone) {
		return nil, err
	}
	entries, listErr := os.ReadDir(dir)
	if listErr != nil {
		return nil, fmt.Errorf("report: %w", listErr)
	}
	var sources []named
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		s, err := openOne(filepath.Join(dir, entry.Name()))
		switch {
		case err == nil:
			sources = append(sources, named{entry.Name(), s})
		case errors.Is(err, errUnknown):
			sources = append(sources, named{entry.Name(), stranger{err}})
		case !errors.Is(err, errNone):
			return nil, err
		}
	}
	if len(sources) == 0 {
		return nil, err
	}
	return sources, nil
}

func openOne(dir string) (source, error) {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	switch {
	case has("summary.json"):
		return openSummary(dir)
	case has("result.json"), has(openloop.LogName):
		return openResult(dir)
	}
	return nil, fmt.Errorf("report of %s: %w", dir, errNone)
}

func openSummary(dir string) (source, error) {
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	var head struct {
		Schema string          `json:"schema"`
		Added  json.RawMessage `json:"added_ms"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("report of %s: %w", dir, err)
	}
	switch {
	case head.Schema == trial.Schema:
		return openComparison(dir)
	case head.Schema == coldstart.Schema, head.Schema == "" && head.Added != nil: // before it had one
		return openColdStarts(dir)
	}
	return nil, fmt.Errorf("report of %s: summary.json is %w: %q", dir, errUnknown, head.Schema)
}

func openResult(dir string) (source, error) {
	origin, err := readOrigin(dir)
	if err != nil {
		return nil, err
	}
	switch {
	case origin != nil && origin.Schema == BurstSchema:
		return openBurst(dir, origin)
	case origin == nil || origin.Schema == RunSchema:
		return openRun(dir, origin)
	}
	return nil, fmt.Errorf("report of %s: manifest.json is %w: %q", dir, errUnknown, origin.Schema)
}
