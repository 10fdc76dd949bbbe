package router

import "net/http"

// stickyCookie names the replica that a client was sent to.
const stickyCookie = "rouse_replica"

// prefers is the key of the replica that the client was sent to before, where
// the workload wants it to stay there; empty for none.
func (x *exchange) prefers() string {
	if !x.route.workload.Sticky {
		return ""
	}
	cookie, err := x.req.Cookie(stickyCookie)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// setSticky makes the client come back to its replica. The cookie lasts as
// long as the browser, and longer than the replica: a key that nobody has any
// more is no preference.
func (x *exchange) setSticky(answer http.Header) {
	if !x.route.workload.Sticky || x.prefers() == x.lease.Key() {
		return
	}
	cookie := http.Cookie{
		Name: stickyCookie, Value: x.lease.Key(), Path: x.route.workload.Path,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: x.req.TLS != nil,
	}
	answer.Add("Set-Cookie", cookie.String())
}
