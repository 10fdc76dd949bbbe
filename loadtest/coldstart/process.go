package coldstart

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a [Starter] of a program on this machine.
type Process struct {
	command []string
	running *exec.Cmd
}

// NewProcess takes the program and its arguments; {port} in them stands for
// a free port, on which it must listen.
func NewProcess(command []string) *Process { return &Process{command: command} }

// Start runs the program and asks it for an answer.
func (p *Process) Start(ctx context.Context) (times BareTimes, err error) {
	port, err := freePort(ctx)
	if err != nil {
		return times, err
	}
	args := make([]string, len(p.command))
	for i, arg := range p.command {
		args[i] = strings.ReplaceAll(arg, "{port}", port)
	}
	p.running = exec.Command(args[0], args[1:]...)
	times.Start = time.Now()
	if err := p.running.Start(); err != nil {
		p.running = nil
		return times, fmt.Errorf("start %s: %w", args[0], err)
	}
	times.Started = time.Now()
	return times, firstAnswer(ctx, net.JoinHostPort("127.0.0.1", port), &times)
}

// Stop terminates the program, and kills it when ctx ends first.
func (p *Process) Stop(ctx context.Context) error {
	if p.running == nil {
		return nil
	}
	program := p.running
	p.running = nil
	_ = program.Process.Signal(syscall.SIGTERM) // Wait tells if it was gone already
	defer context.AfterFunc(ctx, func() { _ = program.Process.Kill() })()
	var exit *exec.ExitError
	if err := program.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("stop %s: %w", program.Path, err)
	}
	return nil
}

func freePort(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), nil
}
