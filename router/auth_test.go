package router_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

// authService lets in who brings the cookie, and hands on what it was asked.
func authService(t *testing.T) (url string, asked <-chan *http.Request) {
	t.Helper()
	questions := make(chan *http.Request, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		assert.Empty(t, body)
		questions <- r
		if c, err := r.Cookie("session"); err != nil || c.Value != "good" {
			w.Header().Set("Location", "https://login.test/?rd="+r.Header.Get("X-Forwarded-Uri"))
			w.Header().Set("Set-Cookie", "nonce=1")
			w.WriteHeader(http.StatusFound)
			_, _ = io.WriteString(w, "log in first")
			return
		}
		w.Header().Set("Remote-User", "ada")
		w.Header().Set("Set-Cookie", "session=good; refreshed")
		_, _ = io.WriteString(w, "ignored")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/verify?x=1", questions
}

func guarded(url string, headers ...string) workload.Workload {
	return wiki(func(w *workload.Workload) { w.ForwardAuth, w.ForwardAuthHeaders = url, headers })
}

func TestAStrangerWakesNothingAndGetsTheServicesAnswer(t *testing.T) {
	url, asked := authService(t)
	r := newRig(t, rigConfig{}, guarded(url))
	res := r.do(http.MethodPost, "wiki.test", "/a/b?c=d", strings.NewReader("secret"), "X-Forwarded-Uri", "/harmless", "Range", "bytes=0-1")
	assert.Equal(t, http.StatusFound, res.StatusCode)
	assert.Equal(t, "https://login.test/?rd=/a/b?c=d", res.Header.Get("Location"))
	assert.Equal(t, "nonce=1", res.Header.Get("Set-Cookie"))
	assert.Equal(t, "log in first", body(t, res))
	q := <-asked
	assert.Equal(t, http.MethodGet, q.Method)
	assert.Equal(t, "/verify?x=1", q.URL.String())
	for name, want := range map[string]string{
		"X-Forwarded-Method": "POST", "X-Forwarded-Uri": "/a/b?c=d", "X-Forwarded-Host": "wiki.test",
		"X-Forwarded-Proto": "http", "X-Forwarded-For": "127.0.0.1", "Content-Length": "", "Range": "",
	} {
		assert.Equal(t, want, q.Header.Get(name), name)
	}
	assert.Zero(t, r.wakeCount())
	assert.Equal(t, "denied", r.entryOf(res.Header.Get("X-Request-Id")).Outcome)
	assert.Equal(t, 1.0, r.counted("wiki", "denied"))
}

func TestWhoIsLetInIsNamedToTheWorkloadAndNobodyElseIs(t *testing.T) {
	url, asked := authService(t)
	r := newRig(t, rigConfig{}, guarded(url))
	got := make(chan *http.Request, 10)
	address := upstream(t, func(w http.ResponseWriter, req *http.Request) {
		sent, _ := io.ReadAll(req.Body)
		assert.Equal(t, "body", string(sent))
		got <- req
		w.Header().Set("Set-Cookie", "own=1")
	})
	r.whenWoken(func(workload.Wake) { r.ready("wiki", 1, address) })
	for range 2 { // cold and warm
		res := r.do(http.MethodPost, "wiki.test", "/", strings.NewReader("body"), "Cookie", "session=good",
			"Remote-User", "root", "Remote_User", "root", "Remote-Groups", "admins", "remote-EMAIL", "root@test",
			"Connection", "Remote-User", "Connection", "Remote-Name")
		assert.Equal(t, http.StatusOK, res.StatusCode, body(t, res))
		assert.Equal(t, []string{"own=1", "session=good; refreshed"}, res.Header["Set-Cookie"])
		<-asked
		req := <-got
		assert.Equal(t, []string{"ada"}, req.Header["Remote-User"])
		for _, name := range []string{"Remote_User", "Remote-Groups", "Remote-Email", "Remote-Name"} {
			assert.Empty(t, req.Header[name], name)
		}
		assert.Equal(t, "session=good", req.Header.Get("Cookie"))
	}
}

func TestTheWorkloadGetsTheHeadersThatItNames(t *testing.T) {
	url, _ := authService(t)
	r := newRig(t, rigConfig{}, guarded(url, "x-account", "remote-user"))
	got := make(chan *http.Request, 1)
	r.ready("wiki", 1, upstream(t, func(_ http.ResponseWriter, req *http.Request) { got <- req }))
	_ = body(t, r.get("wiki.test", "/", "Cookie", "session=good", "X-Account", "1", "Remote-Groups", "mine"))
	req := <-got
	assert.Equal(t, "ada", req.Header.Get("Remote-User"))
	assert.Empty(t, req.Header.Get("X-Account"))
	assert.Equal(t, "mine", req.Header.Get("Remote-Groups"), "this workload does not read it")
}

func TestNobodyGetsPastAServiceThatDoesNotAnswer(t *testing.T) {
	r := newRig(t, rigConfig{}, guarded("http://"+nowhere(t)+"/"))
	r.ready("wiki", 1, upstream(t, func(http.ResponseWriter, *http.Request) { t.Error("let in") }))
	res := r.get("wiki.test", "/")
	assert.Equal(t, http.StatusBadGateway, res.StatusCode)
	assert.Contains(t, body(t, res), "urn:rouse:problem:auth-unavailable")
}

func TestAClientThatLeavesWhileItIsBeingJudgedIsLoggedAsSuch(t *testing.T) {
	judging, left := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(judging)
		<-r.Context().Done()
		close(left)
	}))
	defer s.Close()
	r := newRig(t, rigConfig{}, guarded(s.URL))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-judging
		cancel()
	}()
	_, err := client.Do(r.request(ctx, http.MethodGet, "wiki.test", "/", nil))
	require.ErrorIs(t, err, context.Canceled)
	<-left
	e := r.entry(func(e entry) bool { return e.Status == 499 })
	assert.Equal(t, "canceled", e.Outcome)
	assert.Zero(t, r.wakeCount())
}
