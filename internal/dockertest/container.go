package dockertest

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
)

// A Spec is what a container is created with. The zero value is a container
// of the sample workload on the default network that listens on Port at once.
type Spec struct {
	// Name must be unique on the engine; empty lets the engine make one up.
	Name   string
	Labels map[string]string // label -> value, whole keys
	// Cmd is the command; nil is "mimic" listening on Port.
	Cmd []string
	// Args are added to the command.
	Args []string
	// Entrypoint replaces the image's.
	Entrypoint  []string
	Healthcheck *container.HealthConfig
	// Network is a network's name, or host or none; empty is the default one.
	Network string
	// Restart is the restart policy: no, always, on-failure, unless-stopped.
	Restart string
	// Publish makes the engine publish Port on a free port of 127.0.0.1.
	Publish bool
	// HostPort is the host port to publish on instead of a free one.
	HostPort string
	TTY      bool
	// Memory limits it, in bytes; 0 is no limit.
	Memory     int64
	Binds      []string // folders of the host it sees, as "/host:/inside"
	AutoRemove bool
	// Expose are ports to expose beside the image's, as "9090/tcp".
	Expose []string
}

// Create makes a container, does not start it, and removes it by force when
// the test ends. It returns the container's ID.
func Create(t testing.TB, s Spec) string {
	t.Helper()
	c := Client(t)
	config := s.config(Image(t))
	created, err := c.ContainerCreate(context.Background(), config, s.host(), &network.NetworkingConfig{}, nil, s.Name)
	if err != nil {
		t.Fatalf("create container %s: %v", s.Name, err)
	}
	t.Cleanup(func() { Remove(t, created.ID) })
	return created.ID
}

// Remove removes a container by force. One that is gone already is no error.
func Remove(t testing.TB, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := Client(t).ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !strings.Contains(err.Error(), "No such container") && !strings.Contains(err.Error(), "already in progress") {
		t.Errorf("remove container %s: %v", id, err)
	}
}

// Network makes a bridge network of the given name and subnet (empty: the
// engine's choice), removed when the test ends: after the containers that are
// created later.
func Network(t testing.TB, name, subnet string) {
	t.Helper()
	c := Client(t)
	options := network.CreateOptions{Driver: "bridge", Labels: map[string]string{labelKey: runID()}}
	if subnet != "" {
		options.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}}
	}
	if _, err := c.NetworkCreate(context.Background(), name, options); err != nil {
		t.Fatalf("create network %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := c.NetworkRemove(context.Background(), name); err != nil && !strings.Contains(err.Error(), "not found") {
			t.Errorf("remove network %s: %v", name, err)
		}
	})
}

func (s Spec) config(image string) *container.Config {
	labels := map[string]string{labelKey: runID()}
	maps.Copy(labels, s.Labels)
	cmd := s.Cmd
	if cmd == nil {
		cmd = []string{"mimic"}
	}
	exposed := nat.PortSet{}
	for _, p := range s.Expose {
		exposed[nat.Port(p)] = struct{}{}
	}
	return &container.Config{
		Image: image, Labels: labels, Cmd: append(cmd[:len(cmd):len(cmd)], s.Args...),
		Entrypoint: s.Entrypoint, Healthcheck: s.Healthcheck, Tty: s.TTY, ExposedPorts: exposed,
	}
}

func (s Spec) host() *container.HostConfig {
	h := &container.HostConfig{
		Binds:         s.Binds,
		NetworkMode:   container.NetworkMode(s.Network),
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyMode(s.Restart)},
		AutoRemove:    s.AutoRemove,
		Resources:     container.Resources{Memory: s.Memory, MemorySwap: s.Memory},
	}
	if s.Publish || s.HostPort != "" {
		h.PortBindings = nat.PortMap{"8080/tcp": {{HostIP: "127.0.0.1", HostPort: s.HostPort}}}
	}
	return h
}
