//go:build linux

package trial

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/loadtest/coldstart"
)

// Manifest is what a number means nothing without. What cannot be found out
// is empty.
type Manifest struct {
	Version string `json:"version"`
	// Revision is the source's, with "+dirty" where it was changed.
	Revision string `json:"revision"`
	// Binary is the SHA-256 of the program.
	Binary  string            `json:"binary_sha256"`
	Command []string          `json:"command"`
	Machine coldstart.Machine `json:"machine"`
	// Limits of this process.
	OpenFiles   uint64            `json:"open_files"`
	CgroupCPU   string            `json:"cgroup_cpu_max"`
	Clock       string            `json:"clock_source"`
	Load        string            `json:"load_at_start"`
	Environment map[string]string `json:"environment"`
}

// NewManifest describes this program and this machine now.
func NewManifest(version string, command []string) Manifest {
	m := Manifest{
		Version: version, Revision: revision(), Binary: digestOfSelf(), Command: command,
		Machine:     coldstart.ThisMachine(),
		CgroupCPU:   read("/sys/fs/cgroup/cpu.max"),
		Clock:       read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Load:        read("/proc/loadavg"),
		Environment: map[string]string{},
	}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		m.OpenFiles = files.Cur
	}
	for _, name := range []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG"} {
		if value, set := os.LookupEnv(name); set {
			m.Environment[name] = value
		}
	}
	return m
}

func read(path string) string {
	text, _ := os.ReadFile(path) // not on every machine
	return strings.TrimSpace(string(text))
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	text := ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			text = setting.Value + text
		case setting.Key == "vcs.modified" && setting.Value == "true":
			text += "+dirty"
		}
	}
	return text
}

func digestOfSelf() string {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return ""
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil))
}
