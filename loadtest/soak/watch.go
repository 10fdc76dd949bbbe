//go:build linux

package soak

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Series that are watched.
const (
	Memory     = "resident_bytes"
	Goroutines = "goroutines"
	Files      = "open_files"
	Objects    = "heap_objects"
	JetStream  = "jetstream_bytes"
	History    = "history_bytes"
)

// allowances of the series that are judged. The history is not: it is bounded
// by number, 1,000 messages for each workload, and grows until then. Nor are
// the objects of the heap, which help to find what memory is made of.
var allowances = map[string]Allowance{
	// The store keeps the block that each stream is writing in memory, and
	// that of the history grows to 8 MiB; the collector lets the heap be twice
	// what is in use. The rest is for what finds its size.
	Memory:     {Least: 24 << 20, Share: 0.10},
	Goroutines: {Least: 20, Share: 0.05},
	Files:      {Least: 20, Share: 0.05},
	// The store gives the room of what was deleted back only once a block has
	// grown to 2 MiB and half of it is dead; there are a handful of streams.
	JetStream: {Least: 8 << 20, Share: 0.10},
}

// atRest bounds what a series may have more of when all sleep again after
// the soak than when they did before it.
var atRest = map[string]float64{Goroutines: 10, Files: 10}

// historyStream is the stream of the history, as a directory of the store.
const historyStream = "ROUSE_EVENTS"

// A Process is what is watched.
type Process struct {
	PID int
	// Metrics is the URL of its metrics in Prometheus' text format, which
	// have go_goroutines and go_memstats_heap_objects.
	Metrics string
	// Store is the directory of its NATS server; empty: it has none.
	Store string
}

// Read gives the value of each series now. It blocks for some milliseconds.
func (p Process) Read(ctx context.Context) (map[string]float64, error) {
	values := map[string]float64{}
	var err error
	if values[Memory], err = residentBytes(p.PID); err != nil {
		return nil, err
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID))
	if err != nil {
		return nil, fmt.Errorf("open files: %w", err)
	}
	values[Files] = float64(len(open))
	if err := gauges(ctx, p.Metrics, map[string]string{"go_goroutines": Goroutines, "go_memstats_heap_objects": Objects}, values); err != nil {
		return nil, err
	}
	if p.Store != "" {
		values[JetStream], values[History] = stored(p.Store)
	}
	return values, nil
}

func residentBytes(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("resident memory: %w", err)
	}
	for line := range bytes.Lines(status) {
		if rest, found := bytes.CutPrefix(line, []byte("VmRSS:")); found {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(string(rest)), " kB"), 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("resident memory: process %d has none", pid)
}

// gauges reads metrics without labels, each into a value by another name.
func gauges(ctx context.Context, url string, names map[string]string, values map[string]float64) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		metric, text, _ := strings.Cut(lines.Text(), " ")
		value, err := strconv.ParseFloat(text, 64)
		if name, wanted := names[metric]; wanted && err == nil {
			values[name] = value
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	for metric, name := range names {
		if _, found := values[name]; !found {
			return fmt.Errorf("metrics: %s has no %s", url, metric)
		}
	}
	return nil
}

// stored is the length of all files of the store, that of the history's
// apart. Files may go while it looks.
func stored(dir string) (others, history float64) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // it has gone
		}
		info, err := entry.Info()
		switch {
		case err != nil: // the same
		case strings.Contains(path, "/"+historyStream+"/"):
			history += float64(info.Size())
		default:
			others += float64(info.Size())
		}
		return nil
	})
	return others, history
}

// watch reads the series until ctx ends.
func watch(ctx context.Context, p Process, every time.Duration, tell func(map[string]float64)) (map[string][]Point, error) {
	series := map[string][]Point{}
	began := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		values, err := p.Read(context.WithoutCancel(ctx))
		if err != nil {
			return series, err
		}
		at := time.Since(began)
		for name, value := range values {
			series[name] = append(series[name], Point{at, value})
		}
		tell(values)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return series, nil
		}
	}
}
