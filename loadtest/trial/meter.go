//go:build linux

package trial

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// A Reading is what the machine did while a run was measured, in cores: 1 is
// one core busy all the time.
type Reading struct {
	// Foreign is work of neither the generator nor the processes compared;
	// below 0: not known, for want of their numbers.
	Foreign float64 `json:"foreign_cores"`
	// Steal is what the hypervisor took away.
	Steal float64 `json:"steal_cores"`
	// Generator and Compared are what is not foreign.
	Generator float64 `json:"generator_cores"`
	Compared  float64 `json:"compared_cores"`
	// Waiting is the share of the time in which something that could have
	// run had to wait for a CPU (/proc/pressure/cpu).
	Waiting float64 `json:"cpu_pressure"`
	// CPUs are those of the generator, as the kernel tells.
	CPUs []int `json:"generator_cpus"`
}

// A meter reads at the begin and at the end of what is measured.
type meter struct {
	ours, watched []int
	cpus          []int // that are looked at; none: all
	begin         sample
}

type sample struct {
	at            time.Time
	busy, steal   time.Duration // of all CPUs
	ours, watched time.Duration
	waiting       time.Duration
}

func newMeter(ours, watched []int) *meter { return &meter{ours: ours, watched: watched} }

func (m *meter) start() { m.begin = m.sample() }

func (m *meter) sample() sample {
	s := sample{at: time.Now(), ours: spent(m.ours), watched: spent(m.watched)}
	stat, _ := os.ReadFile("/proc/stat")
	s.busy, s.steal = parseStat(stat, m.cpus)
	pressure, _ := os.ReadFile("/proc/pressure/cpu") // not in every kernel
	s.waiting = parsePressure(pressure)
	return s
}

// stop gives what was done since start, and the CPU time of the watched.
func (m *meter) stop(generator time.Duration) (Reading, time.Duration) {
	end := m.sample()
	elapsed := end.at.Sub(m.begin.at)
	cores := func(d time.Duration) float64 { return d.Seconds() / max(elapsed, time.Microsecond).Seconds() }
	r := Reading{
		Steal: cores(end.steal - m.begin.steal), Generator: cores(generator),
		Compared: cores(end.ours - m.begin.ours), Waiting: cores(end.waiting - m.begin.waiting),
		Foreign: -1, CPUs: allowedCPUs(0),
	}
	if len(m.ours) > 0 {
		// Ticks of 10 ms are not exact: below 0 it is 0.
		r.Foreign = max(0, cores(end.busy-m.begin.busy)-r.Generator-r.Compared)
	}
	return r, end.watched - m.begin.watched
}

// userHz is the unit of /proc/stat, the same on every Linux that Go runs on.
const userHz = 100

// parseStat gives how long the CPUs were not idle and how long another
// machine had them; of some CPUs, or of all. What is not idle is exact, while
// user and system time are counted by ticks, which a load of an even rate can
// miss.
func parseStat(stat []byte, only []int) (busy, steal time.Duration) {
	for line := range bytes.Lines(stat) {
		fields := bytes.Fields(line)
		if len(fields) < 9 {
			continue
		}
		number, isCPU := bytes.CutPrefix(fields[0], []byte("cpu"))
		cpu, err := strconv.Atoi(string(number)) // the sum of all has no number
		if !isCPU || err != nil || len(only) > 0 && !slices.Contains(only, cpu) {
			continue
		}
		stolen := ticks(fields[8])
		busy += uptime() - ticks(fields[4]) - ticks(fields[5]) - stolen
		steal += stolen
	}
	return busy, steal
}

func ticks(field []byte) time.Duration {
	n, _ := strconv.ParseInt(string(field), 10, 64) // the kernel writes numbers
	return time.Duration(n) * time.Second / userHz
}

// uptime is a clock that runs as /proc/stat's does.
func uptime() time.Duration { return time.Since(processBegan) }

var processBegan = time.Now()

// parsePressure reads the total of "some", in microseconds.
func parsePressure(text []byte) time.Duration {
	_, rest, found := bytes.Cut(text, []byte("total="))
	if !found {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, _ := strconv.ParseInt(string(line), 10, 64) // the kernel writes numbers
	return time.Duration(n) * time.Microsecond
}

// spent is the CPU time of processes, to the nanosecond: that of their
// threads that still run.
func spent(pids []int) time.Duration {
	var sum time.Duration
	for _, pid := range pids {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, task := range tasks {
			text, _ := os.ReadFile(task) // gone: it has ended
			first, _, _ := bytes.Cut(text, []byte(" "))
			n, _ := strconv.ParseInt(string(first), 10, 64)
			sum += time.Duration(n)
		}
	}
	return sum
}
