//go:build linux

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A record tells the next runtime what runs. The group has the number of its
// leader.
type record struct {
	Workload string `json:"workload"`
	PID      int    `json:"pid"`
	// Start is the kernel's start time, in clock ticks after the boot; with
	// PID and Boot it names a process for ever.
	Start     uint64        `json:"start"`
	Boot      string        `json:"boot"`
	Port      int           `json:"port"`
	StartedAt time.Time     `json:"started_at"`
	Command   []string      `json:"command"`
	Grace     time.Duration `json:"grace_ns"` // its stop timeout
}

const recordSuffix = ".json"

func recordPath(dir, name string) string { return filepath.Join(dir, name+recordSuffix) }

// save writes the record as a whole or not at all.
func (rec record) save(dir string) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("write record of %s: %w", rec.Workload, err)
	}
	path := recordPath(dir, rec.Workload)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

func loadRecord(dir, name string) (record, error) {
	rec := record{Workload: name}
	data, err := os.ReadFile(recordPath(dir, name))
	if err != nil {
		return rec, fmt.Errorf("read record: %w", err)
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return record{Workload: name}, fmt.Errorf("read record of %s: %w", name, err)
	}
	if rec.Workload != name || rec.PID <= 1 {
		return record{Workload: name}, fmt.Errorf("the record of %s is not its own", name)
	}
	return rec, nil
}

// removeRecord forgets what has ended, unless the record is another's by now.
func removeRecord(dir string, rec record) {
	if now, err := loadRecord(dir, rec.Workload); err == nil && (now.PID != rec.PID || now.Start != rec.Start) {
		return
	}
	_ = os.Remove(recordPath(dir, rec.Workload)) // what stays is not believed
}

// recorded lists the workloads that have a record.
func recorded(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), recordSuffix); ok && workload.ValidName(name) == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

var errOther = errors.New("its number belongs to another process now")

// verify reports, as an error, that the recorded process does not run.
func (rec record) verify() error {
	if boot, err := bootID(); err != nil {
		return err
	} else if boot != rec.Boot {
		return errors.New("the machine was booted since")
	}
	st, err := readStat(rec.PID)
	switch {
	case err != nil:
		return err
	case st.start != rec.Start:
		return errOther
	case st.dead():
		return errors.New("it has ended")
	}
	return nil
}

// bootID names the time from this boot to the next.
func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
