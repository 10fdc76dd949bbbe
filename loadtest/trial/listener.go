//go:build linux

package trial

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Listeners finds the processes of this machine that listen on the port of an
// address of this machine's; none: it is another machine's, in a container's
// network, or not ours to see.
func Listeners(address string) []int {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !isLocal(host) {
		return nil
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil
	}
	sockets := map[string]bool{} // link of a descriptor -> it is one
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table) // without IPv6 there is no tcp6
		for _, inode := range listening(text, number) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	return holders(sockets)
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() {
		return true
	}
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.IP.Equal(ip) {
			return true
		}
	}
	return false
}

// listening reads /proc/net/tcp: the inodes of what listens on the port.
func listening(table []byte, port int) []string {
	const listen = "0A"
	var inodes []string
	for line := range bytes.Lines(table) {
		fields := strings.Fields(string(line))
		if len(fields) > 9 && fields[3] == listen && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}

func holders(sockets map[string]bool) []int {
	var pids []int
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, descriptor := range descriptors {
		link, err := os.Readlink(descriptor)
		if err != nil || !sockets[link] {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(descriptor, "/")[2])
		if err == nil && (len(pids) == 0 || pids[len(pids)-1] != pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}
