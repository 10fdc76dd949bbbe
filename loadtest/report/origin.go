//go:build linux

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rouse-dev/rouse/loadtest/trial"
)

// Schemas of an origin: what kind of result is beside it.
const (
	RunSchema   = "loadtest/run/1"
	BurstSchema = "loadtest/burst/1"
)

// An Origin is the file manifest.json beside the result.json of one load:
// where it comes from.
type Origin struct {
	Schema string `json:"schema"`
	// Scenario is the subcommand, such as rate or bursts.
	Scenario string `json:"scenario,omitempty"`
	URL      string `json:"url"`
	Protocol string `json:"protocol,omitempty"`
	// Problem is why the command has failed; empty: it has not.
	Problem  string         `json:"problem,omitempty"`
	Manifest trial.Manifest `json:"manifest"`
}

// Save writes the file.
func (o Origin) Save(dir string) error {
	encoded, err := json.MarshalIndent(o, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "manifest.json"), append(encoded, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("save manifest: %w", err)
	}
	return nil
}

// readOrigin gives nil where there is none: a lane of a comparison has none.
func readOrigin(dir string) (*Origin, error) {
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var o Origin
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifest in %s: %w", dir, err)
	}
	return &o, nil
}
