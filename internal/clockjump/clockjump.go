// Package clockjump sets the wall clock of one running Go process, and of
// nothing else on the machine: what a step of the clock does to a program can
// be seen on the program itself.
//
// Build makes a binary whose runtime adds a variable to the wall clock. Clock
// writes that variable in a process that runs, through /proc/PID/mem. The
// monotonic clock is not touched, as it is not by a real step: timers go on,
// and a time that carries a monotonic reading still compares by it.
//
// It works on Linux. Files of the Go distribution are read, and replaced in
// the build by an overlay; a version whose files look different is an error.
package clockjump

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// variable is what the runtime adds to the wall clock, in seconds.
const variable = "wallOffset"

// A patch is one edit of a file of package runtime.
type patch struct{ file, old, new string }

// patchFor is where time.Now reads the wall clock on an architecture.
func patchFor(arch string) patch {
	if arch == "amd64" {
		const read = "\tMOVQ\t16(SP), AX\t// realtime sec\n"
		return patch{"time_linux_amd64.s", read, read + "\tADDQ\truntime·" + variable + "(SB), AX\n"}
	}
	const read = "\tsec, nsec = walltime()\n"
	return patch{"timestub.go", read, read + "\tsec += " + variable + "\n"}
}

// Build builds the package pkg to the file out, with further arguments for go
// build. All of the standard library is built anew for it the first time,
// which takes a minute or two; later builds find it in Go's cache.
func Build(ctx context.Context, out, pkg string, args ...string) error {
	dir, err := os.MkdirTemp("", "clockjump-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(ctx, dir)
	if err != nil {
		return err
	}
	args = append([]string{"build", "-overlay", overlay, "-o", out}, args...)
	if said, err := exec.CommandContext(ctx, "go", append(args, pkg)...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, said)
	}
	return nil
}

func writeOverlay(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	sources := filepath.Join(strings.TrimSpace(string(root)), "src", "runtime")
	p := patchFor(runtime.GOARCH)
	text, err := os.ReadFile(filepath.Join(sources, p.file))
	if err != nil {
		return "", err
	}
	if strings.Count(string(text), p.old) != 1 {
		return "", fmt.Errorf("runtime/%s of %s reads the clock in another way than expected", p.file, runtime.Version())
	}
	patched := filepath.Join(dir, p.file)
	declared := filepath.Join(dir, variable+".go")
	overlay := filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(sources, p.file):         patched,
		filepath.Join(sources, variable+".go"): declared,
	}})
	return overlay, errors.Join(err,
		os.WriteFile(patched, []byte(strings.Replace(string(text), p.old, p.new, 1)), 0o600),
		os.WriteFile(declared, []byte("package runtime\n\nvar "+variable+" int64\n"), 0o600),
		os.WriteFile(overlay, replace, 0o600),
	)
}

// A Clock is the wall clock of one running process that Build has built.
type Clock struct {
	pid     int
	address int64
}

// Of finds the clock of a process.
func Of(pid int) (Clock, error) {
	program, err := elf.Open(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return Clock{}, err
	}
	defer program.Close()
	if program.Type != elf.ET_EXEC {
		return Clock{}, fmt.Errorf("process %d: its addresses are not fixed", pid)
	}
	symbols, err := program.Symbols()
	if err != nil {
		return Clock{}, fmt.Errorf("process %d: not built by clockjump: %w", pid, err)
	}
	for _, s := range symbols {
		if s.Name == "runtime."+variable {
			return Clock{pid, int64(s.Value)}, nil
		}
	}
	return Clock{}, fmt.Errorf("process %d: not built by clockjump", pid)
}

// Set makes the clock show the machine's time plus offset, in whole seconds;
// 0 is the machine's time again.
func (c Clock) Set(offset time.Duration) error {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", c.pid), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], uint64(offset/time.Second))
	_, err = memory.WriteAt(word[:], c.address)
	return errors.Join(err, memory.Close())
}
