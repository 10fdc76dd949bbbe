package eventstest

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A Cluster is several servers that keep each stream together.
type Cluster struct {
	servers []*server.Server
	options []*server.Options // of each, with the port it was given
}

// StartCluster starts size servers on the loopback that end with the test.
// It returns before they have agreed on anything: Provision waits for that.
func StartCluster(t testing.TB, size int) *Cluster {
	t.Helper()
	ports := freePorts(t, size)
	var routes []string
	for _, port := range ports {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	c := &Cluster{}
	var dirs []string
	for range size {
		dirs = append(dirs, storeDir(t))
	}
	t.Cleanup(c.stop) // before their directories go
	for i, port := range ports {
		c.options = append(c.options, &server.Options{
			ServerName: fmt.Sprint("s", i), Host: "127.0.0.1", Port: server.RANDOM_PORT,
			NoLog: true, NoSigs: true, JetStream: true, StoreDir: dirs[i],
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port},
			Routes:  server.RoutesFromStr(strings.Join(routes, ",")),
		})
		c.servers = append(c.servers, c.run(t, i))
	}
	for i, s := range c.servers {
		if !s.ReadyForConnections(patience) {
			t.Fatal("cluster is not ready")
		}
		c.options[i].Port = s.Addr().(*net.TCPAddr).Port
	}
	return c
}

// run starts one server and does not wait for it.
func (c *Cluster) run(t testing.TB, i int) *server.Server {
	t.Helper()
	options := *c.options[i]
	s, err := server.NewServer(&options)
	if err != nil {
		t.Fatalf("cluster: %v", err)
	}
	go s.Start()
	return s
}

// URL has every server, and none that has ended.
func (c *Cluster) URL() string {
	var urls []string
	for _, s := range c.servers {
		if s.Running() {
			urls = append(urls, s.ClientURL())
		}
	}
	return strings.Join(urls, ",")
}

// StopLeader ends, in good order, the server that leads a stream.
func (c *Cluster) StopLeader(t testing.TB, stream string) {
	t.Helper()
	c.stopOne(t, stream, true)
}

// StopFollower ends one that does not, in good order.
func (c *Cluster) StopFollower(t testing.TB, stream string) {
	t.Helper()
	c.stopOne(t, stream, false)
}

func (c *Cluster) stopOne(t testing.TB, stream string, leading bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		led := false
		var found *server.Server
		for _, s := range c.servers {
			leads := s.Running() && s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream)
			led = led || leads
			if s.Running() && leads == leading {
				found = s
			}
		}
		if led && found != nil {
			found.Shutdown()
			found.WaitForShutdown()
			return
		}
	}
	t.Fatalf("stream %s has no leader", stream)
}

// StopMost ends all but one, in good order: what is left can agree on nothing.
func (c *Cluster) StopMost() {
	for _, s := range c.servers[1:] {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// Resume starts again, on their old ports and stores, those that have ended.
func (c *Cluster) Resume(t testing.TB) {
	t.Helper()
	for i, s := range c.servers {
		if s.Running() {
			continue
		}
		c.servers[i] = c.run(t, i)
		if !c.servers[i].ReadyForConnections(patience) {
			t.Fatal("server of the cluster is not ready again")
		}
	}
}

func (c *Cluster) stop() {
	for _, s := range c.servers {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// freePorts finds ports that are free now: the servers have to know each
// other's before they start.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatalf("free port: %v", err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatalf("free port: %v", err)
		}
		ports = append(ports, number)
	}
	return ports
}
