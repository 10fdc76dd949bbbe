package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

//go:embed dashboard/page.html
var pageSource string

//go:embed dashboard/page.css
var pageStyle string

//go:embed dashboard/page.js
var pageScript string

// A page is the dashboard for a person with a browser. It loads nothing, its
// style and its script are allowed by their hashes, and without scripts it is
// the table of workloads as they are.
type page struct {
	template *template.Template
	policy   string // of its content
}

func newPage() *page {
	return &page{
		template: template.Must(template.New("page").Funcs(template.FuncMap{"stamp": stamp}).Parse(pageSource)),
		policy: "default-src 'none'; style-src " + hashOf(pageStyle) + "; script-src " + hashOf(pageScript) +
			"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}

// hashOf is a source expression that allows exactly this inline text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// stamp is a moment as the datetime attribute and the reader want it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// dashboard answers anybody with the page, and whoever needs no token, or
// shows it, with the present in it: a browser can show it only by script.
func (s *server) dashboard(w http.ResponseWriter, r *http.Request) error {
	values := struct {
		Style     template.CSS
		Script    template.JS
		At        time.Time
		Version   string
		List      bool // it has the list
		Workloads []Workload
		Problems  []workload.Problem
	}{Style: template.CSS(pageStyle), Script: template.JS(pageScript), At: time.Now()} // #nosec G203 -- our own files
	if err := s.local(r); err != nil {
		return err
	}
	if s.trusted(r) {
		list, err := s.list(r)
		if err != nil {
			return err
		}
		values.List, values.Workloads, values.Problems, values.Version = true, list.Workloads, list.Problems, s.cfg.Version
	}
	var b bytes.Buffer
	if err := s.page.template.Execute(&b, values); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes())
	return nil
}
