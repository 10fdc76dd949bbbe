package enginetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// A daemon is one run of dockerd.
type daemon struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// Resume starts the engine again on what it left, and returns when it
// answers.
func (e *Engine) Resume() {
	e.t.Helper()
	if err := e.launch(); err != nil {
		e.t.Fatalf("engine: %v", err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := e.docker("version"); err == nil {
			return
		}
		select {
		case <-e.daemon.ended:
			e.t.Fatalf("engine ended at its start:\n%s", e.log())
		default:
		}
	}
	e.t.Fatalf("engine does not answer:\n%s", e.log())
}

// launch runs dockerd under a thread that stays: the kernel ends the process
// when the thread that began it does.
func (e *Engine) launch() error {
	config := filepath.Join(e.dir, "daemon.json")
	text := fmt.Sprintf(`{"storage-driver": %q, "live-restore": %t}`, driver(), e.options.LiveRestore)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(e.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	e.forgetKilled()
	cmd := exec.Command("dockerd", "--config-file", config,
		"--data-root", filepath.Join(e.dir, "data"), "--exec-root", filepath.Join(e.dir, "exec"),
		"--pidfile", filepath.Join(e.dir, "pid"), "--host", e.Host(), "--bridge", e.bridge.name,
		"--iptables=false", "--ip-masq=false", "--ip-forward=false", "--userland-proxy=false")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	d := &daemon{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer log.Close()
		defer close(d.ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ends is the test's business
		}
	}()
	e.daemon = d
	return <-started
}

// forgetKilled removes what names the processes of an engine that was killed.
// Its containerd is killed with it, and until init has reaped that, which may
// be never, dockerd would take it for running.
func (e *Engine) forgetKilled() {
	for _, file := range []string{"pid", "exec/containerd/containerd.pid"} {
		_ = os.Remove(filepath.Join(e.dir, file)) // there is none after a clean end
	}
}

// driver is the machine's engine's storage driver: what works for it works
// here. Without an answer the engine chooses.
func driver() string {
	out, err := exec.Command("docker", "info", "--format", "{{.Driver}}").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Stop ends the engine in good order: without live restore its containers end
// first.
func (e *Engine) Stop() { e.t.Helper(); e.end(syscall.SIGTERM) }

// Kill ends the engine as a crash would. Its containers go on for now; without
// live restore they end when it is back.
func (e *Engine) Kill() { e.t.Helper(); e.end(syscall.SIGKILL) }

func (e *Engine) end(sig syscall.Signal) {
	e.t.Helper()
	_ = e.daemon.cmd.Process.Signal(sig)
	select {
	case <-e.daemon.ended:
	case <-time.After(patience):
		e.t.Fatalf("engine did not end within %s of %s:\n%s", patience, sig, e.log())
	}
}

// Freeze stops the engine's process in its tracks: connections are accepted by
// the kernel, and nothing answers.
func (e *Engine) Freeze() { _ = e.daemon.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets it go on.
func (e *Engine) Thaw() { _ = e.daemon.cmd.Process.Signal(syscall.SIGCONT) }

func (e *Engine) logFile() string { return filepath.Join(e.dir, "log") }

// log is the end of what it wrote.
func (e *Engine) log() string {
	text, _ := os.ReadFile(e.logFile()) // missing: it wrote nothing
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-30):], []byte("\n")))
}
