package catalog

import (
	"fmt"
	"math"
	"net/url"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// Fields binds every setting that a label and an entry share to its place in
// w. The names are the file's; a label has '-' where they have '_'.
func Fields(w *workload.Workload) strict.Table {
	table := strict.Table{
		{Name: "host", Doc: "Host names that lead here, each exact or with one leading wildcard label.", Value: strict.Many(&w.Hosts, strict.List, hostCodec())},
		{Name: "path", Doc: "Path prefix that leads here, cut at a segment; the longest one wins.", Value: strict.One(&w.Path, pathCodec())},
		{Name: "port", Doc: "Port that the workload listens on; by default the only exposed one, for a process a free one.", Value: strict.One(&w.Port, strict.Int(1, math.MaxUint16))},
		{Name: "network", Doc: "Container network whose address is dialled; by default the only one.", Value: strict.One(&w.Network, strict.Text(filled))},
	}
	table = append(table, Defaults(w)...)
	return append(table, strict.Table{
		{Name: "group", Doc: "Names under which several workloads are woken together.", Value: strict.Many(&w.Groups, strict.List, strict.Text(workload.ValidName))},
		{Name: "depends_on", Doc: "Workloads that are woken first; by default those of compose's depends_on.", Value: strict.Many(&w.DependsOn, strict.List, strict.Text(workload.ValidName))},
		{Name: "conflicts_with", Doc: "Workloads that it never runs beside, such as another model for the same GPU; each of the two makes way for the other.", Value: strict.Many(&w.ConflictsWith, strict.List, strict.Text(workload.ValidName))},
		{Name: "keep_warm", Doc: "Times at which it is kept awake: Mon-Fri 08:00-18:00.", Value: strict.One(&w.KeepWarm, strict.Text(windows))},
		{Name: "no_wake", Doc: "Path prefixes whose requests neither wake it nor keep it awake.", Value: strict.Many(&w.NoWake, strict.List, pathCodec())},
		{Name: "wake_allow", Doc: "Client networks that may wake it; by default all.", Value: strict.Many(&w.WakeAllow, strict.List, strict.Prefix())},
		{Name: "strategy", Doc: "How a replica is chosen among several: least-inflight, fastest or round-robin.", Value: strict.One(&w.Strategy, strict.Enum(workload.StrategyLeastInFlight, workload.StrategyFastest, workload.StrategyRoundRobin))},
		{Name: "sticky", Doc: "Whether a client is sent, by a cookie, to the replica that it was sent to before.", Value: strict.One(&w.Sticky, strict.Bool())},
		{Name: "forward_auth", Doc: "URL of a service that is asked about each request before it may wake it or reach it: Authelia, oauth2-proxy.", Value: strict.One(&w.ForwardAuth, strict.Text(serviceURL))},
		{Name: "forward_auth_headers", Doc: "Headers of that service's answer that the workload gets; by default Remote-* and X-Auth-Request-*.", Value: strict.Many(&w.ForwardAuthHeaders, strict.List, strict.Text(headerName))},
		{Name: "queue_requests", Doc: "Most requests held for it; 0 takes limits.queue_requests.", Value: strict.One(&w.QueueRequests, strict.Int(0, math.MaxInt32))},
		{Name: "min", Doc: "Fewest replicas that stay awake: with 1 and more it never sleeps, with all its replicas; 0 lets it sleep.", Value: strict.One(&w.Min, strict.Int(0, maxReplicas))},
		{Name: "max", Doc: "Most replicas while awake; 0 means no limit.", Value: strict.One(&w.Max, strict.Int(0, maxReplicas))},
		{Name: "target_concurrency", Doc: "Requests in flight that one replica should carry; 0 means no limit.", Value: strict.One(&w.TargetConcurrency, strict.Int(0, math.MaxInt32))},
	}...)
}

const maxReplicas = 1000

// Defaults binds the settings that have a default of their own in the config
// file to their places in w.
func Defaults(w *workload.Workload) strict.Table {
	return strict.Table{
		{Name: "idle_timeout", Doc: "Time without a counted request after which it is put to sleep; 0 means never.", Value: strict.One(&w.IdleTimeout, strict.Duration(0))},
		{Name: "hold_timeout", Doc: "Longest time that one request is held.", Value: strict.One(&w.HoldTimeout, strict.Duration(time.Millisecond))},
		{Name: "wake_timeout", Doc: "Longest time from the wake to proven readiness; then the start is given up.", Value: strict.One(&w.WakeTimeout, strict.Duration(time.Millisecond))},
		{Name: "wait", Doc: "What a request meets while it sleeps: hold, the waiting page for a navigation, or auto for the page once page_after has passed.", Value: strict.One(&w.Wait, strict.Enum(workload.WaitAuto, workload.WaitHold, workload.WaitPage))},
		{Name: "page_after", Doc: "Time that a navigation is held before it gets the waiting page.", Value: strict.One(&w.PageAfter, strict.Duration(0))},
		{Name: "ready", Doc: "Proof of readiness: auto, tcp, http:/path or docker (its HEALTHCHECK).", Value: strict.One(&w.Ready, readyCodec())},
		{Name: "ready_after", Doc: "Time from the proof of readiness until it is believed, for what answers before it can do its work.", Value: strict.One(&w.ReadyAfter, strict.Duration(0))},
		{Name: "response_timeout", Doc: "Longest time from when a request has been sent to the head of its answer; 0 means no limit.", Value: strict.One(&w.ResponseTimeout, strict.Duration(0))},
		{Name: "request_timeout", Doc: "Longest time for a request and its answer, without the time it is held, and not for tunnels (WebSocket); 0 means no limit.", Value: strict.One(&w.RequestTimeout, strict.Duration(0))},
		{Name: "silence_timeout", Doc: "Longest time in which an answer that has begun, or a tunnel, carries nothing; 0 means no limit.", Value: strict.One(&w.SilenceTimeout, strict.Duration(0))},
		{Name: "stop", Doc: "How it is put to sleep: stop ends it, pause freezes it, throttle leaves it a twentieth of a CPU.", Value: strict.One(&w.Stop, strict.Enum(workload.StopStop, workload.StopPause, workload.StopThrottle))},
		{Name: "stop_timeout", Doc: "Grace between asking it to end and killing it.", Value: strict.One(&w.StopTimeout, strict.Duration(0))},
	}
}

func readyCodec() strict.Codec[workload.Readiness] {
	return strict.Codec[workload.Readiness]{
		Parse: func(s string) (workload.Readiness, error) {
			r, err := workload.ParseReadiness(s)
			if err != nil {
				return r, &strict.Wrong{Message: fmt.Sprintf("%q is not a proof of readiness", s), Fix: "use auto, tcp, docker or http:/path"}
			}
			return r, nil
		},
		Format: workload.Readiness.String,
		Schema: map[string]any{"type": "string", "pattern": `^(auto|tcp|docker|http:/.*)$`},
	}
}

func hostCodec() strict.Codec[string] {
	c := strict.Text(nil)
	c.Parse = NormalHost
	return c
}

func pathCodec() strict.Codec[string] {
	c := strict.Text(nil)
	c.Parse = NormalPath
	c.Schema = map[string]any{"type": "string", "pattern": "^/"}
	return c
}

// windows refuses times that cannot be read.
func windows(s string) error {
	if _, err := workload.ParseWindows(s); err != nil {
		return &strict.Wrong{Message: err.Error(), Fix: "write Mon-Fri 08:00-18:00, several separated by commas"}
	}
	return nil
}

// serviceURL refuses what no request can be sent to; empty is nobody.
func serviceURL(s string) error {
	u, err := url.Parse(s)
	if s == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil {
		return nil
	}
	return &strict.Wrong{Message: fmt.Sprintf("%q is not the URL of a service", s), Fix: "write http://authelia:9091/api/authz/forward-auth"}
}

// headerName refuses what is no name of a header.
func headerName(s string) error {
	if !httpguts.ValidHeaderFieldName(s) {
		return &strict.Wrong{Message: fmt.Sprintf("%q is not the name of a header", s), Fix: "write Remote-User"}
	}
	return nil
}

// filled refuses an empty text.
func filled(s string) error {
	if s == "" {
		return &strict.Wrong{Message: "it is empty", Fix: "give it a value, or leave it out"}
	}
	return nil
}
