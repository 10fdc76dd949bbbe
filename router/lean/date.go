package lean

import (
	"net/http"
	"sync/atomic"
	"time"
)

// dates has the field that tells the time, which is the same for a second.
type dates struct{ last atomic.Pointer[date] }

type date struct {
	second int64
	field  []byte
}

func (d *dates) append(b []byte, now time.Time) []byte {
	last := d.last.Load()
	if last == nil || last.second != now.Unix() {
		field := now.UTC().AppendFormat([]byte("Date: "), http.TimeFormat)
		last = &date{now.Unix(), append(field, "\r\n"...)}
		d.last.Store(last)
	}
	return append(b, last.field...)
}
