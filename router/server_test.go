package router_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/workload"
)

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"wiki.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTLSNegotiatesBothProtocols(t *testing.T) {
	rig := newRig(t, rigConfig{server: router.ServerConfig{TLS: &tls.Config{Certificates: []tls.Certificate{certificate(t)}}}}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-Proto"))
	}))
	for _, major := range []int{1, 2} {
		protocols := &http.Protocols{}
		protocols.SetHTTP1(major == 1)
		protocols.SetHTTP2(major == 2)
		transport := &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		req := rig.request(t.Context(), http.MethodGet, "wiki.test", "/", nil)
		req.URL.Scheme = "https"
		res, err := transport.RoundTrip(req)
		require.NoError(t, err)
		assert.Equal(t, major, res.ProtoMajor)
		assert.Equal(t, "https", body(t, res))
		transport.CloseIdleConnections()
	}
}

func TestStopLetsHeldAndRunningRequestsEnd(t *testing.T) {
	rig := newRig(t, rigConfig{server: router.ServerConfig{Grace: patience}},
		wiki(), workload.Workload{Name: "slow", Hosts: []string{"slow.test"}, Path: "/", HoldTimeout: patience})
	finish := make(chan struct{})
	rig.ready("slow", 1, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		<-finish
		_, _ = io.WriteString(w, "ran to its end")
	}))
	held := rig.start(http.MethodGet, "wiki.test", "/", nil)
	rig.queued("wiki", 1)
	running := rig.start(http.MethodGet, "slow.test", "/", nil)
	rig.inFlight("slow", 1)
	rig.stop()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", rig.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, patience, time.Millisecond, "no new connection is accepted")
	rig.ready("wiki", 1, upstream(t, ok("woken in time")))
	close(finish)
	assert.Equal(t, "woken in time", body(t, <-held))
	assert.Equal(t, "ran to its end", body(t, <-running))
	require.NoError(t, <-rig.served)
	assert.NotContains(t, rig.said.String(), "cut off")
}

func TestStopEndsTunnelsAndTheRestAtTheEndOfTheGrace(t *testing.T) {
	rig := newRig(t, rigConfig{server: router.ServerConfig{Grace: 50 * time.Millisecond}}, wiki(),
		workload.Workload{Name: "asleep", Hosts: []string{"asleep.test"}, Path: "/", HoldTimeout: patience})
	upstreamSaw := make(chan struct{})
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(upstreamSaw)
		if conn, err := websocket.Accept(w, r, nil); err == nil {
			_, _, _ = conn.Read(context.Background())
		}
	}))
	conn, _, err := websocket.Dial(t.Context(), "ws://"+rig.addr+"/", &websocket.DialOptions{Host: "wiki.test"})
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	cut := rig.start(http.MethodGet, "asleep.test", "/", nil)
	rig.queued("asleep", 1)
	rig.stop()
	require.NoError(t, <-rig.served)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, _, err = conn.Read(ctx)
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "the client sees the tunnel end")
	<-upstreamSaw
	assert.Equal(t, "urn:rouse:problem:shutdown", problemOf(t, <-cut).Type)
	rig.inFlight("wiki", 0)
	rig.queued("asleep", 0)
}
