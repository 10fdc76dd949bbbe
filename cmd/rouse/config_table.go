package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// configTable binds every key of the file to its place in c. It is the one
// list of them: reading, showing, the schema and the variables of the
// environment all follow it.
func configTable(c *Config) strict.Table {
	table := strict.Table{
		{Name: "listen", Doc: "Address for traffic; HTTP/1.1 and h2c on one port.", Value: strict.One(&c.Listen, strict.Text(listenAddress))},
		{Name: "tls.cert", Doc: "File of the certificate chain; with it HTTP/2 is spoken by ALPN.", Value: strict.One(&c.TLS.Cert, strict.Text(nil))},
		{Name: "tls.key", Doc: "File of its private key.", Value: strict.One(&c.TLS.Key, strict.Text(nil))},
		{Name: "tls.certificates", Doc: "More certificates, each for the names that are in it; as text, cert=key.", Value: certificatesValue(&c.TLS.Certificates)},
		{Name: "tls.redirect", Doc: "Address in cleartext that sends clients to HTTPS; empty for none.", Value: strict.One(&c.TLS.Redirect, strict.Text(optional(listenAddress)))},
		{Name: "lean", Doc: "Whether plain requests over HTTP/1.1 in cleartext are served by code of the router's own instead of net/http, which serves all others.", Value: strict.One(&c.Lean, strict.Bool())},
		{Name: "admin.listen", Doc: "Address for the API, metrics and dashboard; one that is not loopback needs a token.", Value: strict.One(&c.Admin.Listen, strict.Text(listenAddress))},
		{Name: "admin.token_file", Doc: "File of the token that the API asks for.", Value: strict.One(&c.Admin.TokenFile, strict.Text(nil))},
		{Name: "trusted_proxies", Doc: "Networks whose X-Forwarded-* and Forwarded are kept.", Value: strict.Many(&c.TrustedProxies, strict.List, strict.Prefix())},
		{Name: "nats.url", Doc: "NATS servers, separated by commas; empty runs an embedded one.", Value: strict.One(&c.NATS.URL, strict.Text(natsURL))},
		{Name: "nats.creds", Doc: "File of the credentials for them.", Value: strict.One(&c.NATS.Creds, strict.Text(nil))},
		{Name: "nats.store_dir", Doc: "Directory of what must outlive the process: the embedded server's streams, records and logs of processes.", Value: strict.One(&c.NATS.StoreDir, strict.Text(filled))},
		{Name: "nats.listen", Doc: "Address at which the embedded server serves other nodes; empty for none.", Value: strict.One(&c.NATS.Listen, strict.Text(optional(listenAddress)))},
		{Name: "nats.sync_always", Doc: "Whether the embedded server has every write on the disk before it counts.", Value: strict.One(&c.NATS.SyncAlways, strict.Bool())},
		{Name: "nats.replicas", Doc: "Copies of each stream and bucket in the NATS cluster.", Value: strict.One(&c.NATS.Replicas, strict.Int(1, 5))},
		{Name: "docker.host", Doc: "Address of the Docker engine; empty for none.", Value: strict.One(&c.Docker.Host, strict.Text(optional(dockerHost)))},
		{Name: "docker.label_prefix", Doc: "First part of the labels that describe workloads.", Value: strict.One(&c.Docker.LabelPrefix, strict.Text(labelPrefix))},
		{Name: "docker.address", Doc: "Which address of a container is dialled: its own, its published port, or auto for its own where it can be reached.", Value: strict.One(&c.Docker.Address, strict.Enum(addressAuto, addressContainer, addressPublished))},
		{Name: "sablier.listen", Doc: "Address of the API that Sablier's proxy plugins call; empty for none.", Value: strict.One(&c.Sablier.Listen, strict.Text(optional(listenAddress)))},
		{Name: "compat", Doc: "Other products whose labels are read too: sablier.", Value: strict.Many(&c.Compat, strict.List, strict.Enum(compatSablier))},
		{Name: "node", Doc: "Name of this scaler's reach, unique over all scalers.", Value: strict.One(&c.Node, strict.Text(workload.ValidName))},
		{Name: "gateway", Doc: "Name of this gateway, unique over all; empty makes one from the name of the host.", Value: strict.One(&c.Gateway, strict.Text(optional(workload.ValidName)))},
	}
	for _, k := range catalog.Defaults(&c.Defaults) {
		k.Name = "defaults." + k.Name
		table = append(table, k)
	}
	table = append(table, behaviourTable(c)...)
	table = append(table, strict.Key{Name: "webhooks", Doc: "Receivers that events are sent to, in the way of Standard Webhooks.", Value: webhooksValue(&c.Webhooks)})
	return append(table, strict.Key{Name: "workloads", Doc: "Workloads, or settings that go before the labels of their containers.", Value: workloadsValue(c)})
}

// behaviourTable has the keys that say how much is done, and what is told.
func behaviourTable(c *Config) strict.Table {
	return strict.Table{
		{Name: "limits.queue_requests", Doc: "Most requests held for one workload.", Value: strict.One(&c.Limits.QueueRequests, strict.Int(1, math.MaxInt32))},
		{Name: "limits.queue_bytes", Doc: "Most memory for the requests held for one workload.", Value: strict.One(&c.Limits.QueueBytes, strict.Size(1))},
		{Name: "limits.wakes_per_minute", Doc: "Most cold starts of one workload in a minute; 0 for no limit.", Value: strict.One(&c.Limits.WakesPerMinute, strict.Int(0, math.MaxInt32))},
		{Name: "limits.wakes_per_client", Doc: "Most cold starts that one client may cause in a minute, over all workloads; 0 for no limit.", Value: strict.One(&c.Limits.WakesPerClient, strict.Int(0, math.MaxInt32))},
		{Name: "limits.starts_in_parallel", Doc: "Most workloads that are started at the same time; twice the cores is a good number.", Value: strict.One(&c.Limits.StartsInParallel, strict.Int(1, 1000))},
		{Name: "limits.lost_gateway_after", Doc: "How long a gateway that went silent without a goodbye keeps everything awake: it may have been cut off from NATS and be serving still.", Value: strict.One(&c.Limits.LostGatewayAfter, strict.Duration(workload.Gone))},
		{Name: "limits.release_concurrency", Doc: "Held requests sent at once to a workload that has just woken; 0 begins with a few and grows while answers come.", Value: strict.One(&c.Limits.ReleaseConcurrency, strict.Int(0, math.MaxInt32))},
		{Name: "limits.body_timeout", Doc: "Longest time in which a client has to send the next 4 KiB of a body whose length it said; then it gets 408.", Value: strict.One(&c.Limits.BodyTimeout, strict.Duration(time.Millisecond))},
		{Name: "limits.write_timeout", Doc: "Longest time that a client may leave unread what is sent to it; then its connection or stream is closed.", Value: strict.One(&c.Limits.WriteTimeout, strict.Duration(time.Millisecond))},
		{Name: "limits.connections", Doc: "Most connections for traffic at once; 0 for no limit.", Value: strict.One(&c.Limits.Connections, strict.Int(0, math.MaxInt32))},
		{Name: "limits.connections_per_client", Doc: "Most of them from one client that is none of trusted_proxies; 0 for no limit.", Value: strict.One(&c.Limits.ConnectionsPerClient, strict.Int(0, math.MaxInt32))},
		{Name: "no_wake.prefetch", Doc: "Whether prefetches of browsers neither wake nor keep awake.", Value: strict.One(&c.NoWake.Prefetch, strict.Bool())},
		{Name: "no_wake.methods", Doc: "Methods that neither wake nor keep awake.", Value: strict.Many(&c.NoWake.Methods, strict.List, methodCodec())},
		{Name: "no_wake.paths", Doc: "Path prefixes that neither wake nor keep awake.", Value: strict.Many(&c.NoWake.Paths, strict.List, pathCodec())},
		{Name: "no_wake.user_agents", Doc: "Parts of User-Agent that neither wake nor keep awake.", Value: strict.Many(&c.NoWake.UserAgents, strict.List, strict.Text(filled))},
		{Name: "no_wake.answer", Doc: "Status that such a request gets while the workload sleeps.", Value: strict.One(&c.NoWake.Answer, strict.Int(200, 599))},
		{Name: "waiting_page.template", Doc: "File of a template in place of the built-in waiting page; empty for none.", Value: strict.One(&c.WaitingPage.Template, strict.Text(nil))},
		{Name: "log.level", Doc: "Least severity that is logged.", Value: strict.One(&c.Log.Level, strict.Enum(levelDebug, levelInfo, levelWarn, levelError))},
		{Name: "log.format", Doc: "Form of the log on stderr.", Value: strict.One(&c.Log.Format, strict.Enum(formatText, formatJSON))},
		{Name: "access_log.format", Doc: "Form in which each request is logged; off logs none.", Value: strict.One(&c.AccessLog.Format, strict.Enum(accessOff, accessJSON, accessLogfmt, accessCLF))},
		{Name: "access_log.percent", Doc: "How many of a hundred ordinary requests are logged: of those to a workload that was awake with a status below 400. All others are.", Value: strict.One(&c.AccessLog.Percent, strict.Int(1, 100))},
		{Name: "tracing.endpoint", Doc: "URL of a collector that takes OpenTelemetry traces by OTLP over HTTP; env takes that of OTEL_EXPORTER_OTLP_ENDPOINT, empty sends none.", Value: strict.One(&c.Tracing.Endpoint, strict.Text(optional(collectorURL)))},
		{Name: "tracing.sample", Doc: "Part of the traces that begin here which is kept, from 0 to 1; those that began elsewhere are kept if they are there.", Value: strict.One(&c.Tracing.Sample, strict.Part())},
	}
}

// workloadsValue reads the list of workloads, each with a table of its own.
func workloadsValue(c *Config) strict.Value {
	item := entryTable().Schema()
	item["required"] = []string{"name"}
	return strict.Value{
		Shape:  strict.Opaque,
		Schema: map[string]any{"type": "array", "items": item},
		Node: func(file string, node *yaml.Node) []strict.Problem {
			entries, wrong := catalog.Entries(file, node)
			c.Workloads = entries
			return wrong
		},
	}
}

// certificatesValue reads pairs of files, each a mapping or cert=key.
func certificatesValue(pairs *[]CertificatePair) strict.Value {
	v := strict.Many(pairs, strict.List, strict.Codec[CertificatePair]{
		Parse: func(s string) (CertificatePair, error) {
			cert, key, ok := strings.Cut(s, "=")
			if !ok || cert == "" || key == "" {
				return CertificatePair{}, &strict.Wrong{Message: fmt.Sprintf("%q is not a certificate and its key", s), Fix: "write { cert: FILE, key: FILE }"}
			}
			return CertificatePair{cert, key}, nil
		},
		Format: func(p CertificatePair) string { return p.Cert + "=" + p.Key },
		Schema: map[string]any{"type": "string", "pattern": "^.+=.+$"},
	})
	v.Parts = []string{"cert", "key"}
	return v
}

func pathCodec() strict.Codec[string] {
	c := strict.Text(nil)
	c.Parse = catalog.NormalPath
	c.Schema = map[string]any{"type": "string", "pattern": "^/"}
	return c
}

func methodCodec() strict.Codec[string] {
	c := strict.Text(nil)
	c.Parse = func(s string) (string, error) {
		if s == "" || strings.Trim(strings.ToUpper(s), "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
			return "", &strict.Wrong{Message: fmt.Sprintf("%q is not a method", s), Fix: "write HEAD, OPTIONS, PROPFIND"}
		}
		return strings.ToUpper(s), nil
	}
	return c
}
