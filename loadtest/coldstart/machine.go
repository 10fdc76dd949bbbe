package coldstart

import (
	"bufio"
	"bytes"
	"os"
	"runtime"
	"strings"
)

// Machine is what a number means nothing without.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	// Engine is the version of the Docker engine; empty if none was asked.
	Engine string `json:"engine,omitempty"`
}

// ThisMachine reads the facts of the one it runs on; what it cannot find is
// empty.
func ThisMachine() Machine {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	return Machine{
		CPU:    cpuModel(cpus),
		Cores:  max(runtime.NumCPU(), processors(cpus)), // it may be kept to a few of them
		Kernel: strings.TrimSpace(string(kernel)),
		Go:     runtime.Version(),
	}
}

// processors counts them.
func processors(cpuinfo []byte) (n int) {
	for line := range bytes.Lines(cpuinfo) {
		if bytes.HasPrefix(line, []byte("processor")) {
			n++
		}
	}
	return n
}

func cpuModel(cpuinfo []byte) string {
	lines := bufio.NewScanner(bytes.NewReader(cpuinfo))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
