package docker

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/docker/go-connections/nat"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

func TestLabelsAreReadWhateverTheirCase(t *testing.T) {
	s := sight(prefixes{"rouse."}, "id", "/blog", map[string]string{
		"Rouse.Enable": "true", "rouse.HOST": "a", "rouse.host": "b", "ROUSE.Idle-Timeout": " 5m\n",
		"rouse.path": "", "rouse": "x", "rousey.name": "x", "traefik.enable": "true",
	})
	require.Equal(t, "blog", s.Name)
	require.Equal(t, map[string]string{"enable": "true", "host": "b", "idle-timeout": " 5m\n", "path": ""}, s.Labels)
	require.True(t, s.Enabled())
}

func TestDependenciesAreReadFromCompose(t *testing.T) {
	require.Equal(t, []string{"db", "cache"}, dependencies("db:service_healthy:false,cache:service_started:true"))
	require.Equal(t, []string{"db"}, dependencies(" db ,, :x"))
	require.Empty(t, dependencies(""))
}

func TestAnAnswerWithMissingPartsIsRead(t *testing.T) {
	require.Zero(t, fromInspect(prefixes{"rouse."}, container.InspectResponse{}))
	r := fromInspect(prefixes{"rouse."}, container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{ID: "a"}})
	require.Equal(t, "a", r.ID)
	require.Empty(t, r.replicaID())
}

func TestPortsAreThoseOfTCP(t *testing.T) {
	require.Equal(t, []int{80, 8080, 9000}, ports(
		nat.PortSet{"8080/tcp": {}, "53/udp": {}, "80": {}},
		nat.PortMap{"9000/tcp": nil, "80/tcp": nil}))
}

func TestPublishedPortsPreferIPv4AndLeaveTheEngineOpen(t *testing.T) {
	require.Equal(t, map[int]string{80: ":32768", 81: "10.0.0.1:81", 82: "[::1]:82"}, published(nat.PortMap{
		"80/tcp": {{HostIP: "0.0.0.0", HostPort: "32768"}, {HostIP: "::", HostPort: "32769"}},
		"81/tcp": {{HostIP: "10.0.0.1", HostPort: "81"}},
		"82/tcp": {{HostIP: "::1", HostPort: "82"}},
		"53/udp": {{HostIP: "0.0.0.0", HostPort: "53"}},
	}))
}

func TestTheSummaryNamesAContainerAndNotItsLinks(t *testing.T) {
	s := fromSummary(prefixes{"rouse."}, container.Summary{
		ID: "a", Names: []string{"/web/db", "/db"}, State: stateRunning,
		NetworkSettings: &container.NetworkSettingsSummary{Networks: map[string]*network.EndpointSettings{
			"six": {GlobalIPv6Address: "fd00::2"}, "none": nil,
		}},
	})
	require.Equal(t, "db", s.Name)
	require.Equal(t, map[string]string{"six": "fd00::2", "none": ""}, s.networks)
}

func TestTheAddressIsThatOfTheRightNetworkAndPort(t *testing.T) {
	own, err := newAddressing(AddressContainer, "unix:///x")
	require.NoError(t, err)
	forwarded, err := newAddressing(AddressPublished, "unix:///x")
	require.NoError(t, err)
	remote, err := newAddressing(AddressAuto, "tcp://10.9.9.9:2376")
	require.NoError(t, err)
	two := record{sighting: sighting{networks: map[string]string{"p_back": "10.0.0.2", "a": "", "p_front": "fd00::2"}}}
	two.Name, two.Project, two.Ports = "web", "p", []int{80}
	two.published = map[int]string{80: ":32768", 81: "10.0.0.1:81"}
	labelled := two
	labelled.Labels = map[string]string{"network": "p_front"}
	host := record{hostNet: true}
	several := record{}
	several.Ports = []int{80, 81}

	for name, c := range map[string]struct {
		by      addressing
		rec     record
		w       workload.Workload
		address string
		problem string
	}{
		"first network with an address": {own, two, workload.Workload{}, "10.0.0.2:80", ""},
		"named network":                 {own, two, workload.Workload{Network: "p_front", Port: 81}, "[fd00::2]:81", ""},
		"compose's short name":          {own, two, workload.Workload{Network: "front"}, "[fd00::2]:80", ""},
		"network of the label":          {own, labelled, workload.Workload{}, "[fd00::2]:80", ""},
		"workload before label":         {own, labelled, workload.Workload{Network: "back"}, "10.0.0.2:80", ""},
		"not in that network":           {own, two, workload.Workload{Network: "x"}, "", `no address in the network "x" (it is in: a, p_back, p_front)`},
		"host network":                  {own, host, workload.Workload{Port: 80}, "127.0.0.1:80", ""},
		"host network elsewhere":        {remote, host, workload.Workload{Port: 80}, "10.9.9.9:80", ""},
		"no network":                    {own, record{}, workload.Workload{Port: 80}, "", "no address of its own in any network (it is in: none)"},
		"no port":                       {own, record{}, workload.Workload{}, "", "exposes no port"},
		"several ports":                 {own, several, workload.Workload{}, "", "exposes the ports 80, 81"},
		"published":                     {forwarded, two, workload.Workload{}, "127.0.0.1:32768", ""},
		"published on one interface":    {forwarded, two, workload.Workload{Port: 81}, "10.0.0.1:81", ""},
		"published elsewhere":           {remote, two, workload.Workload{}, "10.9.9.9:32768", ""},
		"not published":                 {forwarded, two, workload.Workload{Port: 82}, "", "does not publish port 82"},
	} {
		t.Run(name, func(t *testing.T) {
			address, _, err := c.by.of(c.rec, c.w)
			if c.problem != "" {
				require.ErrorContains(t, err, c.problem)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.address, address)
		})
	}
}

func TestAnEngineOutOfReachIsAddressedByItsPublishedPorts(t *testing.T) {
	a, err := newAddressing(AddressAuto, "unix:///x")
	require.NoError(t, err)
	a.learn(about{secluded: true})
	require.True(t, a.published.Load())

	a, err = newAddressing(AddressContainer, "unix:///x")
	require.NoError(t, err)
	a.learn(about{secluded: true})
	require.False(t, a.published.Load(), "it was told otherwise")
}

func TestLogsKeepTheOrderOfBothOutputs(t *testing.T) {
	var wire bytes.Buffer
	out, errs := stdcopy.NewStdWriter(&wire, stdcopy.Stdout), stdcopy.NewStdWriter(&wire, stdcopy.Stderr)
	for i, part := range []string{"one\n", "two\r\n", "thr", "ee\xff\n", "\n", "six"} {
		w := out
		if i%2 == 1 {
			w = errs
		}
		_, err := w.Write([]byte(part))
		require.NoError(t, err)
	}
	text, err := plain(&wire, false)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two", "three\uFFFD", "", "six"}, splitLines(text))
}

func TestTimesThatMeanNeverAreZero(t *testing.T) {
	require.True(t, parseTime("0001-01-01T00:00:00Z").IsZero())
	require.True(t, parseTime("soon").IsZero())
	require.True(t, parseTime("2026-01-02T03:04:05.678Z").Equal(time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)))
}

func TestHealthIsRead(t *testing.T) {
	require.Equal(t, scaler.HealthHealthy, parseHealth("healthy"))
	require.Equal(t, scaler.HealthNone, parseHealth("none"))
	require.False(t, checksHealth(&container.HealthConfig{Test: []string{"NONE"}}))
	require.True(t, checksHealth(&container.HealthConfig{Test: []string{"CMD", "true"}}))
}

func FuzzSight(f *testing.F) {
	f.Add("Rouse.Enable", "true", "db:service_healthy:false")
	f.Add("rouse.", "\x00", ",:,")
	f.Fuzz(func(t *testing.T, key, value, dependsOn string) {
		s := sight(prefixes{"rouse."}, "id", "/n", map[string]string{key: value, composeDependsOn: dependsOn})
		for own := range s.Labels {
			require.Equal(t, strings.ToLower(own), own)
		}
		for _, service := range s.DependsOn {
			require.NotEmpty(t, service)
			require.NotContains(t, service, ",")
		}
	})
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x03hi\n"), false)
	f.Add([]byte("plain\r\n"), true)
	f.Fuzz(func(t *testing.T, wire []byte, tty bool) {
		text, err := plain(bytes.NewReader(wire), tty)
		if err != nil {
			return
		}
		for _, l := range splitLines(text) {
			require.True(t, utf8.ValidString(l))
			require.NotContains(t, l, "\n")
		}
	})
}

func TestLabelsOfOtherProductsAreReadWholeAndOnlyWhereAskedFor(t *testing.T) {
	labels := map[string]string{
		"rouse.host": "a.b", "Sablier.Enable": "true", "sablier.group": "x", "SABLIER.GROUP": "y", "sablierx": "z", "traefik.enable": "true",
	}
	alone := sight(prefixes{"rouse."}, "id", "/blog", labels)
	require.Nil(t, alone.Foreign)
	require.False(t, alone.Enabled())
	both := sight(prefixes{"rouse.", "sablier."}, "id", "/blog", labels)
	require.Equal(t, map[string]string{"host": "a.b"}, both.Labels)
	require.Equal(t, map[string]string{"sablier.enable": "true", "sablier.group": "x"}, both.Foreign)
	require.True(t, both.Enabled())
	require.True(t, (&workload.Workload{Name: "blog"}).Selects(both.Container))
}
