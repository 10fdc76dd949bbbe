package sablier

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// The header that plugins branch on, and its values; shared, and never
// changed.
const statusHeader = "X-Sablier-Session-Status"

var (
	headerReady    = []string{"ready"}
	headerNotReady = []string{"not-ready"}
	headerJSON     = []string{"application/json; charset=utf-8"}
	headerHTML     = []string{"text/html; charset=utf-8"}
	headerNoCache  = []string{"no-cache, no-store"}
	headerNoSniff  = []string{"nosniff"}
)

// writeReady answers for members that are all ready. It is on the way of
// every request of every user.
func writeReady(w http.ResponseWriter, p party) {
	buffer := buffers.Get().(*[]byte)
	b := append((*buffer)[:0], `{"session":{"instances":[`...)
	for i, m := range p.gating {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m.ready...)
	}
	for i, m := range p.optional {
		if i+len(p.gating) > 0 {
			b = append(b, ',')
		}
		part, _ := json.Marshal(instance(m.info())) // strings and ints cannot fail
		b = append(b, part...)
	}
	b = append(b, `],"status":"ready"}}`...)
	h := w.Header()
	h[statusHeader], h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = headerReady, headerJSON, headerNoCache, headerNoSniff
	h.Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // a caller that left needs no answer
	*buffer = b
	buffers.Put(buffer)
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

// wantsHTML reports whether a page does: unless JSON is asked for, and
// pages are not. Plugins send no Accept.
func wantsHTML(h http.Header) bool {
	if len(h["Accept"]) == 0 {
		return true
	}
	quality := map[string]float64{}
	for part := range strings.SplitSeq(strings.Join(h["Accept"], ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			q = 1
		}
		quality[kind] = max(quality[kind], q)
	}
	html := max(quality["text/html"], quality["text/*"], quality["*/*"])
	return quality["application/json"] <= html && (html > 0 || quality["application/json"] == 0)
}

func writeHTML(w http.ResponseWriter, state []string, page []byte) {
	h := w.Header()
	h[statusHeader], h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = state, headerHTML, headerNoCache, headerNoSniff
	h.Set("Content-Length", strconv.Itoa(len(page)))
	_, _ = w.Write(page) // a caller that left needs no page
}

func writeNotReady(w http.ResponseWriter, parts []instanceInfo) {
	type session struct {
		Instances []instancePart `json:"instances"`
		Status    string         `json:"status"`
	}
	s := session{Status: headerNotReady[0]}
	for _, part := range parts {
		s.Instances = append(s.Instances, instance(part))
	}
	w.Header()[statusHeader] = headerNotReady
	writeJSON(w, http.StatusOK, map[string]session{"session": s})
}

// writeJSON is for what is not on the way of every request.
func writeJSON(w http.ResponseWriter, code int, v any) {
	body, _ := json.Marshal(v) // strings, ints and lists of them cannot fail
	h := w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json; charset=utf-8")
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // a caller that left needs no answer
}
