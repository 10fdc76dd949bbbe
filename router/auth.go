package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

const (
	// authTimeout bounds the question to an authentication service.
	authTimeout = 10 * time.Second
	// authBody bounds what is passed on of its refusal: a login page.
	authBody = 1 << 20
)

// authHeaders is who the client is, as Authelia and oauth2-proxy say it, for a
// workload that names no headers of its own.
var authHeaders = []string{
	"Remote-User", "Remote-Groups", "Remote-Name", "Remote-Email",
	"X-Auth-Request-User", "X-Auth-Request-Groups", "X-Auth-Request-Email", "X-Auth-Request-Preferred-Username",
}

// newAuthClient is what asks authentication services. It follows no redirect:
// those are the client's.
func newAuthClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// admitted asks the workload's authentication service, if it has one, whether
// the request may go on; so a stranger wakes nothing. False: the request has
// been answered.
func (x *exchange) admitted() bool {
	if x.route.workload.ForwardAuth == "" {
		return true
	}
	x.keep()
	ctx, stop := x.router.leavers.watch(x.req, x.plain != nil)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, authTimeout)
	defer cancel()
	res, err := x.askAuth(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		x.notAsked(err)
		return false
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		x.deny(res)
		return false
	}
	x.grant(res.Header)
	return true
}

// notAsked answers where the service did not: nobody gets past it for that.
func (x *exchange) notAsked(err error) {
	if x.clientLeft() || errors.Is(err, errLeft) {
		x.refuse(err)
		return
	}
	x.router.logger.Warn("authentication service did not answer", "workload", x.route.workload.Name,
		"request_id", x.requestID, "error", err)
	x.say(noAuth)
}

var noAuth = answer{status: http.StatusBadGateway, outcome: outcomeError, code: "auth-unavailable",
	title: "Nobody can be let in now", detail: "The authentication service did not answer.", retry: retryHeld}

// askAuth sends the head of the request, and where it wants to go, in the
// headers that Traefik's forwardAuth uses.
func (x *exchange) askAuth(ctx context.Context) (*http.Response, error) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, x.route.workload.ForwardAuth, nil)
	if err != nil {
		return nil, fmt.Errorf("forward auth: %w", err)
	}
	ask.Header = x.req.Header.Clone()
	dropHopByHop(ask.Header)
	dropForeign(ask.Header, x.peer.trusted)
	for name := range ask.Header {
		if aboutBody(name) {
			delete(ask.Header, name)
		}
	}
	var v values
	v.forwarding(x.req, x.peer)
	setForwarded(ask.Header, &v)
	ask.Header.Set("X-Forwarded-Method", x.req.Method)
	ask.Header.Set("X-Forwarded-Uri", x.req.URL.RequestURI())
	ask.Header.Set("X-Request-Id", x.requestID)
	return x.router.auth.Do(ask)
}

// aboutBody reports a header of a request that means nothing without its body,
// or that would change what is answered to who asks.
func aboutBody(name string) bool {
	switch name {
	case "Range", "Expect":
		return true
	}
	return strings.HasPrefix(name, "Content-") || strings.HasPrefix(name, "If-")
}

// deny passes the service's refusal on: a login page, a redirect to one, a 401.
func (x *exchange) deny(res *http.Response) {
	x.outcome = outcomeDenied
	head := x.w.Header()
	passHeader(head, res.Header)
	head.Set("X-Request-Id", x.requestID)
	head.Del("Content-Length") // a page may be cut
	x.WriteHeader(res.StatusCode)
	if x.req.Method != http.MethodHead {
		_, _ = io.Copy(x, io.LimitReader(res.Body, authBody)) // a client that left, or a service that broke off, changes nothing
	}
}

// grant remembers what the service says about the client, and the cookies
// that it wants to be kept.
func (x *exchange) grant(said http.Header) {
	names := x.route.workload.ForwardAuthHeaders
	if len(names) == 0 {
		names = authHeaders
	}
	x.granted = make(http.Header, len(names))
	for _, name := range names {
		name = textproto.CanonicalMIMEHeaderKey(name)
		x.granted[name] = said[name] // nil: the client must not say it either
	}
	x.cookies = said["Set-Cookie"]
}

// setGranted puts into the header that goes out what the service said, in
// place of what the client may have: also in the spelling with "_".
func (x *exchange) setGranted(h http.Header) {
	for name := range h {
		plain := textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if _, its := x.granted[plain]; its {
			delete(h, name)
		}
	}
	for name, values := range x.granted {
		if len(values) > 0 {
			h[name] = values
		}
	}
}

// addCookies adds the service's cookies to the workload's answer.
func (x *exchange) addCookies(answer http.Header) {
	if len(x.cookies) > 0 {
		answer["Set-Cookie"] = slices.Concat(answer["Set-Cookie"], x.cookies)
	}
}
