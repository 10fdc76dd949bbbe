//go:build linux

package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// marker is in the environment of each process that a runtime starts, and
// says whose it is: the directory of the runtime and the workload. It is known
// with the process itself, where the record comes an instant later.
const marker = "ROUSE_PROCESS"

func mark(dir, name string) string { return marker + "=" + recordPath(dir, name) }

// recordLost records what runs and has no record: its runtime died in the
// instant between the start and the record.
func recordLost(dir string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("look for processes without a record: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		rec, ok := lost(dir, pid)
		if !ok {
			continue
		}
		if err := rec.save(dir); err != nil {
			return err
		}
	}
	return nil
}

// lost makes the record of a process of ours that has none.
func lost(dir string, pid int) (record, bool) {
	st, err := readStat(pid)
	if err != nil || st.group != pid || st.dead() {
		return record{}, false
	}
	env := words(pid, "environ")
	path, ours := strings.CutPrefix(valueOf(env, marker), dir+"/")
	name, named := strings.CutSuffix(path, recordSuffix)
	if !ours || !named {
		return record{}, false
	}
	if _, err := os.Stat(recordPath(dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return record{}, false
	}
	boot, err := bootID()
	port, errPort := strconv.Atoi(valueOf(env, "PORT"))
	return record{
		Workload: name, PID: pid, Start: st.start, Boot: boot, Port: port,
		StartedAt: time.Now().UTC().Round(0), Command: words(pid, "cmdline"),
	}, errors.Join(err, errPort) == nil
}

// words reads a list of the kernel's about a process; none if it is not ours
// to read.
func words(pid int, file string) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return nil
	}
	return strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00")
}

// valueOf gives the last value of a variable, as a program sees it: ours are
// behind those of the workload's description.
func valueOf(env []string, name string) (value string) {
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}
