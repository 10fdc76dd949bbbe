package sablier

import (
	"bytes"
	_ "embed"
	"html/template"
	"strings"
	"time"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// themeNames are Sablier's, whose colours ours are near to, and our own, which
// is taken when none is named.
var themeNames = []string{"ghost", "hacker-terminal", "matrix", "rouse", "shuffle"}

// themes are the colours of the one page: ground, ink, mark, and the font.
var themes = map[string]template.CSS{
	"rouse":           "--ground:#f6f7f9;--ink:#1c2430;--mark:#2f6fdb;--font:system-ui,sans-serif",
	"ghost":           "--ground:#28254c;--ink:#f4f3ff;--mark:#8c84d9;--font:system-ui,sans-serif",
	"hacker-terminal": "--ground:#11160f;--ink:#6df08a;--mark:#6df08a;--font:ui-monospace,monospace",
	"matrix":          "--ground:#000;--ink:#2bd94f;--mark:#0f8f2c;--font:ui-monospace,monospace",
	"shuffle":         "--ground:#fff8ee;--ink:#33261a;--mark:#e0662f;--font:ui-rounded,system-ui,sans-serif",
}

// A pageData is what the page shows. It loads nothing and needs no script:
// what a plugin passes on of our answer is the body alone.
type pageData struct {
	Theme     template.CSS
	Title     string
	Refresh   int // seconds
	Failed    bool
	Instances []instanceInfo // empty where no details are wanted
	KeptFor   string
}

func renderPage(q *query, parts []instanceInfo) []byte {
	d := pageData{Theme: themes["rouse"], Title: q.displayName, Refresh: seconds(q.refresh), KeptFor: q.keep.String()}
	if theme, known := themes[q.theme]; known {
		d.Theme = theme
	}
	if d.Title == "" {
		d.Title = titleOf(q, parts)
	}
	for _, part := range parts {
		d.Failed = d.Failed || part.Status == statusError
	}
	if q.details {
		d.Instances = parts
	}
	var page bytes.Buffer
	_ = pageTemplate.Execute(&page, d) // of fixed shape, into memory
	return page.Bytes()
}

func titleOf(q *query, parts []instanceInfo) string {
	if q.group != "" {
		return q.group
	}
	names := make([]string, len(parts))
	for i, part := range parts {
		names[i] = part.Name
	}
	return strings.Join(names, ", ")
}

// seconds is at least 1: 0 would have a browser ask without a pause.
func seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

// readyPage is for whoever shows it although all is ready: plugins do not.
var readyPage = []byte("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Ready</title></head><body><p>Ready.</p></body></html>\n")
