// Package proxytest runs the proxies that Rouse is compared with and stands
// behind, as Debian has them. They are installed by
// scripts/need-proxies. It is for tests alone.
package proxytest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A Proxy starts in front of upstreams. It ends with its test.
type Proxy func(upstreams ...string) Running

// Running is a proxy at work: one process.
type Running struct {
	Addr string
	PID  int
}

// Nginx is nginx as a plain reverse proxy; the test is skipped where there is
// none, and fails with CI=true.
func Nginx(t testing.TB) Proxy {
	t.Helper()
	find(t, "nginx")
	return func(upstreams ...string) Running {
		t.Helper()
		addr := freeAddr(t)
		return NginxWith(t, addr, fmt.Sprintf(`
upstream workload { %s keepalive 16; }
server {
  listen %s;
  location / { proxy_pass http://workload; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; }
}
`, lines("server %[2]s;", upstreams), addr))
	}
}

// NginxWith runs nginx with what stands in the http section; it listens at addr.
func NginxWith(t testing.TB, addr, http string) Running {
	t.Helper()
	program, dir := find(t, "nginx"), t.TempDir()
	conf := fmt.Sprintf(`
daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[2]s
}
`, dir, http)
	return run(t, addr, program, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", file(t, dir, "nginx.conf", conf))
}

// Haproxy is the same with haproxy.
func Haproxy(t testing.TB) Proxy {
	t.Helper()
	find(t, "haproxy")
	return func(upstreams ...string) Running {
		t.Helper()
		addr := freeAddr(t)
		return HaproxyWith(t, addr, fmt.Sprintf(`
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend in
  bind %s
  default_backend workload
backend workload
  option redispatch 1
  retries 3
%s
`, addr, lines("  server s%d %s", upstreams)))
	}
}

// HaproxyWith runs haproxy with its configuration; it listens at addr.
func HaproxyWith(t testing.TB, addr, conf string) Running {
	t.Helper()
	return run(t, addr, find(t, "haproxy"), "-db", "-f", file(t, t.TempDir(), "haproxy.cfg", conf))
}

// CaddyWith runs Caddy with these sites; it listens at addr.
func CaddyWith(t testing.TB, addr, sites string) Running {
	t.Helper()
	dir := t.TempDir()
	conf := fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n\tstorage file_system %s\n}\n%s", dir, sites)
	return run(t, addr, "env", "XDG_CONFIG_HOME="+dir, find(t, "caddy"), "run", "--adapter", "caddyfile", "--config", file(t, dir, "Caddyfile", conf))
}

// TraefikWith runs Traefik with its static configuration; it listens at addr.
// The test is skipped where there is none: Debian has no package of it.
func TraefikWith(t testing.TB, addr, static string) Running {
	t.Helper()
	program, err := exec.LookPath("traefik")
	if err != nil {
		t.Skip("there is no traefik, and no package of it")
	}
	return run(t, addr, program, "--configfile", file(t, t.TempDir(), "traefik.yaml", static))
}

// lines writes one line for each upstream, of its number and its address.
func lines(format string, upstreams []string) string {
	var b strings.Builder
	for i, u := range upstreams {
		fmt.Fprintf(&b, format+"\n", i, u)
	}
	return b.String()
}

func find(t testing.TB, name string) string {
	t.Helper()
	for _, place := range []string{name, filepath.Join("/usr/sbin", name)} {
		if path, err := exec.LookPath(place); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("there is no %s: scripts/need-proxies installs it", name)
	}
	t.Skipf("there is no %s: scripts/need-proxies installs it", name)
	return ""
}

func file(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// run starts a program and waits until it listens.
func run(t testing.TB, addr, program string, args ...string) Running {
	t.Helper()
	cmd := exec.Command(program, args...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		_ = log.Close()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 20*time.Second, 20*time.Millisecond, "%s does not listen: %s", program, log.Name())
	return Running{addr, cmd.Process.Pid}
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
