//go:build linux

package report

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/browsertest"
)

// What a browser makes of a page, measured in it.
type look struct {
	Overflow   float64  `json:"overflow"`   // of the page to the right, in pixels
	Ground     string   `json:"ground"`     // colour of the page
	Text       string   `json:"text"`       // what is to be read
	Unnamed    int      `json:"unnamed"`    // plots without title or description
	Doubled    []string `json:"doubled"`    // ids that are there twice
	Plots      int      `json:"plots"`      // that are to be seen
	Outside    []string `json:"outside"`    // texts beyond the edge of their plot
	SmallText  float64  `json:"smallText"`  // the least height of letters in plots, in pixels
	Unreadable []string `json:"unreadable"` // texts of too little contrast
}

const measure = `(() => {
  const seen = e => e.getClientRects().length > 0;
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  const plots = [...document.querySelectorAll('svg.plot')];
  const visible = plots.filter(seen);
  const outside = [], sizes = [20];
  for (const plot of visible) {
    const box = plot.viewBox.baseVal, scale = plot.getBoundingClientRect().width / box.width;
    for (const text of plot.querySelectorAll('text')) {
      const at = text.getBBox();
      if (at.x < -1 || at.y < -1 || at.x + at.width > box.width + 1 || at.y + at.height > box.height + 1) outside.push(text.textContent);
      sizes.push(parseFloat(getComputedStyle(text).fontSize) * scale);
    }
  }
  const light = c => {
    const [r, g, b] = c.match(/[\d.]+/g).map(Number).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (c !== 'rgba(0, 0, 0, 0)') return c;
    }
    return 'rgb(255, 255, 255)';
  };
  const unreadable = [...document.querySelectorAll('p, li, dt, dd, td, th, caption, figcaption, h1, h2, svg.plot text')].filter(seen).filter(e => {
    const style = getComputedStyle(e), of = light(e.closest('svg') ? style.fill : style.color), on = light(ground(e.closest('svg')?.parentElement ?? e));
    return (Math.max(of, on) + .05) / (Math.min(of, on) + .05) < 4.5;
  }).map(e => e.textContent.trim().slice(0, 40));
  return {
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    ground: getComputedStyle(document.documentElement).backgroundColor,
    text: document.body.innerText,
    unnamed: plots.filter(p => !p.querySelector('title')?.textContent || !p.querySelector('desc')?.textContent).length,
    doubled: ids.filter((id, i) => ids.indexOf(id) !== i),
    plots: visible.length, outside, smallText: Math.min(...sizes), unreadable,
  };
})()`

// pagesForBrowser are one of each kind, and what has to be read on it.
func pagesForBrowser(t *testing.T) map[string][]string {
	t.Helper()
	dir := in(t, "pages")
	at := func(name string) string { return filepath.Join(dir, name) }
	leaveRun(t, at("run"), load{began: noon, seconds: 3, step: 100 * time.Microsecond, failed: 3})
	leaveColdStarts(t, at("cold"), 21)
	leaveComparison(t, at("several/nginx"), time.Millisecond)
	leaveComparison(t, at("several/rouse"), time.Millisecond)
	leaveBurst(t, at("several/storm"))
	pages := map[string][]string{
		at("run"):     {"NOT VALID", "3 of 3003 requests failed", "Intended p99", "A CPU & more"},
		at("cold"):    {"Valid", "Added by Rouse, median", "20.00 ms"},
		at("several"): {"3 results", "Side by side", "6 of 7 trials were accepted", "Why trials were rejected", "LOADTEST"},
	}
	for dir := range pages {
		_, err := Write(dir)
		require.NoError(t, err)
	}
	return pages
}

func measured(tab *browsertest.Tab, scheme string, width int64) look {
	tab.Screen(scheme, width, 900)
	return browsertest.Eval[look](tab, measure)
}

func TestABrowserShowsThePages(t *testing.T) {
	tab := browsertest.Open(t, nil)
	for dir, words := range pagesForBrowser(t) {
		url := "file://" + filepath.Join(dir, Name)
		tab.Visit(url)
		grounds := map[string]bool{}
		for _, screen := range []struct {
			scheme string
			width  int64
		}{{"light", 1280}, {"light", 700}, {"light", 320}, {"dark", 320}} {
			l := measured(tab, screen.scheme, screen.width)
			where := fmt.Sprint(filepath.Base(dir), screen)
			grounds[l.Ground] = true
			assert.Zero(t, l.Overflow, where)
			assert.Empty(t, l.Outside, where)
			assert.Empty(t, l.Unreadable, where)
			assert.Empty(t, l.Doubled, where)
			assert.Zero(t, l.Unnamed, where)
			assert.Positive(t, l.Plots, where)
			assert.Greater(t, l.SmallText, 8.5, where)
			for _, word := range words {
				assert.Contains(t, l.Text, word, where)
			}
		}
		assert.Len(t, grounds, 2, "light and dark differ")
		complaints, requests := tab.Heard()
		assert.Empty(t, complaints)
		for _, asked := range requests {
			assert.True(t, asked == url || strings.HasPrefix(asked, "data:"), "it asks for %s", asked)
		}
	}
}
