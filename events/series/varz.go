package series

import (
	"maps"
	"regexp"
	"slices"
	"time"
)

// varzPrefix begins the name of all that a server tells of itself.
const varzPrefix = "gnatsd_varz"

// Of texts, the ones that are shown: as a label, or, where they are a time, as
// milliseconds since 1970.
var shownTexts = []string{"server_id", "server_name", "version", "domain", "leader", "name", "start", "config_load_time"}

// Parts that are left out: lists of operators, and requests by path of a
// monitoring port.
var hiddenParts = []string{"trusted_operators_claim", "http_req_stats"}

// metricName is what may be part of a metric's name.
var metricName = regexp.MustCompile(`^[a-zA-Z0-9_]+$`)

// varz shows each number as a gauge named by its way through the parts.
func (g gauges) varz(parts map[string]any) { g.part(varzPrefix, parts) }

func (g gauges) part(prefix string, parts map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		if slices.Contains(hiddenParts, key) || !metricName.MatchString(key) {
			continue
		}
		name := prefix + "_" + key
		switch value := parts[key].(type) {
		case map[string]any:
			g.part(name, value)
		case float64:
			g.show(desc(name, "From the server's /varz.", "server_id"), value)
		case string:
			if slices.Contains(shownTexts, key) {
				g.text(name, value)
			}
		}
	}
}

func (g gauges) text(name, value string) {
	if at, err := time.Parse(time.RFC3339Nano, value); err == nil {
		g.show(desc(name, "From the server's /varz, in milliseconds since 1970.", "server_id"), float64(at.UnixMilli()))
		return
	}
	g.with(value).show(desc(name, "1 for the value in the server's /varz.", "server_id", "value"), 1)
}
