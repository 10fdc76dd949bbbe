package enginetest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// destroy removes all that the engine ever was.
func (e *Engine) destroy() {
	if d := e.daemon; d != nil {
		e.Thaw()
		select {
		case <-d.ended:
		default:
			e.removeContainers()
			e.end(syscall.SIGTERM)
		}
	}
	e.endProcesses()
	e.unmount()
	if e.bridge != nil {
		e.bridge.remove()
	}
	if err := os.RemoveAll(e.dir); err != nil {
		e.t.Errorf("engine: %v", err)
	}
	if e.t.Failed() {
		return
	}
	if left := e.processes(); len(left) > 0 {
		e.t.Errorf("engine left processes behind: %v", left)
	}
}

func (e *Engine) removeContainers() {
	ids, err := e.docker("ps", "-aq")
	if err != nil || ids == "" {
		return // what is left is ended with the processes
	}
	_, _ = e.docker(append([]string{"rm", "-f", "-v"}, strings.Fields(ids)...)...)
}

// endProcesses kills what an engine that was killed left: containerd, shims,
// and what runs in its containers.
func (e *Engine) endProcesses() {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		pids := e.processes()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// processes lists those that name the engine's folder on their command line,
// and their children.
func (e *Engine) processes() []int {
	ours := map[int]bool{}
	parents := map[int]int{} // process -> parent
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(entry, "cmdline")) // it may have ended
		if bytes.Contains(line, []byte(e.dir+"/")) {
			ours[pid] = true
		}
		parents[pid] = parentOf(entry)
	}
	for range parents { // as deep as there are processes
		grown := false
		for pid, parent := range parents {
			if ours[parent] && !ours[pid] {
				ours[pid], grown = true, true
			}
		}
		if !grown {
			break
		}
	}
	delete(ours, os.Getpid())
	var pids []int
	for pid := range ours {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

func parentOf(entry string) int {
	stat, err := os.ReadFile(filepath.Join(entry, "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	var state string
	var parent int
	_, _ = fmt.Sscan(rest, &state, &parent) // 0 if it has another form
	return parent
}

// unmount takes down what is mounted below the engine's folder, the last
// mounted first.
func (e *Engine) unmount() {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return
	}
	defer f.Close()
	var points []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && strings.HasPrefix(fields[1], e.dir+"/") {
			points = append(points, fields[1])
		}
	}
	for _, point := range slices.Backward(points) {
		_ = syscall.Unmount(point, syscall.MNT_DETACH)
	}
}

// A bridge is the engine's network.
type bridge struct{ name string }

// newBridge makes one with a subnet that no interface of the machine has.
func newBridge() (*bridge, error) {
	free, err := alone()
	if err != nil {
		return nil, err
	}
	defer free()
	b := &bridge{name: fmt.Sprintf("rt%x", time.Now().UnixNano()&0xffffffffff)}
	used, err := exec.Command("ip", "-4", "-o", "addr").Output()
	if err != nil {
		return nil, fmt.Errorf("ip addr: %w", err)
	}
	for third := os.Getpid() % 256; ; third = (third + 1) % 256 {
		prefix := fmt.Sprintf("10.231.%d.", third)
		if bytes.Contains(used, []byte(" "+prefix)) {
			continue
		}
		for _, args := range [][]string{
			{"link", "add", b.name, "type", "bridge"},
			{"addr", "add", prefix + "1/24", "dev", b.name},
			{"link", "set", b.name, "up"},
		} {
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				b.remove()
				return nil, fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
			}
		}
		return b, nil
	}
}

// alone keeps other tests, in this process and in others, from choosing a
// subnet until free is called.
func alone() (free func(), err error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "rouse-enginetest.lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { _ = f.Close() }, nil
}

func (b *bridge) remove() { _ = exec.Command("ip", "link", "del", b.name).Run() }
