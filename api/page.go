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
)

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

// A page is the table of workloads for a person with a browser. It works
// without scripts and loads nothing; its style is allowed by its hash.
type page struct {
	template  *template.Template
	styleHash string
}

func newPage() *page {
	sum := sha256.Sum256([]byte(pageStyle))
	return &page{
		template:  template.Must(template.New("page").Funcs(template.FuncMap{"stamp": stamp}).Parse(pageSource)),
		styleHash: "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	}
}

// stamp is a moment as the datetime attribute and the reader want it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (s *server) table(w http.ResponseWriter, r *http.Request) error {
	list, err := s.list(r)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = s.page.template.Execute(&b, map[string]any{
		"Style":   template.CSS(pageStyle), // #nosec G203 -- our own file
		"List":    list,
		"At":      time.Now(),
		"Version": s.cfg.Version,
	})
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes())
	return nil
}
