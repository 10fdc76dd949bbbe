package router_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/router"
)

// A front is a way to speak HTTP/2 to a rig.
type front struct {
	name   string
	scheme string
	server func(*testing.T) rigConfig
	client func() *http.Transport
}

var fronts = []front{
	{"TLS", "https", func(t *testing.T) rigConfig {
		return rigConfig{server: router.ServerConfig{TLS: &tls.Config{Certificates: []tls.Certificate{certificate(t)}}}}
	}, func() *http.Transport {
		return &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	}},
	{"cleartext", "http", func(*testing.T) rigConfig { return rigConfig{} }, h2c},
}

// overHTTP2 runs a case over each front, warm and cold. send sends one
// request; change is told of it before.
func overHTTP2(t *testing.T, handler http.HandlerFunc, talk func(t *testing.T, send sendFunc)) {
	for _, f := range fronts {
		t.Run(f.name, func(t *testing.T) {
			warmAndCold(t, serving(handler), func(t *testing.T, rig *rig) {
				transport := f.client()
				defer transport.CloseIdleConnections()
				talk(t, func(method, path string, body io.Reader, change ...func(*http.Request) *http.Request) *http.Response {
					t.Helper()
					req := rig.request(t.Context(), method, "wiki.test", path, body)
					req.URL.Scheme = f.scheme
					for _, c := range change {
						req = c(req)
					}
					res, err := transport.RoundTrip(req)
					require.NoError(t, err)
					assert.Equal(t, 2, res.ProtoMajor)
					return res
				})
			}, f.server(t))
		})
	}
}

type sendFunc func(method, path string, body io.Reader, change ...func(*http.Request) *http.Request) *http.Response

func TestHTTP2ManyStreamsOnOneConnection(t *testing.T) {
	overHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.URL.Path, " ", r.Host, " ", len(b))
	}, func(t *testing.T, send sendFunc) {
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				res := send(http.MethodPost, fmt.Sprint("/", i), io.LimitReader(pattern{}, int64(1000*i)))
				assert.Equal(t, fmt.Sprintf("/%d wiki.test %d", i, 1000*i), body(t, res))
			})
		}
		all.Wait()
	})
}

func TestHTTP2TrailersAndInformationalAnswers(t *testing.T) {
	overHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.Header().Set("Trailer", "X-Answer")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("X-Answer", r.Trailer.Get("X-Ask")+" taken")
		w.Header().Set(http.TrailerPrefix+"X-Late", "late")
	}, func(t *testing.T, send sendFunc) {
		var hints []string
		res := send(http.MethodPost, "/", io.MultiReader(strings.NewReader("body")), func(r *http.Request) *http.Request {
			r.Trailer = http.Header{"X-Ask": {"sum"}}
			return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
					hints = append(hints, fmt.Sprint(code, " ", h.Get("Link")))
					return nil
				},
			}))
		})
		assert.Equal(t, "body", body(t, res))
		assert.Equal(t, []string{"103 </a.css>; rel=preload"}, hints)
		assert.Equal(t, http.Header{"X-Answer": {"sum taken"}, "X-Late": {"late"}}, res.Trailer)
	})
}

func TestHTTP2ExpectContinueEndToEnd(t *testing.T) {
	overHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		echo(w, r)
	}, func(t *testing.T, send sendFunc) {
		expect := func(r *http.Request) *http.Request {
			r.Header.Set("Expect", "100-continue")
			r.ContentLength = 8
			return r
		}
		res := send(http.MethodPost, "/take", strings.NewReader("precious"), expect)
		assert.Equal(t, "precious", body(t, res))
		res = send(http.MethodPost, "/refuse", strings.NewReader("precious"), expect)
		assert.Equal(t, http.StatusExpectationFailed, res.StatusCode)
		assert.Empty(t, body(t, res))
	})
}

func TestHTTP2FullDuplex(t *testing.T) {
	overHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		flow := http.NewResponseController(w)
		_ = flow.EnableFullDuplex()
		_ = flow.Flush()
		words := bufio.NewScanner(r.Body)
		for words.Scan() {
			fmt.Fprintln(w, "echo", words.Text())
			_ = flow.Flush()
		}
	}, func(t *testing.T, send sendFunc) {
		in, out := io.Pipe()
		res := send(http.MethodPost, "/", in)
		answers := bufio.NewReader(res.Body)
		for _, word := range []string{"one", "two", "three"} { // each is answered before the next is sent
			fmt.Fprintln(out, word)
			line, err := answers.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, "echo "+word+"\n", line)
		}
		require.NoError(t, out.Close())
		assert.Empty(t, body(t, res))
	})
}

// RFC 9113 took this way to HTTP/2 away. A server may ignore it, as nginx,
// Caddy and net/http do; to hand it on would let a client send requests that
// no proxy sees.
func TestUpgradeToHTTP2IsIgnored(t *testing.T) {
	for name, upgrade := range map[string]string{
		"h2c":          "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n",
		"in a list":    "Connection: keep-alive, Upgrade\r\nUpgrade: foo, H2C\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n",
		"another HTTP": "Connection: Upgrade\r\nUpgrade: HTTP/2.0\r\n",
		"TLS":          "Connection: Upgrade\r\nUpgrade: TLS/1.2, HTTP/1.1\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			warmAndCold(t, serving(func(w http.ResponseWriter, r *http.Request) {
				for _, header := range []string{"Connection", "Upgrade", "Http2-Settings"} {
					assert.NotContains(t, r.Header, header)
				}
				fmt.Fprint(w, r.Proto)
			}), func(t *testing.T, rig *rig) {
				c := rig.wire()
				for range 2 {
					c.say("GET / HTTP/1.1\r\nHost: wiki.test\r\n%s\r\n", upgrade)
					res, text := c.answer(http.MethodGet)
					assert.Equal(t, http.StatusOK, res.StatusCode)
					assert.Equal(t, "HTTP/1.1", text)
				}
			})
		})
	}
}

func TestUpgradeIsNotForHTTP10(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Upgrade")) }))
	c := rig.wire()
	c.say("GET / HTTP/1.0\r\nHost: wiki.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	res, text := c.answer(http.MethodGet)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Empty(t, text)
}
