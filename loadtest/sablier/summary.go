package sablier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rouse-dev/rouse/loadtest/coldstart"
	"github.com/rouse-dev/rouse/loadtest/latency"
)

// A Summary is what the scenarios came to. Its JSON is summary.json.
type Summary struct {
	At       time.Time         `json:"at"`
	Version  string            `json:"version"`
	Command  []string          `json:"command"`
	Machine  coldstart.Machine `json:"machine"`
	Conns    int               `json:"connections"`
	Duration float64           `json:"duration_seconds"`
	Rows     []Row             `json:"rows"`
}

// A Row is one scenario.
type Row struct {
	Subject  string `json:"subject"`
	Scenario string `json:"scenario"`
	Calls    int64  `json:"calls"`
	// Rate is in calls per second; 0 of cold calls, one of which follows
	// another only after the workload was put to sleep.
	Rate  float64         `json:"calls_per_second"`
	Times latency.Summary `json:"times_ms"`
	// CPU is what the process of Rouse used for a call, in microseconds.
	CPU float64 `json:"cpu_us_per_call"`
	// Memory is the process's resident memory, in bytes; 0: not known.
	MemoryBefore int64 `json:"memory_before"`
	MemoryAfter  int64 `json:"memory_after"`
}

// String is the row of a Markdown table.
func (r Row) String() string {
	rate := "-"
	if r.Rate > 0 {
		rate = fmt.Sprintf("%.0f", r.Rate)
	}
	mib := func(n int64) float64 { return float64(n) / (1 << 20) }
	return fmt.Sprintf("| %s | %s | %d | %s | %.2f | %.2f | %.2f | %.1f | %.1f → %.1f |",
		r.Subject, r.Scenario, r.Calls, rate, r.Times.P50, r.Times.P95, r.Times.P99, r.CPU, mib(r.MemoryBefore), mib(r.MemoryAfter))
}

// Text writes the table, in Markdown.
func (s *Summary) Text(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, %d cores, Linux %s, %s, loadtest %s, %s; %d connections, %gs each\n\n", s.Machine.CPU, s.Machine.Cores,
		s.Machine.Kernel, s.Machine.Go, s.Version, s.At.UTC().Format(time.RFC3339), s.Conns, s.Duration)
	b.WriteString("| measured | scenario | calls | calls/s | p50 ms | p95 ms | p99 ms | CPU a call, µs | memory, MiB |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range s.Rows {
		fmt.Fprintln(&b, r)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Save writes summary.json and table.md into the directory, which it makes if
// need be.
func (s *Summary) Save(dir string) error {
	encoded, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("save summary: %w", err)
	}
	var text bytes.Buffer
	_ = s.Text(&text) // memory takes it all
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save summary: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "summary.json"), append(encoded, '\n'), 0o644); err != nil {
		return fmt.Errorf("save summary: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "table.md"), text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("save summary: %w", err)
	}
	return nil
}
