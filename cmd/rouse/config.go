package main

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/workload"
)

// Config is everything that a rouse process can be told, as one typed value.
// It comes from loadConfig, validated, and is not changed afterwards. How a
// setting is called, read and described is in configTable.
type Config struct {
	Listen         string // address for traffic
	TLS            TLSConfig
	Lean           bool // plain requests are served without net/http
	Admin          AdminConfig
	TrustedProxies []netip.Prefix
	NATS           NATSConfig
	Docker         DockerConfig
	Sablier        SablierConfig
	Compat         []compat
	Node           string // the scaler's reach
	Gateway        string // empty: made from the host's name
	// Defaults has the settings that a workload takes where neither its
	// labels nor its entry says otherwise.
	Defaults    workload.Workload
	Limits      LimitsConfig
	NoWake      NoWakeConfig
	WaitingPage WaitingPageConfig
	Log         LogConfig
	AccessLog   AccessLogConfig
	Webhooks    []WebhookConfig
	Tracing     TracingConfig
	// Workloads are the entries of the file.
	Workloads []catalog.Entry

	// File is where it was read from; empty if there is no file.
	File string
	// origins tells where each value came from; a key that is not in it has
	// its default.
	origins map[string]string // key -> place, variable or flag
}

// TLSConfig names the certificates for traffic; none means cleartext.
type TLSConfig struct {
	Cert, Key    string            // the first; both empty: none
	Certificates []CertificatePair // more
	Redirect     string            // address in cleartext from which clients are sent to HTTPS; empty: none
}

// A CertificatePair is two files.
type CertificatePair struct{ Cert, Key string }

// pairs are all of them, the default first.
func (c TLSConfig) pairs() []CertificatePair {
	if c.Cert == "" {
		return c.Certificates
	}
	return slices.Concat([]CertificatePair{{c.Cert, c.Key}}, c.Certificates)
}

// AdminConfig is where the API, metrics and dashboard listen.
type AdminConfig struct{ Listen, TokenFile string }

// NATSConfig says which server carries the events.
type NATSConfig struct {
	URL      string // empty: the embedded server
	Creds    string
	StoreDir string // of the embedded server, and of what must outlive a process
	Listen   string // where the embedded server listens; empty: nowhere
	Replicas int    // of each stream and bucket

	// SyncAlways has each write of the embedded server on the disk before it
	// is acknowledged.
	SyncAlways bool
}

// DockerConfig says which engine, and how its containers are reached.
type DockerConfig struct {
	Host        string
	LabelPrefix string
	Address     dockerAddress
}

// dockerAddress says which address of a container is dialled.
type dockerAddress string

const (
	addressAuto      dockerAddress = "auto"      // the container's own where it can be reached
	addressContainer dockerAddress = "container" // the container's own
	addressPublished dockerAddress = "published" // the published port
)

// SablierConfig is where the API for Sablier's proxy plugins listens; empty
// means nowhere.
type SablierConfig struct{ Listen string }

// A compat is another product whose labels are read too; its name is also
// their prefix.
type compat string

const compatSablier compat = "sablier"

// LimitsConfig bounds what one gateway holds and one scaler does at a time.
type LimitsConfig struct {
	QueueRequests        int
	QueueBytes           int64
	WakesPerMinute       int
	StartsInParallel     int
	WakesPerClient       int // 0: no bound
	LostGatewayAfter     time.Duration
	ReleaseConcurrency   int // 0: grows while answers come
	BodyTimeout          time.Duration
	WriteTimeout         time.Duration
	Connections          int // 0: no bound
	ConnectionsPerClient int // 0: no bound
}

// NoWakeConfig says which requests neither wake a workload nor keep it awake.
type NoWakeConfig struct {
	Prefetch   bool
	Methods    []string // upper case
	Paths      []string
	UserAgents []string
	Answer     int
}

// WaitingPageConfig says how the pages look that stand in for a workload.
type WaitingPageConfig struct {
	Template string // file of a theme; empty: the built-in page
}

// LogConfig says what is logged and how.
type LogConfig struct {
	Level  logLevel
	Format logFormat
}

type (
	logLevel     string
	logFormat    string
	accessFormat string
)

const (
	levelDebug logLevel = "debug"
	levelInfo  logLevel = "info"
	levelWarn  logLevel = "warn"
	levelError logLevel = "error"

	formatText logFormat = "text"
	formatJSON logFormat = "json"

	accessOff    accessFormat = "off"
	accessJSON                = accessFormat(router.LogJSON)
	accessLogfmt              = accessFormat(router.LogLogfmt)
	accessCLF                 = accessFormat(router.LogCLF)
)

// AccessLogConfig says whether each request is logged, and how.
type AccessLogConfig struct {
	Format  accessFormat
	Percent int // of ordinary requests
}

// WebhookConfig is who is told of events.
type WebhookConfig struct {
	Name       string // unique; by default the host of the URL
	URL        string
	SecretFile string
	Kinds      []workload.EventKind // empty: all
	Workloads  []string             // empty: all

	place string // where it is in the file
}

// TracingConfig says where spans are sent; an empty endpoint means nowhere.
type TracingConfig struct {
	Endpoint string  // or otlp.FromEnvironment
	Sample   float64 // of the traces that begin here
}

// defaultConfig is what holds where nobody said otherwise.
func defaultConfig() Config {
	return Config{
		Listen:         ":8080",
		Admin:          AdminConfig{Listen: "127.0.0.1:8081"},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		NATS:           NATSConfig{StoreDir: "./data", Replicas: 1},
		Docker:         DockerConfig{Host: "unix:///var/run/docker.sock", LabelPrefix: "rouse", Address: addressAuto},
		Lean:           true,
		Node:           "local",
		Defaults:       catalog.BuiltIn(),
		Limits: LimitsConfig{
			QueueRequests: 1000, QueueBytes: 64 << 20, WakesPerMinute: 60, StartsInParallel: 4,
			LostGatewayAfter: 10 * time.Minute, BodyTimeout: time.Minute, WriteTimeout: time.Minute,
		},
		NoWake: NoWakeConfig{
			Prefetch:   true,
			Paths:      []string{"/favicon.ico", "/robots.txt"},
			UserAgents: []string{"Uptime-Kuma", "UptimeRobot", "kube-probe"},
			Answer:     503,
		},
		Log:       LogConfig{Level: levelInfo, Format: formatText},
		AccessLog: AccessLogConfig{Format: accessJSON, Percent: 100},
		Tracing:   TracingConfig{Sample: 1},
		origins:   map[string]string{},
	}
}

// Origin tells where the value of a key came from: file:line:col, a variable
// of the environment, a flag, or "default".
func (c *Config) Origin(key string) string {
	if origin := c.origins[key]; origin != "" {
		return origin
	}
	return "default"
}

// A configError is every problem of a configuration.
type configError struct{ problems []strict.Problem }

// Error gives one problem a line.
func (e *configError) Error() string {
	lines := make([]string, len(e.problems))
	for i, p := range e.problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// problems collects what is wrong with a configuration.
type problems []strict.Problem

func (p *problems) add(place, message, fix string) {
	*p = append(*p, strict.Problem{Place: place, Message: message, Fix: fix})
}

// err makes an error of them, nil if there are none.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return fail(exitConfig, &configError{slices.Clone(p)})
}
