//go:build linux

package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

// A page is the whole report.
type page struct {
	Title   string
	Verdict Verdict
	// Overview is of a page with several parts.
	Overview []section
	Parts    []part
}

// A part is one result.
type part struct {
	// Name of its directory; empty of the report's own.
	Name, Title, Subtitle string
	Verdict               Verdict
	Cards                 []card
	Sections              []section
	Manifest              []fact
}

// A card is one figure, large.
type card struct{ Label, Value, Note string }

// A section has a heading and figures.
type section struct {
	Title, Note string
	Figures     []figure
}

// A figure is a plot, drawn for each width that its column may have, and the
// tables of what it shows. The tables come first: they may leave less room.
type figure struct {
	Title, Note string
	Legend      []key
	Drawings    []drawing
	Tables      []table
}

// A drawing is a plot and the name of its width.
type drawing struct {
	Kind string
	Plot *plot
}

// Paired tells whether a table is to be beside a plot.
func (f figure) Paired() bool { return len(f.Drawings) > 0 && len(f.Tables) > 0 }

// Broad tells whether there is a drawing of the whole width.
func (f figure) Broad() bool { return len(f.Drawings) > 2 }

// A key explains a mark of a plot.
type key struct{ Class, Text string }

// D is the path of its sample.
func (k key) D() string {
	if k.Class == "cross" {
		return "M9.5 2.5L16.5 9.5M9.5 9.5L16.5 2.5"
	}
	return "M1 6H25"
}

// A table is of numbers, unless its class is words.
type table struct {
	Class   string
	Caption string
	Head    []string
	Rows    []row
}

// A row begins with its heading.
type row struct {
	Class string
	Cells []string
}

// A fact is a line of the manifest.
type fact struct{ Name, Value string }

var (
	style     = template.CSS(pageStyle) // #nosec G203 -- our own file
	styleSum  = sha256.Sum256([]byte(pageStyle))
	styleHash = "'sha256-" + base64.StdEncoding.EncodeToString(styleSum[:]) + "'"

	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"id":   func(parts ...any) string { return fmt.Sprint(parts...) },
		"args": args,
	}).Parse(pageSource))
)

// args lets a template be given several values, by name.
func args(pairs ...any) map[string]any {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

func (p *page) render(w io.Writer) error {
	return pageTemplate.Execute(w, map[string]any{"Page": p, "Style": style, "StyleHash": styleHash})
}

// conclude gives the page its title and the verdict on all of it.
func (p *page) conclude(sources []named) {
	if len(p.Parts) == 1 && p.Parts[0].Name == "" {
		p.Title, p.Verdict = p.Parts[0].Title, p.Parts[0].Verdict
		return
	}
	p.Title = fmt.Sprintf("%d results", len(p.Parts))
	for _, one := range p.Parts {
		for _, reason := range one.Verdict.Against {
			p.Verdict.against(true, "%s: %s", one.Name, reason)
		}
		for _, reason := range one.Verdict.Reservations {
			p.Verdict.reserve(true, "%s: %s", one.Name, reason)
		}
	}
	if p.Verdict.Valid() {
		p.Verdict.speakFor("Each of the %d results below is valid by itself.", len(p.Parts))
	}
	if s, ok := sideBySide(sources); ok {
		p.Overview = append(p.Overview, s)
	}
}
