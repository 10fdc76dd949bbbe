//go:build linux

package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// signalGroup sends a signal to every process of a group. One that has ended
// is no error.
func signalGroup(group int, sig unix.Signal) { _ = unix.Kill(-group, sig) }

// groupAlive reports that some process of the group has not ended. Zombies
// do not count: whoever has to reap them may never do so.
func groupAlive(group int) bool {
	if unix.Kill(-group, 0) == unix.ESRCH {
		return false
	}
	pids, err := pidsOf(group)
	return err != nil || len(pids) > 0
}

// pidsOf lists the processes of a group that have not ended.
func pidsOf(group int) ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if st, err := readStat(pid); err == nil && st.group == group && !st.dead() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// A stat is what /proc/PID/stat says of a process.
type stat struct {
	state byte
	group int
	start uint64 // clock ticks after boot
}

// dead reports that it has ended and waits to be reaped.
func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

// Places in /proc/PID/stat, counted from the state, which is the third: the
// second is the program's name and may hold anything, so counting begins
// after its last parenthesis.
const (
	statGroup = 2
	statStart = 19
)

func parseStat(data []byte) (stat, error) {
	i := bytes.LastIndexByte(data, ')')
	fields := bytes.Fields(data[i+1:])
	if i < 0 || len(fields) <= statStart || len(fields[0]) != 1 {
		return stat{}, fmt.Errorf("unreadable process status %q", data)
	}
	group, err := strconv.Atoi(string(fields[statGroup]))
	if err != nil {
		return stat{}, fmt.Errorf("read process group: %w", err)
	}
	start, err := strconv.ParseUint(string(fields[statStart]), 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("read process start time: %w", err)
	}
	return stat{fields[0][0], group, start}, nil
}
