package sablier

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	defaultKeep    = 5 * time.Minute // Sablier's own
	defaultTimeout = time.Minute     // Sablier's own
	// defaultRefresh is the pace of the waiting page. Sablier's is 5 s, for
	// which everybody waits whose workload takes less.
	defaultRefresh = time.Second

	maxDuration = 365 * 24 * time.Hour
	maxNames    = 256
)

// A query is what a call asks for.
type query struct {
	names       []string
	group       string
	keep        time.Duration // session_duration
	timeout     time.Duration
	refresh     time.Duration
	displayName string
	theme       string
	details     bool
}

// A badQuery says what is wrong with the parameters.
type badQuery struct{ detail string }

func (e *badQuery) Error() string { return e.detail }

func bad(format string, args ...any) error { return &badQuery{fmt.Sprintf(format, args...)} }

// parseQuery reads the parameters. Those that are empty count as absent, and
// unknown ones are ignored: plugins send both. It keeps no memory beyond the
// query, and makes no map: this is the way of every request of every user.
func parseQuery(raw string) (query, error) {
	q := query{keep: defaultKeep, timeout: defaultTimeout, refresh: defaultRefresh, details: true}
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		key, value, _ := strings.Cut(pair, "=")
		key, err := unescape(key)
		if err == nil {
			value, err = unescape(value)
		}
		if err != nil {
			return q, bad("the query cannot be read: %v", err)
		}
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		if err := q.set(key, value); err != nil {
			return q, err
		}
	}
	if (len(q.names) == 0) == (q.group == "") {
		return q, bad("give either names or group, and not both")
	}
	return q, nil
}

func unescape(s string) (string, error) {
	if strings.ContainsAny(s, "%+") {
		return url.QueryUnescape(s)
	}
	return s, nil
}

func (q *query) set(key, value string) (err error) {
	switch key {
	case "names":
		if len(q.names) >= maxNames {
			return bad("more than %d names: put them into a group", maxNames)
		}
		q.names = append(q.names, value)
	case "group":
		if q.group != "" && q.group != value {
			return bad("more than one group: %q and %q", q.group, value)
		}
		q.group = value
	case "session_duration":
		q.keep, err = parseDuration(key, value)
	case "timeout":
		q.timeout, err = parseDuration(key, value)
	case "refresh_frequency":
		q.refresh, err = parseDuration(key, value)
	case "display_name":
		q.displayName = value
	case "theme":
		q.theme = value
	case "show_details":
		if q.details, err = strconv.ParseBool(value); err != nil {
			return bad("show_details: %q is neither true nor false", value)
		}
	}
	return err
}

// parseDuration reads what Go writes (1m0s, 90s, 1.5h), and a number alone as
// seconds.
func parseDuration(key, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil {
		d, err = time.ParseDuration(value + "s")
	}
	switch {
	case err != nil && strings.HasSuffix(value, "d"):
		return 0, bad("%s: %q is not a duration: write hours, 24h for a day", key, value)
	case err != nil:
		return 0, bad("%s: %q is not a duration: write 90s, 15m or 1h30m", key, value)
	case d <= 0:
		return 0, bad("%s: %q is not more than 0", key, value)
	case d > maxDuration:
		return 0, bad("%s: %q is more than a year", key, value)
	}
	return d, nil
}
