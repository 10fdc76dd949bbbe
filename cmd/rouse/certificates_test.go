package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// writePair writes a certificate for the names and its key.
func writePair(t *testing.T, dir, file string, serial int64, names ...string) CertificatePair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: names, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	pair := CertificatePair{filepath.Join(dir, file+".pem"), filepath.Join(dir, file+".key")}
	require.NoError(t, os.WriteFile(pair.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(pair.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return pair
}

// handshake asks for a name, and gives the serial number that it was shown
// and both ends of the connection.
func handshake(t *testing.T, c *certificates, name string) (serial int64, client, server *tls.Conn) {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	server = tls.Server(far, c.config())
	go func() { _ = server.Handshake() }()
	client = tls.Client(near, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	require.NoError(t, client.Handshake())
	return client.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), client, server
}

func TestTheNameThatIsAskedForChoosesTheCertificate(t *testing.T) {
	dir := t.TempDir()
	first := writePair(t, dir, "first", 1, "first.test")
	c, err := newCertificates(TLSConfig{Cert: first.Cert, Key: first.Key, Certificates: []CertificatePair{
		writePair(t, dir, "wild", 2, "*.wiki.test"), writePair(t, dir, "exact", 3, "a.wiki.test", "Other.test"),
	}}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for name, want := range map[string]int64{
		"first.test": 1, "b.wiki.test": 2, "a.wiki.test": 3, "A.WIKI.test": 3, "other.test": 3,
		"wiki.test": 1, "x.b.wiki.test": 1, "unknown.test": 1, "": 1,
	} {
		got, _, _ := handshake(t, c, name)
		require.Equal(t, want, got, name)
	}
}

func TestCertificatesAreReadAgainWithoutADrop(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	pair := writePair(t, dir, "wiki", 1, "wiki.test")
	c, err := newCertificates(TLSConfig{Cert: pair.Cert, Key: pair.Key}, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	_, client, server := handshake(t, c, "wiki.test")

	c.reload()
	require.Empty(t, log.String(), "nothing has changed")

	key, err := os.ReadFile(pair.Key)
	require.NoError(t, err)
	writePair(t, dir, "wiki", 2, "wiki.test", "new.test")
	good, err := os.ReadFile(pair.Key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(pair.Key, key, 0o600)) // half of it is there
	c.reload()
	c.reload()
	serial, _, _ := handshake(t, c, "wiki.test")
	require.EqualValues(t, 1, serial, "the one before stays in force")
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("certificate not reloaded")), "it is said once:\n%s", log.String())

	require.NoError(t, os.WriteFile(pair.Key, good, 0o600))
	c.reload()
	serial, _, _ = handshake(t, c, "new.test")
	require.EqualValues(t, 2, serial)
	require.Contains(t, log.String(), "certificate reloaded")

	require.NoError(t, os.Remove(pair.Cert))
	c.reload()
	serial, _, _ = handshake(t, c, "wiki.test")
	require.EqualValues(t, 2, serial)

	go func() { _, _ = server.Write([]byte("still here")) }()
	got := make([]byte, 10)
	_, err = client.Read(got)
	require.NoError(t, err)
	require.Equal(t, "still here", string(got))
}

func TestTLSBelow12IsRefused(t *testing.T) {
	pair := writePair(t, t.TempDir(), "wiki", 1, "wiki.test")
	c, err := newCertificates(TLSConfig{Cert: pair.Cert, Key: pair.Key}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	near, far := net.Pipe()
	defer near.Close()
	go func() { _ = tls.Server(far, c.config()).Handshake(); far.Close() }()
	require.Error(t, tls.Client(near, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).Handshake())
}

func TestCertificatesAreRead(t *testing.T) {
	dir := t.TempDir()
	a, b := writePair(t, dir, "a", 1, "a.test"), writePair(t, dir, "b", 2, "b.test")
	text := "tls: { redirect: \":80\", certificates: [{ cert: " + a.Cert + ", key: " + a.Key + " }, " + b.Cert + "=" + b.Key + "] }"
	c, err := loadConfig(configFile(t, text), nil, nil)
	require.NoError(t, err)
	require.Equal(t, []CertificatePair{a, b}, c.TLS.pairs())
	var shown bytes.Buffer
	require.NoError(t, c.show(&shown, false))
	again, err := loadConfig(configFile(t, shown.String()), nil, nil)
	require.NoError(t, err, shown.String())
	require.Equal(t, c.TLS, again.TLS)

	for text, want := range map[string]string{
		"tls: { certificates: [{ cert: /no/such, key: /no/such }] }":             "/no/such cannot be used",
		"tls: { certificates: [{ cert: /no/such }] }":                            "tls.certificates has an item without key",
		"tls: { certificates: [x] }":                                             "is not a certificate and its key",
		"tls: { redirect: \":80\" }":                                             "there is no certificate",
		"tls: { redirect: \":8080\", cert: " + a.Cert + ", key: " + a.Key + " }": "tls.redirect :8080 is also the address of listen",
	} {
		_, err := loadConfig(configFile(t, text), nil, nil)
		require.ErrorContains(t, err, want, text)
	}
}
