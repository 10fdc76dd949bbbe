package http1

import (
	"bytes"
	"strconv"
	"time"
)

// Timing finds the duration of a metric in a Server-Timing header:
// `queue;dur=1.5, added;dur=0.2` has an added of 0.2 ms. Of several of that
// name it is the first.
func Timing(header []byte, metric string) (time.Duration, bool) {
	for entry := range bytes.SplitSeq(header, []byte(",")) {
		name, params, _ := bytes.Cut(entry, []byte(";"))
		if string(bytes.Trim(name, " \t")) != metric {
			continue
		}
		for param := range bytes.SplitSeq(params, []byte(";")) {
			key, value, _ := bytes.Cut(param, []byte("="))
			if !is(bytes.Trim(key, " \t"), "dur") {
				continue
			}
			ms, err := strconv.ParseFloat(string(bytes.Trim(value, " \t\"")), 64)
			if err == nil && ms >= 0 && ms < 1e9 {
				return time.Duration(ms * float64(time.Millisecond)), true
			}
		}
	}
	return 0, false
}
