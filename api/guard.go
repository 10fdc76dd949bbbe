package api

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// maxBody bounds the body of a request; no route needs one.
const maxBody = 4 << 10

// headers gives every answer its protection and its request ID.
func (s *server) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", s.page.policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Request-ID", requestID(r))
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if s.tokenInURL(r) {
			s.fail(w, r, badRequest("a token does not belong into the URL, where logs and histories keep it: send Authorization: Bearer, and replace that token"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// requestID joins the caller's ID if it is fit for a log line, or makes one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-ID")
	unfit := func(c rune) bool { return c <= ' ' || c > '~' }
	if id == "" || len(id) > 128 || strings.ContainsFunc(id, unfit) {
		return rand.Text()
	}
	return id
}

// serve makes a route a handler: only its method, and its errors answered.
func (s *server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.admit(w, r, rt.method); err != nil {
			s.fail(w, r, err)
			return
		}
		if err := rt.handle(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

// admit refuses what a route does not answer at all: another method, a large
// body, a write from a page of another site.
func (s *server) admit(w http.ResponseWriter, r *http.Request, method string) error {
	if r.Method != method && (r.Method != http.MethodHead || method != http.MethodGet) {
		allow := method
		if method == http.MethodGet {
			allow += ", " + http.MethodHead
		}
		w.Header().Set("Allow", allow)
		return fmt.Errorf("%w: %s answers %s", errMethod, r.URL.Path, allow)
	}
	if r.ContentLength > maxBody {
		return fmt.Errorf("%w: the limit is %d bytes", errTooLarge, maxBody)
	}
	if err := s.origin.Check(r); err != nil {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	return nil
}

// guard asks for the token, or without one keeps web pages out.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.local(r)
		if err == nil && !s.trusted(r) {
			err = fmt.Errorf("%w: send Authorization: Bearer with the token of admin.token_file", errNoToken)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// local refuses, where no token is needed, a name that may be anybody's for
// the local machine.
func (s *server) local(r *http.Request) error {
	if s.cfg.Token == "" && !localHost(r.Host) {
		return fmt.Errorf("%w: without a token this is for the local machine, and %q may be anybody's name for it: use an address or localhost", errForeign, r.Host)
	}
	return nil
}

// tokenNames are parameters that people put a token in, in lower case.
var tokenNames = []string{"token", "access_token", "auth_token", "authorization", "bearer", "api_key"}

// tokenInURL reports a token where every log, history and Referer would have
// it: under one of the names that people give it, or the token itself under
// any.
func (s *server) tokenInURL(r *http.Request) bool {
	for part := range strings.FieldsFuncSeq(r.URL.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(part, "=")
		if slices.Contains(tokenNames, strings.ToLower(unescaped(name))) || s.isToken(unescaped(value)) || s.isToken(unescaped(name)) {
			return true
		}
	}
	return r.URL.User != nil
}

// unescaped is a part of a query as it was meant, or as it is.
func unescaped(part string) string {
	if text, err := url.QueryUnescape(part); err == nil {
		return text
	}
	return part
}

// isToken compares in the same time whatever the length and the content; there
// is none to be compared with where none is asked for.
func (s *server) isToken(shown string) bool {
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(s.cfg.Token))
	return s.cfg.Token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// trusted reports that no token is needed or that the right one is shown.
func (s *server) trusted(r *http.Request) bool {
	if s.cfg.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return s.isToken(strings.TrimSpace(token)) && strings.EqualFold(scheme, "Bearer")
}

// localHost reports a Host that no foreign name server can have pointed here:
// an address, localhost or a name under it, or none at all.
func localHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func (s *server) noRoute(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r, fmt.Errorf("%w: %s", errNoRoute, r.URL.Path))
}

// attrs is what every log line about a request has.
func attrs(r *http.Request, id string, err error) []any {
	return []any{"method", r.Method, "path", r.URL.Path, "remote", r.RemoteAddr, "request_id", id, "error", err}
}
