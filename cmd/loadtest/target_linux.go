package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rouse-dev/rouse/loadtest/http1"
	"github.com/rouse-dev/rouse/loadtest/openloop"
)

// targetFlags say what a load asks for, and what must come back.
type targetFlags struct {
	method   string
	headers  []string
	bodySize int
	status   int
	length   int64
	echo     string
	protocol string
	conns    int
	timeout  time.Duration
	warmup   time.Duration
}

func (t *targetFlags) add(f *pflag.FlagSet) {
	f.StringVar(&t.method, "method", "", "method; without it GET, or POST with a body")
	f.StringArrayVar(&t.headers, "header", nil, `header to send, "Name: value"; repeatable`)
	f.IntVar(&t.bodySize, "body-size", 0, "length of the request's body, which begins with its id")
	f.IntVar(&t.status, "status", 200, "status that the answer must have")
	f.Int64Var(&t.length, "length", 0, "length that the answer's body must have (0: any)")
	f.StringVar(&t.echo, "echo", "none", "where the request's id must come back: none, body (anywhere in it), request (the body is the request's), header (X-Request-ID)")
	f.StringVar(&t.protocol, "protocol", "keep-alive", "keep-alive or fresh (a new connection each) of HTTP/1.1, or h2c")
	f.IntVar(&t.conns, "conns", 0, "most connections (0: 128, of h2c 8)")
	f.DurationVar(&t.timeout, "timeout", 30*time.Second, "time in which an answer must be complete, from its send")
	f.DurationVar(&t.warmup, "warmup", t.warmup, "time at the start that is sent and checked, but not recorded")
}

var echoes = map[string]openloop.Echo{
	"none": openloop.Nowhere, "body": openloop.InBody, "request": openloop.AsBody, "header": openloop.InHeader,
}

var protocols = map[string]openloop.Protocol{
	openloop.KeepAlive.String(): openloop.KeepAlive, openloop.Fresh.String(): openloop.Fresh, openloop.H2C.String(): openloop.H2C,
}

// pick is the value of a flag that has one of some words.
func pick[T any](flag, word string, values map[string]T) (T, error) {
	value, known := values[word]
	if !known {
		return value, fmt.Errorf("--%s %q: unknown", flag, word)
	}
	return value, nil
}

// to is the request for a URL, and where to connect for it.
func (t *targetFlags) to(raw, host string) (address string, target openloop.Target, err error) {
	u, err := url.Parse(raw)
	if err == nil && (u.Scheme != "http" || u.Hostname() == "" || u.User != nil) {
		err = errors.New("want http://HOST[:PORT]/PATH")
	}
	if err != nil {
		return "", target, fmt.Errorf("URL %q: %w", raw, err)
	}
	echo, err := pick("echo", t.echo, echoes)
	if err != nil {
		return "", target, err
	}
	target = openloop.Target{
		Request: http1.Request{
			Method: strings.ToUpper(t.method), Path: u.RequestURI(), Host: cmp.Or(host, u.Host), Header: t.headers,
			Body: bytes.Repeat([]byte("x"), t.bodySize),
		},
		Expect: openloop.Expect{Status: t.status, Length: t.length, Echo: echo},
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80")), target, nil
}
