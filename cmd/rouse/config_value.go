package main

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/tracing/otlp"
)

// listenAddress accepts host:port with a numeric port; 0 takes a free one.
func listenAddress(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return &strict.Wrong{Message: fmt.Sprintf("%q is not an address to listen on", s), Fix: "write host:port, or :port for all interfaces"}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return &strict.Wrong{Message: fmt.Sprintf("%q is not a port", port), Fix: "write a number from 0 to 65535"}
	}
	if strings.ContainsAny(host, " /@") {
		return &strict.Wrong{Message: fmt.Sprintf("%q is not a host", host), Fix: "write an IP address or a name, without a scheme"}
	}
	return nil
}

// optional lets the empty text pass, and all others to check.
func optional(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "" {
			return nil
		}
		return check(s)
	}
}

func filled(s string) error {
	if s == "" {
		return &strict.Wrong{Message: "it is empty", Fix: "give it a value, or remove the line"}
	}
	return nil
}

// natsURL accepts nothing, or URLs of servers separated by commas. A message
// never repeats one: it may hold a password.
func natsURL(s string) error {
	if s == "" {
		return nil
	}
	for one := range strings.SplitSeq(s, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return &strict.Wrong{Message: "it is not the URL of a NATS server", Fix: "write nats://host:4222, tls://, ws:// or wss://"}
		}
	}
	return nil
}

func dockerHost(s string) error {
	u, err := url.Parse(s)
	if err != nil || !slices.Contains([]string{"unix", "tcp", "http", "https"}, u.Scheme) || u.Host+u.Path == "" {
		return &strict.Wrong{Message: fmt.Sprintf("%q is not the address of a Docker engine", s), Fix: "write unix:///var/run/docker.sock or tcp://host:2376"}
	}
	return nil
}

// collectorURL accepts what spans can be sent to. Credentials do not belong in
// it: they are in OTEL_EXPORTER_OTLP_HEADERS.
func collectorURL(s string) error {
	if s == otlp.FromEnvironment {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &strict.Wrong{Message: "it is not the URL of a collector", Fix: "write http://host:4318, https://, or env for OTEL_EXPORTER_OTLP_ENDPOINT"}
	}
	if u.User != nil || u.RawQuery != "" {
		return &strict.Wrong{Message: "it has a password or a query, which are not sent", Fix: "put what the collector wants to know in OTEL_EXPORTER_OTLP_HEADERS"}
	}
	return nil
}

func labelPrefix(s string) error {
	if s == "" || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789.-_") != "" || strings.HasSuffix(s, ".") {
		return &strict.Wrong{Message: fmt.Sprintf("%q is not a prefix of labels", s), Fix: "write lower-case letters, digits, '.' and '-', without a dot at the end"}
	}
	return nil
}
