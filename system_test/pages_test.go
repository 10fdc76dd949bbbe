package system_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	loadburst "github.com/rouse-dev/rouse/loadtest/burst"
)

// plain builds rouse without the race detector, which knows no more than 8,128
// goroutines.
func plain(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "rouse")
	out, err := exec.Command("go", "build", "-trimpath", "-o", program, "../cmd/rouse").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// resident is the memory of a process, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	n, err := loadburst.Resident(pid)
	require.NoError(t, err)
	return n
}

func TestTenThousandWaitingPages(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "go")
	script := fmt.Sprintf("until [ -e %s ]; do sleep 0.1; done; exec %s mimic --listen 127.0.0.1:{port}", gate, binary(t, "loadtest"))
	n := start(t, plan{role: "up", dir: t.TempDir(), program: plain(t), config: fmt.Sprintf(`
docker: { host: "" }
workloads:
  - name: wiki
    host: [wiki.test]
    wake_timeout: 3m
    process: { command: [sh, -c, %q] }
`, script)})
	before := resident(t, n.cmd.Process.Pid)
	conns := make([]net.Conn, 10_000)
	address := strings.TrimPrefix(n.traffic, "http://")
	for i := range conns {
		conn, err := net.DialTimeout("tcp", address, patience)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprint(conn, "GET /.rouse/status?workload=wiki HTTP/1.1\r\nHost: wiki.test\r\nAccept: text/event-stream\r\n\r\n")
		require.NoError(t, err)
		conns[i] = conn
	}
	until := func(conn net.Conn, wanted string) {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		for lines := bufio.NewReader(conn); ; {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			if strings.Contains(line, wanted) {
				return
			}
		}
	}
	for _, conn := range conns {
		until(conn, "event: progress")
	}
	v, err := n.view("wiki")
	require.NoError(t, err)
	assert.Equal(t, 1, v.Queued, "they share one place in the queue")
	each := (resident(t, n.cmd.Process.Pid) - before) / int64(len(conns))
	t.Logf("memory of an open page: %d bytes", each)
	assert.Less(t, each, int64(64<<10))
	used := cpuOf(t, n.cmd.Process.Pid)
	time.Sleep(2 * time.Second)
	t.Logf("%d open pages use %.1f %% of a core", len(conns), float64((cpuOf(t, n.cmd.Process.Pid)-used).Milliseconds())/20)
	held := make(chan answer, 1)
	go func() { held <- n.get("wiki.test", "/") }()

	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	for _, conn := range conns {
		until(conn, "event: ready")
	}
	assert.Equal(t, 200, (<-held).status)
	v = n.waitPhase("wiki", "ready")
	assert.EqualValues(t, 1, v.ColdStarts)
}

// cpuOf is the time on processors that a process has had: fields 14 and 15 of
// proc(5)'s stat, in hundredths of a second.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
