package waitpage

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// maxTheme bounds the file of a theme, in bytes.
const maxTheme = 1 << 20

var functions = template.FuncMap{"seconds": seconds}

var builtIn = template.Must(template.New("page").Funcs(functions).Parse(pageHTML))

// A Theme is a template of the user's in place of the built-in page: a file
// in the language of html/template with the fields of Values, and the function
// "seconds" for durations. It is read again when it has changed. As long as it
// cannot be read or has a fault, the built-in page stands in for it. A nil
// Theme is the built-in page. It is safe for concurrent use.
type Theme struct {
	file   string
	broken func(error)

	mu       sync.Mutex
	looked   time.Time // when the file was last looked at; guarded by mu
	modified time.Time // of the file as it was read; guarded by mu
	size     int64     // guarded by mu
	template *template.Template
}

// lookEvery is the most often that a theme's file is looked at.
const lookEvery = time.Second

// NewTheme makes the theme of a file. broken, which may be nil, is called with
// what is wrong with it, once for each time that it changes for the worse.
func NewTheme(file string, broken func(error)) *Theme {
	if broken == nil {
		broken = func(error) {}
	}
	t := &Theme{file: file, broken: broken, template: builtIn}
	t.look(time.Now())
	return t
}

// CheckTheme reports what is wrong with a theme's file; the error names the
// place.
func CheckTheme(file string) error {
	_, err := load(file)
	return err
}

// load reads a template and tries it on both kinds of page, so that a wrong
// field is found now and not when somebody waits.
func load(file string) (*template.Template, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxTheme+1))
	if err != nil {
		return nil, err // it names the file
	}
	if len(text) > maxTheme {
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxTheme)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fmt.Errorf("%s is empty", file)
	}
	t, err := template.New(filepath.Base(file)).Funcs(functions).Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, sample := range samples() {
		if err := t.Execute(io.Discard, sample); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return t, nil
}

// samples are a page of each kind.
func samples() []Values {
	waiting := Page{Title: "wiki is waking up", Detail: "It was asleep.", Workload: "wiki", RequestID: "1",
		StatusURL: "/", RetryAfter: time.Second}
	waiting.Progress.Steps, waiting.Progress.Expected = Steps(workload.Wake{}), time.Second
	return []Values{waiting.values(""), Page{Status: 502, Title: "wiki could not be started"}.values("")}
}

// current is the template to be used now.
func (t *Theme) current(now time.Time) *template.Template {
	if t == nil {
		return builtIn
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.looked) >= lookEvery {
		t.look(now)
	}
	return t.template
}

// look reads the file if it has changed. Under the lock.
func (t *Theme) look(now time.Time) {
	first := t.looked.IsZero()
	t.looked = now
	var modified time.Time
	var size int64
	if info, err := os.Stat(t.file); err == nil {
		modified, size = info.ModTime(), info.Size()
	}
	if !first && modified.Equal(t.modified) && size == t.size {
		return
	}
	t.modified, t.size = modified, size
	next, err := load(t.file)
	if err != nil {
		t.broken(err)
		next = builtIn
	}
	t.template = next
}

// render makes the page, with the built-in template where the theme's fails.
func (t *Theme) render(v Values) []byte {
	var b bytes.Buffer
	used := t.current(time.Now())
	if err := used.Execute(&b, v); err != nil && used != builtIn {
		t.broken(fmt.Errorf("%s: %w", t.file, err))
		b.Reset()
		_ = builtIn.Execute(&b, v) // of fixed shape, and a buffer takes it all
	}
	return b.Bytes()
}
