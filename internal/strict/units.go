package strict

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// Duration reads a Go duration of at least low; 0 needs no unit.
func Duration(low time.Duration) Codec[time.Duration] {
	return Codec[time.Duration]{
		Parse: func(s string) (time.Duration, error) {
			d, err := time.ParseDuration(s)
			if err != nil {
				return 0, &Wrong{fmt.Sprintf("%q is not a duration", s), "write numbers with units: 500ms, 90s, 15m, 1h30m"}
			}
			if d < low {
				return 0, &Wrong{fmt.Sprintf("%q is shorter than %s", s, FormatDuration(low)), "write " + FormatDuration(low) + " or more"}
			}
			return d, nil
		},
		Format: FormatDuration,
		Schema: map[string]any{
			"type":    []string{"string", "integer"},
			"pattern": `^\+?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`,
			"maximum": 0,
		},
	}
}

// FormatDuration writes d as people do: 15m, not 15m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// Size reads a number of bytes of at least low: a number, or one with a unit
// of binary multiples (KiB, MiB, GiB; kB, MB and GB mean the same).
func Size(low int64) Codec[int64] {
	return Codec[int64]{
		Parse: func(s string) (int64, error) {
			n, err := units.RAMInBytes(s)
			if err != nil || n < low {
				return 0, &Wrong{fmt.Sprintf("%q is not a size of %s or more", s, FormatSize(low)), "write a number of bytes or one with a unit: 512KiB, 64MiB, 2GiB"}
			}
			return n, nil
		},
		Format: FormatSize,
		Schema: map[string]any{"type": []string{"string", "integer"}, "pattern": `^[0-9.]+ ?([kKmMgGtTpP]?[iI]?[bB]?)$`, "minimum": low},
	}
}

// FormatSize writes n in the largest unit that loses nothing.
func FormatSize(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"TiB", units.TiB}, {"GiB", units.GiB}, {"MiB", units.MiB}, {"KiB", units.KiB}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// Prefix reads a network in CIDR form, or one address as the network of it
// alone. Bits beyond the mask are cleared.
func Prefix() Codec[netip.Prefix] {
	return Codec[netip.Prefix]{
		Parse:  parsePrefix,
		Format: netip.Prefix.String,
		Schema: map[string]any{"type": "string"},
	}
}

func parsePrefix(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), nil
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.Prefix{}, &Wrong{fmt.Sprintf("%q is not a network", s), "write a network or an address: 10.0.0.0/8, 192.168.1.7, fd00::/8"}
}
