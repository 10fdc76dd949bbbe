package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// certificatesEvery is how often the files of certificates are looked at. It
// works wherever they are: on a mount that tells of no change, or behind links
// that are exchanged, as certbot and Kubernetes do.
const certificatesEvery = 5 * time.Second

// certificates are those that traffic is served with. The files are read again
// when they change and on SIGHUP; connections go on as they are. A pair that
// cannot be used leaves the one before it in force.
type certificates struct {
	log    *slog.Logger
	pairs  []*loadedPair // of run alone, once New is done
	choice atomic.Pointer[choice]
}

// A loadedPair is the last good certificate of two files.
type loadedPair struct {
	CertificatePair
	seen [sha256.Size]byte // of what was last read, good or not
	cert *tls.Certificate
}

// A choice is which certificate goes with which name; it never changes.
type choice struct {
	named map[string][]*tls.Certificate // name, maybe with a wildcard -> those for it, in order
	first *tls.Certificate              // for all other names, and for clients that send none
}

// newCertificates reads all pairs; nil: there are none, and no TLS.
func newCertificates(cfg TLSConfig, log *slog.Logger) (*certificates, error) {
	c := &certificates{log: log}
	for _, pair := range cfg.pairs() {
		p := &loadedPair{CertificatePair: pair}
		if _, err := p.load(); err != nil {
			return nil, fail(exitConfig, fmt.Errorf("tls: %w", err))
		}
		c.pairs = append(c.pairs, p)
	}
	if len(c.pairs) == 0 {
		return nil, nil
	}
	c.choose()
	return c, nil
}

// load reads the files, and reports whether they differ from what was read
// before. Of an error it tells once.
func (p *loadedPair) load() (changed bool, err error) {
	cert, err := readFile(p.Cert)
	key, keyErr := readFile(p.Key)
	err = errors.Join(err, keyErr)
	seen := sha256.Sum256(bytes.Join([][]byte{cert, key, fmt.Append(nil, err)}, []byte{0}))
	if seen == p.seen {
		return false, nil
	}
	p.seen = seen
	if err != nil {
		return false, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return false, fmt.Errorf("%s, %s: %w", p.Cert, p.Key, err)
	}
	p.cert = &pair
	return true, nil
}

// choose sorts the certificates by their names.
func (c *certificates) choose() {
	next := &choice{named: map[string][]*tls.Certificate{}, first: c.pairs[0].cert}
	for _, p := range c.pairs {
		for _, name := range p.cert.Leaf.DNSNames {
			name = strings.ToLower(name)
			next.named[name] = append(next.named[name], p.cert)
		}
	}
	c.choice.Store(next)
}

// config is the server's.
func (c *certificates) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// get finds the certificate of the name that a client asks for, an exact one
// before a wildcard, and of several the first that the client can use.
func (c *certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	now := c.choice.Load()
	name := strings.ToLower(hello.ServerName)
	_, parent, _ := strings.Cut(name, ".")
	for _, known := range []string{name, "*." + parent} {
		for _, cert := range now.named[known] {
			if hello.SupportsCertificate(cert) == nil {
				return cert, nil
			}
		}
	}
	return now.first, nil
}

// run reads the files again until ctx ends.
func (c *certificates) run(ctx context.Context) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	tick := time.NewTicker(certificatesEvery)
	defer tick.Stop()
	for {
		select {
		case <-hup:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		c.reload()
	}
}

func (c *certificates) reload() {
	any := false
	for _, p := range c.pairs {
		changed, err := p.load()
		if err != nil {
			c.log.Error("certificate not reloaded, the one before stays in force", "cert", p.Cert,
				"not_after", p.cert.Leaf.NotAfter, "error", err)
		}
		if changed {
			any = true
			c.log.Info("certificate reloaded", "cert", p.Cert, "names", strings.Join(p.cert.Leaf.DNSNames, ", "),
				"not_after", p.cert.Leaf.NotAfter)
		}
	}
	if any {
		c.choose()
	}
}
