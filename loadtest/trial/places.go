//go:build linux

package trial

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Places are the CPUs of each part. Where there are none, it runs anywhere.
type Places struct {
	// Known tells that the processes of both sides are known.
	Known     bool  `json:"processes_known"`
	Generator []int `json:"generator_cpus"`
	// Server and Proxy are only set where their processes are known.
	Server []int `json:"server_cpus"`
	Proxy  []int `json:"proxy_cpus"`
	// Failed says why a process could not be pinned.
	Failed []string `json:"failed,omitempty"`

	pins []pinned
}

// A pinned is a process and where it is to run.
type pinned struct {
	pid  int
	cpus []int
}

// arrange gives the generator a CPU of its own, the server one, and the
// proxy the rest. Of two, the proxy has one for itself: what shares the
// other is the same in both lanes.
func arrange(cfg Config) Places {
	p := Places{Known: len(cfg.Direct.PIDs) > 0 && len(cfg.Routed.PIDs) > 0}
	cpus := allowedCPUs(0)
	if cfg.Unpinned || len(cpus) < 2 {
		return p
	}
	p.Generator = cpus[:1]
	if !p.Known {
		return p
	}
	p.Server, p.Proxy = cpus[:1], cpus[1:]
	if len(cpus) > 2 {
		p.Server, p.Proxy = cpus[1:2], cpus[2:]
	}
	for _, pid := range cfg.Direct.PIDs {
		p.pins = append(p.pins, pinned{pid, p.Server})
	}
	for _, pid := range cfg.Routed.PIDs {
		if !slices.Contains(cfg.Direct.PIDs, pid) {
			p.pins = append(p.pins, pinned{pid, p.Proxy})
		}
	}
	return p
}

// pin moves the processes, and gives what moves them back.
func (p *Places) pin() (restore func()) {
	var before []pinned
	for _, one := range p.pins {
		before = append(before, pinned{one.pid, allowedCPUs(one.pid)})
		if err := place(one); err != nil {
			p.Failed = append(p.Failed, err.Error())
		}
	}
	return func() {
		for _, one := range before {
			if len(one.cpus) > 0 {
				_ = place(one) // it may have ended
			}
		}
	}
}

// place moves all threads of a process; those to come are where the one that
// makes them is.
func place(p pinned) error {
	set := cpuSet(p.cpus)
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.pid))
	for _, task := range tasks {
		tid, err := strconv.Atoi(filepath.Base(task))
		if err == nil {
			err = unix.SchedSetaffinity(tid, &set)
		}
		if err != nil && err != unix.ESRCH {
			return fmt.Errorf("pin process %d to CPUs %v: %w", p.pid, p.cpus, err)
		}
	}
	return nil
}

// realTime tells whether one of the processes, or this one, has a real-time
// priority. A program that began on more CPUs than it is moved to may wait
// for its own threads by spinning; at such a priority nothing on its CPU
// would ever run again.
func realTime(pids []int) bool {
	for _, pid := range append([]int{0}, pids...) {
		attr, err := unix.SchedGetAttr(pid, 0)
		if err == nil && (attr.Policy == unix.SCHED_FIFO || attr.Policy == unix.SCHED_RR) {
			return true
		}
	}
	return false
}

func cpuSet(cpus []int) unix.CPUSet {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return set
}

// allowedCPUs of a process, 0 for this thread.
func allowedCPUs(pid int) []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(pid, &set) != nil {
		return nil
	}
	var cpus []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
