package coldstart

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Engine speaks the Docker Engine API over its Unix socket.
type Engine struct{ client *http.Client }

// NewEngine takes the socket's address, as unix:///var/run/docker.sock.
func NewEngine(host string) (*Engine, error) {
	path, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		return nil, fmt.Errorf("docker host %q: only unix:// is understood", host)
	}
	var dialer net.Dialer
	return &Engine{&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		},
	}}}, nil
}

// Version is the engine's own, such as "28.5.2".
func (e *Engine) Version(ctx context.Context) (string, error) {
	var version struct{ Version string }
	err := e.call(ctx, http.MethodGet, "/version", &version)
	return version.Version, err
}

func (e *Engine) call(ctx context.Context, method, path string, out any) error {
	return callJSON(ctx, e.client, method, "http://docker"+path, out)
}

// Container is a [Starter] of an existing, stopped container that Rouse does
// not know. It must expose one port.
type Container struct {
	Engine *Engine
	Name   string
}

// Start asks the engine to start it, then the container for an answer. It
// does not dial before the engine has returned: the address is not up yet,
// and the first connect would come hundreds of milliseconds late.
func (c Container) Start(ctx context.Context) (times BareTimes, err error) {
	times.Start = time.Now()
	if err := c.Engine.call(ctx, http.MethodPost, c.path("start"), nil); err != nil {
		return times, err
	}
	times.Started = time.Now()
	address, err := c.address(ctx)
	if err != nil {
		return times, err
	}
	return times, firstAnswer(ctx, address, &times)
}

// Stop stops it, and kills it if that takes longer than ten seconds.
func (c Container) Stop(ctx context.Context) error {
	return c.Engine.call(ctx, http.MethodPost, c.path("stop?t=10"), nil)
}

func (c Container) path(verb string) string {
	return "/containers/" + url.PathEscape(c.Name) + "/" + verb
}

// inspected is what the engine says of a container, as far as it matters.
type inspected struct {
	Config struct {
		ExposedPorts map[string]struct{}
	}
	NetworkSettings struct {
		Networks map[string]struct{ IPAddress string }
	}
}

func (c Container) address(ctx context.Context) (string, error) {
	var container inspected
	if err := c.Engine.call(ctx, http.MethodGet, c.path("json"), &container); err != nil {
		return "", err
	}
	if len(container.Config.ExposedPorts) != 1 {
		return "", fmt.Errorf("container %s exposes %d ports, not one", c.Name, len(container.Config.ExposedPorts))
	}
	port := ""
	for exposed := range container.Config.ExposedPorts {
		port, _, _ = strings.Cut(exposed, "/")
	}
	for _, network := range container.NetworkSettings.Networks {
		if network.IPAddress != "" {
			return net.JoinHostPort(network.IPAddress, port), nil
		}
	}
	return net.JoinHostPort("127.0.0.1", port), nil // the host's network
}
