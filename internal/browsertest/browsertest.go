// Package browsertest gives tests a real browser without a window, and what a
// browser makes of a page: contrast, the names of its controls, its pictures.
package browsertest

import (
	"context"
	"encoding/json"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var programs = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

// A Tab is the one tab of a browser that ends with its test.
type Tab struct {
	t   testing.TB
	Ctx context.Context // of chromedp

	mu         sync.Mutex
	complaints []string
	requests   []string
}

// Open starts a browser. flags are switches of Chromium with their values.
// Without a browser the test is skipped.
func Open(t testing.TB, flags map[string]any) *Tab {
	t.Helper()
	program := ""
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("no browser: scripts/need-browser installs one")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(2*time.Minute))
	for name, value := range flags {
		options = append(options, chromedp.Flag(name, value))
	}
	ctx, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, end = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); end() }) // waits for its process
	tab := &Tab{t: t, Ctx: ctx}
	tab.listen()
	return tab
}

// listen keeps what the browser complains of and asks for.
func (x *Tab) listen() {
	x.t.Helper()
	require.NoError(x.t, chromedp.Listen(x.Ctx, func(event any) {
		x.mu.Lock()
		defer x.mu.Unlock()
		switch event := event.(type) {
		case *log.EventEntryAdded:
			x.complaints = append(x.complaints, event.Entry.Text)
		case *runtime.EventConsoleAPICalled:
			x.complaints = append(x.complaints, string(event.Type))
		case *runtime.EventExceptionThrown:
			x.complaints = append(x.complaints, event.ExceptionDetails.Text)
		case *network.EventRequestWillBeSent:
			x.requests = append(x.requests, event.Request.URL)
		}
	}))
	_, err := chromedp.Call(x.Ctx, network.Enable, network.EnableParams{})
	require.NoError(x.t, err)
	_, err = chromedp.Call(x.Ctx, log.Enable, cdp.Empty{})
	require.NoError(x.t, err)
}

// Heard gives what the browser complained of, and the addresses that it asked
// for, since it was called last.
func (x *Tab) Heard() (complaints, requests []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	complaints, requests = x.complaints, x.requests
	x.complaints, x.requests = nil, nil
	return complaints, requests
}

// Do does what a person would.
func (x *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	x.t.Helper()
	require.NoError(x.t, chromedp.Do(x.Ctx, actions...))
}

// Visit opens a page and waits until it has loaded.
func (x *Tab) Visit(url string) {
	x.t.Helper()
	x.Do(chromedp.Navigate(url))
}

// Eval gives the value of an expression in the page.
func Eval[T any](x *Tab, expression string) T {
	x.t.Helper()
	v, err := chromedp.Run(x.Ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(x.t, err, expression)
	return v
}

// Until waits until an expression is true in the page, which may be loaded
// anew meanwhile.
func (x *Tab) Until(expression string) {
	x.t.Helper()
	require.Eventually(x.t, func() bool {
		v, err := chromedp.Run(x.Ctx, chromedp.Evaluate[bool](expression))
		return err == nil && v
	}, 20*time.Second, 10*time.Millisecond, expression)
}

// Screen sets the width and height of the window in CSS pixels and the colours
// that the page is asked for, "light" or "dark".
func (x *Tab) Screen(scheme string, width, height int64) {
	x.t.Helper()
	x.Do(chromedp.EmulateViewport(width, height))
	_, err := chromedp.Call(x.Ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	require.NoError(x.t, err)
}

// Picture is the window as PNG.
func (x *Tab) Picture() []byte {
	x.t.Helper()
	png, err := chromedp.Run(x.Ctx, chromedp.CaptureScreenshot())
	require.NoError(x.t, err)
	return png
}

// NoScripts turns JavaScript off, or on again, for pages opened from now on.
func (x *Tab) NoScripts(off bool) {
	x.t.Helper()
	_, err := chromedp.Call(x.Ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off})
	require.NoError(x.t, err)
}

// A Look is what a browser makes of a page.
type Look struct {
	// Overflow is how far the page is wider than the window, in CSS pixels.
	Overflow float64 `json:"overflow"`
	// Unreadable are visible texts of less contrast than WCAG 2.2 AA asks
	// for, 4.5 or 3 for large ones, with their contrast.
	Unreadable []string `json:"unreadable"`
	// Texts is how many texts were looked at.
	Texts int `json:"texts"`
}

// look follows WCAG 2.2, success criterion 1.4.3, and the formulas for
// relative luminance and contrast that it refers to.
const look = `(() => {
  const numbers = c => c.match(/[\d.]+/g).map(Number);
  const light = c => {
    const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const over = (top, below) => { const a = top.length > 3 ? top[3] : 1; return [0, 1, 2].map(i => top[i] * a + below[i] * (1 - a)); };
  const canvas = matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
  const ground = e => e ? over(numbers(getComputedStyle(e).backgroundColor), ground(e.parentElement)) : canvas;
  const unreadable = [];
  let texts = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim(), e = walk.currentNode.parentElement;
    if (!text || !e.checkVisibility({opacityProperty: true, visibilityProperty: true}) || /^(SCRIPT|STYLE|NOSCRIPT)$/.test(e.tagName) || e.closest('noscript')) continue;
    texts++;
    const style = getComputedStyle(e), below = ground(e);
    const paint = e.closest('svg') && style.fill !== 'none' ? style.fill : style.color;
    const a = light(over(numbers(paint), below)), b = light(below);
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    if (contrast < (large ? 3 : 4.5)) unreadable.push(contrast.toFixed(2) + ': ' + text.slice(0, 40));
  }
  return {overflow: document.documentElement.scrollWidth - innerWidth, unreadable, texts};
})()`

// Look measures the page.
func (x *Tab) Look() Look {
	x.t.Helper()
	return Eval[Look](x, look)
}

// A Node is one entry of the accessibility tree: what a screen reader has.
type Node struct {
	Role, Name string
	Live       string // "polite" or "assertive" for the root of a live region
}

// Tree gives the accessibility tree, without what it ignores.
func (x *Tab) Tree() []Node {
	x.t.Helper()
	found, err := chromedp.Call(x.Ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	require.NoError(x.t, err)
	var tree []Node
	for _, n := range found.Nodes {
		if n.Ignored {
			continue
		}
		node := Node{Role: text(n.Role), Name: text(n.Name)}
		for _, p := range n.Properties {
			if p.Name == accessibility.PropertyNameLive {
				node.Live = text(p.Value)
			}
		}
		tree = append(tree, node)
	}
	return tree
}

func text(v *accessibility.Value) (s string) {
	if v != nil {
		_ = json.Unmarshal([]byte(v.Value), &s) // "" for what is no string
	}
	return s
}

// Controls are the roles that a person acts on.
var Controls = map[string]bool{
	"button": true, "link": true, "textbox": true, "searchbox": true, "combobox": true, "checkbox": true, "radio": true,
	"switch": true, "slider": true, "menuitem": true, "tab": true, "listbox": true, "progressbar": true, "disclosuretriangle": true,
}
