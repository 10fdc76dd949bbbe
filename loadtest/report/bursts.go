//go:build linux

package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rouse-dev/rouse/loadtest/burst"
)

// oneBurst is the result of `loadtest burst`.
type oneBurst struct {
	origin *Origin
	result burst.Result
}

func openBurst(dir string, origin *Origin) (source, error) {
	b := &oneBurst{origin: origin}
	text, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err == nil {
		err = json.Unmarshal(text, &b.result)
	}
	if err != nil {
		return nil, fmt.Errorf("read the result in %s: %w", dir, err)
	}
	return b, nil
}

// check counts the requests: a burst leaves no other file.
func (b *oneBurst) check() (c Check) {
	sum := b.result.Lost
	for _, s := range b.result.Statuses {
		sum += s.Count
	}
	c.within("result.json", "requests", float64(b.result.Requests), float64(sum), float64(sum))
	return c
}

func (b *oneBurst) part() part {
	r := b.result
	p := part{
		Title: "A burst", Subtitle: fmt.Sprintf("%s requests at once to %s, which was asleep.", whole(int64(r.Requests)), b.origin.URL),
		Cards: []card{
			{"Answered", whole(int64(r.Requests - r.Lost)), fmt.Sprintf("of %s", whole(int64(r.Requests)))},
			{"Sent within", ms(r.SendMS) + " ms", ""},
			{"Last answer", ms(r.LastAfterReadyMS) + " ms", "after readiness"},
		},
		Manifest: manifestFacts(b.origin.Manifest),
	}
	if r.HeldBytes != 0 {
		p.Cards = append(p.Cards, card{"A held request", fmt.Sprintf("%.1f KiB", float64(r.HeldBytes)/1024), fmt.Sprintf("beside %.1f MiB idle", float64(r.IdleBytes)/(1<<20))})
	}
	v := &p.Verdict
	v.against(b.origin.Problem != "", "the command failed: %s", b.origin.Problem)
	v.against(r.Lost > 0, "%d of %d requests had no answer", r.Lost, r.Requests)
	v.revision(b.origin.Manifest.Revision)
	if len(r.Statuses) > 0 {
		p.Sections = []section{{Title: "By status", Note: "From the sending of a request to the end of its answer.", Figures: []figure{b.ranges()}}}
	}
	return p
}

// ranges draws from the fastest to the slowest answer of each status.
func (b *oneBurst) ranges() figure {
	f := figure{
		Title:  "Time to the whole answer",
		Legend: []key{{"line c1 thin", "fastest to slowest"}, {"c1 dot", "median"}, {"c2 dot", "p99"}},
	}
	statuses := b.result.Statuses
	t := table{Caption: "Answers by status, ms", Head: []string{"Status", "Answers", "With Retry-After", "Min", "Median", "p99", "Max"}}
	for _, s := range statuses {
		t.Rows = append(t.Rows, row{Cells: []string{
			fmt.Sprint(s.Status), whole(int64(s.Count)), whole(int64(s.Retry)), ms(s.MinMS), ms(s.MedianMS), ms(s.P99MS), ms(s.MaxMS),
		}})
	}
	f.Tables = []table{t}
	f.draw(func(width float64) *plot {
		const line = 36
		p := newPlot(width, 70+float64(len(statuses))*line)
		p.Title, p.Desc = f.Title, fmt.Sprintf("%d statuses; their times are in the table.", len(statuses))
		lo, hi := statuses[0].MinMS, statuses[0].MaxMS
		for _, s := range statuses {
			lo, hi = min(lo, s.MinMS), max(hi, s.MaxMS)
		}
		x := upward(lo, hi, p.left, p.right-8, 5)
		p.gridX(x, "ms")
		for i, s := range statuses {
			y := p.top + (float64(i)+0.5)*line
			p.text("name", "end", p.left-8, y+4, fmt.Sprint(s.Status))
			p.path("line c1 thin", fmt.Sprintf("M%.1f %.1fH%.1f", x.at(s.MinMS), y, x.at(s.MaxMS)))
			p.dot("dot c1", x.at(s.MedianMS), y, 5, fmt.Sprintf("%d: median %s ms", s.Status, ms(s.MedianMS)))
			p.dot("dot c2", x.at(s.P99MS), y, 4, fmt.Sprintf("%d: p99 %s ms", s.Status, ms(s.P99MS)))
		}
		return p
	})
	return f
}
