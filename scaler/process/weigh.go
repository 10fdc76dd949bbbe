//go:build linux

package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/rouse-dev/rouse/workload"
)

// Weigh adds up the resident memory of every process of the workload. What
// they share counts for each of them.
func (r *Runtime) Weigh(_ context.Context, w workload.Workload) (int64, error) {
	p := r.current(w.Name)
	if p == nil {
		return 0, nil
	}
	pids, err := pidsOf(p.PID)
	if err != nil {
		return 0, fmt.Errorf("weigh %s: %w", w.Name, err)
	}
	var pages int64
	for _, pid := range pids {
		pages += residentPages(pid)
	}
	return pages * int64(os.Getpagesize()), nil
}

// residentPages is the second field of proc(5)'s statm; 0 for what has ended.
func residentPages(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages
}
