package events

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Headers are looked up to the letter: NATS keeps their case.
const (
	headerID    = "ce-id"
	headerType  = "ce-type"
	headerTime  = "ce-time"
	headerTrace = "traceparent"
)

// An envelope is what a message carries besides its body: CloudEvents
// attributes in binary mode, and the trace that it belongs to.
type envelope struct {
	kind  string // "wake": the end of ce-type
	about string // whom it is about: ce-subject
	trace string // W3C traceparent; dropped when it is not one
}

// message makes a message of a body that marshals to JSON.
func (b *Bus) message(subject string, e envelope, body any) (*nats.Msg, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.kind, err)
	}
	h := nats.Header{
		"ce-specversion":     {"1.0"},
		headerID:             {rand.Text()},
		"ce-source":          {b.source},
		headerType:           {typeOf(e.kind)},
		"ce-subject":         {escapeHeader(e.about)},
		headerTime:           {time.Now().UTC().Format(time.RFC3339Nano)},
		"ce-datacontenttype": {"application/json"},
	}
	if validTrace(e.trace) {
		h[headerTrace] = []string{e.trace}
	}
	return &nats.Msg{Subject: subject, Header: h, Data: data}, nil
}

// typeOf is the ce-type of the messages that this package writes and reads.
func typeOf(kind string) string { return "dev.rouse." + kind + ".v1" }

// decode reads a body into a value. A body is an object; a problem list alone
// is an array. What another version of Rouse wrote is ErrVersion, even where it
// could be read: its meaning may be another. Only what every gateway may ask
// for needs no type, and may be written by hand: the server's answers, which
// may be sent anywhere without any headers, pass for nothing else.
func decode(kind, about string, h nats.Header, data []byte, into any) error {
	want := typeOf(kind)
	untyped := kind == "wake" || kind == "ask" || kind == "activity"
	switch have := header(h, headerType); {
	case have == want, have == "" && untyped:
	case strings.HasPrefix(have, "dev.rouse."+kind+".v"):
		return fmt.Errorf("%s of %s: %w: it is %s, and this process reads %s", kind, about, ErrVersion, cut(have, 80), want)
	default:
		return fmt.Errorf("%s of %s: %w: its type is %q", kind, about, ErrMalformed, cut(have, 80))
	}
	if string(bytes.TrimSpace(data)) == "null" {
		return fmt.Errorf("%s of %s: %w: null", kind, about, ErrMalformed)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s of %s: %w: %w", kind, about, ErrMalformed, err)
	}
	return nil
}

func header(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// serverHeader is a header that the server adds to what it delivers from a
// stream: behind those that the writer set, which may have the same name.
func serverHeader(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// escapeHeader percent-encodes as the CloudEvents binding for NATS asks: all
// but printable ASCII, and the space, the quote and the percent sign.
func escapeHeader(s string) string {
	plain := func(c byte) bool { return c > ' ' && c <= '~' && c != '"' && c != '%' }
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// validTrace reports a traceparent of the form 00-<32 hex>-<16 hex>-<2 hex>.
// Whatever a client sent ends up in a header only in this form.
func validTrace(s string) bool {
	if len(s) != 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	for i, c := range []byte(s) {
		dash := i == 2 || i == 35 || i == 52
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		if !dash && !hex {
			return false
		}
	}
	return true
}
