package api

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// traefikService is the one service that all routers of the configuration
// send to: the gateway.
const traefikService = "rouse"

// A TraefikConfig is the part of a dynamic configuration of Traefik that an
// endpoint of its HTTP provider gives for workloads that may sleep.
type TraefikConfig struct {
	HTTP TraefikHTTP `json:"http"`
}

// TraefikHTTP has a router for each workload with a host, by the name
// "rouse-" and its own.
type TraefikHTTP struct {
	Routers  map[string]TraefikRouter  `json:"routers,omitempty"`
	Services map[string]TraefikService `json:"services"`
}

// A TraefikRouter sends what its rule matches to the gateway.
type TraefikRouter struct {
	Rule        string      `json:"rule"`
	Service     string      `json:"service"`
	EntryPoints []string    `json:"entryPoints,omitempty"`
	Middlewares []string    `json:"middlewares,omitempty"`
	TLS         *TraefikTLS `json:"tls,omitempty"`
}

// TraefikTLS names who gets the certificate.
type TraefikTLS struct {
	CertResolver string `json:"certResolver"`
}

// A TraefikService is the gateway, at a URL that Traefik can reach.
type TraefikService struct {
	LoadBalancer TraefikBalancer `json:"loadBalancer"`
}

// TraefikBalancer has one server.
type TraefikBalancer struct {
	Servers []TraefikServer `json:"servers"`
}

// A TraefikServer is a URL.
type TraefikServer struct {
	URL string `json:"url"`
}

// traefik is an endpoint for Traefik's HTTP provider. Routes that come from
// the labels of a container go with it when it stops; these stay.
func (s *server) traefik(w http.ResponseWriter, r *http.Request) error {
	model, gateway, err := traefikQuery(r.URL.Query())
	if err != nil {
		return err
	}
	list, err := s.list(r)
	if err != nil {
		return err
	}
	config := TraefikConfig{TraefikHTTP{
		Routers:  map[string]TraefikRouter{},
		Services: map[string]TraefikService{traefikService: {TraefikBalancer{[]TraefikServer{{gateway}}}}},
	}}
	for _, workload := range list.Workloads {
		if len(workload.Hosts) == 0 {
			continue // it is woken as a dependency only
		}
		router := model
		router.Rule = traefikRule(workload.Hosts, workload.Path)
		config.HTTP.Routers[traefikService+"-"+workload.Name] = router
	}
	return reply(w, http.StatusOK, config)
}

// traefikQuery reads what all routers have in common, and the gateway's URL.
func traefikQuery(query url.Values) (model TraefikRouter, gateway string, err error) {
	model.Service = traefikService
	for name, values := range query {
		switch name {
		case "entrypoint":
			model.EntryPoints = values
		case "middleware":
			model.Middlewares = values
		case "certresolver":
			model.TLS = &TraefikTLS{values[0]}
		case "url":
			gateway = values[0]
		default:
			return model, "", badRequest("%q is unknown: want url, entrypoint, middleware and certresolver", name)
		}
	}
	if u, err := url.Parse(gateway); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return model, "", badRequest("url %q: want that of the gateway as Traefik reaches it, like http://rouse:8080", gateway)
	}
	return model, gateway, nil
}

// traefikRule matches what the router of Rouse matches.
func traefikRule(hosts []string, path string) string {
	var any []string
	for _, host := range slices.Sorted(slices.Values(hosts)) {
		if parent, wildcard := strings.CutPrefix(host, "*."); wildcard {
			any = append(any, "HostRegexp("+strconv.Quote(`^[^.]+\.`+regexp.QuoteMeta(parent)+"$")+")")
		} else {
			any = append(any, "Host("+strconv.Quote(host)+")")
		}
	}
	rule := strings.Join(any, " || ")
	if path = strings.TrimSuffix(path, "/"); path == "" {
		return rule
	}
	return fmt.Sprintf("(%s) && (Path(%s) || PathPrefix(%s))", rule, strconv.Quote(path), strconv.Quote(path+"/"))
}
