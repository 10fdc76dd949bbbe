package burst

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// Resident reads the resident memory of a process from /proc, in bytes; 0 for
// process 0.
func Resident(pid int) (int64, error) {
	if pid == 0 {
		return 0, nil
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	return parseResident(data)
}

func parseResident(status []byte) (int64, error) {
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == "VmRSS:" {
			kib, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no VmRSS among %d bytes of status", len(status))
}

// readyAt is when the workload's last wake was proved ready.
func readyAt(ctx context.Context, cfg Config) (time.Time, error) {
	address := cfg.Admin + "/api/v1/wakes?limit=1&workload=" + url.QueryEscape(cfg.Workload)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return time.Time{}, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	defer res.Body.Close()
	var list struct {
		Wakes []struct {
			ReadyAt time.Time `json:"ready_at"`
		} `json:"wakes"`
	}
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", address, err)
	}
	if len(list.Wakes) == 0 || list.Wakes[0].ReadyAt.IsZero() {
		return time.Time{}, fmt.Errorf("%s: no wake that became ready", address)
	}
	return list.Wakes[0].ReadyAt, nil
}
