package main

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/internal/strict"
)

// validate finds what is wrong with values that are each good for themselves:
// what contradicts another, what needs another, and files that are missing.
func (c *Config) validate() problems {
	var p problems
	c.validateListeners(&p)
	c.validateAdmin(&p)
	c.validateTLS(&p)
	c.validateNATS(&p)
	c.validateWebhooks(&p)
	for _, w := range catalog.Check(c.Defaults, c.Workloads) {
		p = append(p, strict.Problem{Place: w.Place, Message: w.Message, Fix: w.Fix})
	}
	return p
}

// validateListeners refuses two listeners on one address.
func (c *Config) validateListeners(p *problems) {
	listeners := []struct{ key, address string }{
		{"listen", c.Listen}, {"admin.listen", c.Admin.Listen},
		{"sablier.listen", c.Sablier.Listen}, {"nats.listen", c.NATS.Listen}, {"tls.redirect", c.TLS.Redirect},
	}
	for i, l := range listeners {
		for _, first := range listeners[:i] {
			if collide(first.address, l.address) {
				p.add(c.Origin(l.key), fmt.Sprintf("%s %s is also the address of %s", l.key, l.address, first.key), "give each its own port")
			}
		}
	}
}

// collide reports that two addresses cannot both be listened on.
func collide(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return hostA == hostB || everywhere(hostA) || everywhere(hostB)
}

func everywhere(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }

// validateAdmin refuses an API that others can reach and nobody guards.
func (c *Config) validateAdmin(p *problems) {
	file := c.Admin.TokenFile
	if file == "" {
		if !loopback(c.Admin.Listen) {
			p.add(c.Origin("admin.listen"), fmt.Sprintf("admin.listen %s is not a loopback address, and there is no token", c.Admin.Listen),
				"set admin.token_file, or listen on 127.0.0.1")
		}
		return
	}
	token, err := readFile(file)
	if err != nil {
		p.add(c.Origin("admin.token_file"), fmt.Sprintf("admin.token_file %s cannot be read: %s", file, bare(err)), "create it with a long random token")
	} else if strings.TrimSpace(string(token)) == "" {
		p.add(c.Origin("admin.token_file"), fmt.Sprintf("admin.token_file %s is empty", file), "write a long random token into it")
	}
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return err == nil
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func (c *Config) validateTLS(p *problems) {
	switch cert, key := c.TLS.Cert, c.TLS.Key; {
	case cert == "" && key == "":
	case key == "":
		p.add(c.Origin("tls.cert"), "tls.cert is set and tls.key is not", "set both, or neither")
	case cert == "":
		p.add(c.Origin("tls.key"), "tls.key is set and tls.cert is not", "set both, or neither")
	default:
		if _, err := loadKeyPair(cert, key); err != nil {
			p.add(c.Origin("tls.cert"), "tls.cert and tls.key cannot be used: "+err.Error(), "give a PEM certificate chain and its key")
		}
	}
	for _, pair := range c.TLS.Certificates {
		if _, err := loadKeyPair(pair.Cert, pair.Key); err != nil {
			p.add(c.Origin("tls.certificates"), fmt.Sprintf("tls.certificates: %s and %s cannot be used: %s", pair.Cert, pair.Key, err), "give a PEM certificate chain and its key")
		}
	}
	if c.TLS.Redirect != "" && len(c.TLS.pairs()) == 0 {
		p.add(c.Origin("tls.redirect"), "tls.redirect sends clients to HTTPS, and there is no certificate", "set tls.cert and tls.key, or remove it")
	}
}

func (c *Config) validateNATS(p *problems) {
	if c.NATS.URL == "" {
		if c.NATS.Replicas != 1 {
			p.add(c.Origin("nats.replicas"), fmt.Sprintf("the embedded server keeps one copy, not %d", c.NATS.Replicas), "set nats.url to a cluster, or remove nats.replicas")
		}
		return
	}
	if c.NATS.Listen != "" {
		p.add(c.Origin("nats.listen"), "nats.listen is the embedded server's, and nats.url says that there is none", "remove one of them")
	}
	if c.NATS.Replicas%2 == 0 {
		p.add(c.Origin("nats.replicas"), fmt.Sprintf("%d copies survive no more losses than %d", c.NATS.Replicas, c.NATS.Replicas-1), "use 1, 3 or 5")
	}
	if file := c.NATS.Creds; file != "" {
		if _, err := readFile(file); err != nil {
			p.add(c.Origin("nats.creds"), fmt.Sprintf("nats.creds %s cannot be read: %s", file, bare(err)), "name the credentials file")
		}
	}
}

// secret lists the keys whose values may hold a password.
var secret = []string{"nats.url"}

func isSecret(key string) bool { return slices.Contains(secret, key) }
