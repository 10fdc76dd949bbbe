package router

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// RedirectToHTTPS answers what comes to a listener in cleartext with the way
// to the same place over TLS (308, so that a form stays one). It wakes
// nothing. Only hosts that a workload serves are sent anywhere, so that nobody
// can have it point to a place of theirs.
//
// port is that of the TLS listener. A client that named no port came to port
// 80, and is sent to 443: in front of both there may be others that are
// published as these.
func (r *Router) RedirectToHTTPS(port string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.table.Load().match(req.Host, req.URL.Path) == nil {
			http.Error(w, "nothing is served here", http.StatusNotFound)
			return
		}
		var room hostName
		host := string(room.normalize(req.Host)) // not what else a Host header may hold
		if _, _, err := net.SplitHostPort(req.Host); err == nil && port != "443" {
			host = net.JoinHostPort(host, port)
		} else if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		to := url.URL{Scheme: "https", Host: host, Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery, ForceQuery: req.URL.ForceQuery}
		w.Header().Set("Location", to.String())
		w.Header().Set("Connection", "close") // it is not coming back here
		w.WriteHeader(http.StatusPermanentRedirect)
	})
}
