//go:build linux

package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"github.com/rouse-dev/rouse/workload"
)

// host is where every process is dialled.
const host = "127.0.0.1"

// Free ports are taken from below those that the kernel gives to outgoing
// connections, which could take a port between its choice and its use.
const (
	lowPort, highPort = 20000, 32000
	portTries         = 200
)

// port gives the wanted port if nothing listens on it, or for 0 a free one
// that no other process of this runtime has.
func (r *Runtime) port(wanted int) (int, error) {
	if wanted != 0 {
		if !r.reserve(wanted) {
			return 0, startError(workload.ReasonStartError, fmt.Sprintf("port %d belongs to another workload that runs", wanted))
		}
		if !free(wanted) {
			r.release(wanted)
			return 0, startError(workload.ReasonStartError, fmt.Sprintf("port %d is in use by another program", wanted))
		}
		return wanted, nil
	}
	for range portTries {
		port := lowPort + rand.IntN(highPort-lowPort)
		if !r.reserve(port) {
			continue
		}
		if free(port) {
			return port, nil
		}
		r.release(port)
	}
	return 0, startError(workload.ReasonStartError, fmt.Sprintf("no free port found from %d to %d", lowPort, highPort))
}

// free reports that nothing listens on the port.
func free(port int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// reserve takes the port, until release or the end of its process. It reports
// false if another process has it, which may not listen yet.
func (r *Runtime) reserve(port int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ports[port] {
		return false
	}
	r.ports[port] = true
	return true
}

func (r *Runtime) release(port int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ports, port)
}
