package system_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newCertificate writes dir/cert.pem and dir/key.pem for the name.
func newCertificate(t *testing.T, dir, name string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600))
	}
}

// A certificate is exchanged, by a change of its files and by SIGHUP, while a
// WebSocket is open; and who comes in cleartext is sent to HTTPS.
func TestCertificatesAreExchangedWithoutADrop(t *testing.T) {
	t.Parallel()
	dir, redirect := t.TempDir(), freeAddr(t)
	newCertificate(t, dir, "chat.test", 1)
	n := start(t, plan{role: "up", dir: dir, config: fmt.Sprintf("tls: { cert: %s/cert.pem, key: %s/key.pem, redirect: %q }\n", dir, dir, redirect) + mimics(t, "chat")})
	secure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer secure.CloseIdleConnections()
	url := strings.Replace(n.traffic, "http://", "https://", 1)
	conn, _, err := websocket.Dial(t.Context(), url+"/ws", &websocket.DialOptions{Host: "chat.test", HTTPClient: secure})
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()

	shown := func() int64 {
		c, err := tls.Dial("tcp", strings.TrimPrefix(n.traffic, "http://"), &tls.Config{InsecureSkipVerify: true, ServerName: "chat.test"})
		require.NoError(t, err)
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, shown())
	newCertificate(t, dir, "chat.test", 2)
	eventually(t, "the changed files are read", func() bool { return shown() == 2 })
	newCertificate(t, dir, "chat.test", 3)
	require.NoError(t, n.cmd.Process.Signal(syscall.SIGHUP))
	eventually(t, "SIGHUP has them read", func() bool { return shown() == 3 })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.pem"), []byte("no key"), 0o600))
	require.NoError(t, n.cmd.Process.Signal(syscall.SIGHUP))
	eventually(t, "a bad pair is told of", func() bool { return strings.Contains(n.log.String(), "certificate not reloaded") })
	require.EqualValues(t, 3, shown())

	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte("still here")))
	_, got, err := conn.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "still here", string(got))

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+redirect+"/a?b=c", nil)
	require.NoError(t, err)
	req.Host = "chat.test"
	res, err := client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, http.StatusPermanentRedirect, res.StatusCode)
	assert.Equal(t, "https://chat.test/a?b=c", res.Header.Get("Location"))
}
