package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// A screen shows one picture after the other in the same place of a terminal,
// apart from what was there before.
type screen struct {
	out  io.Writer
	size func() (width, height int, err error)
}

// The sequences that every terminal of today knows.
const (
	otherScreen = "\x1b[?1049h\x1b[?25l" // and no cursor
	firstScreen = "\x1b[?25h\x1b[?1049l"
	goHome      = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// screenOf is the screen behind out; false where nothing can be redrawn.
func screenOf(out io.Writer) (*screen, bool) {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil, false
	}
	size := func() (int, int, error) { return term.GetSize(int(file.Fd())) }
	if _, _, err := size(); err != nil {
		return nil, false
	}
	return &screen{out: out, size: size}, true
}

func (s *screen) open() error { return s.write(otherScreen) }

// close brings back what was there before.
func (s *screen) close() error { return s.write(firstScreen) }

// draw shows as much of the text as there is room for.
func (s *screen) draw(text string) error {
	width, height, err := s.size()
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = lines[:min(len(lines), max(1, height))]
	var b strings.Builder
	b.WriteString(goHome)
	for i, line := range lines {
		b.WriteString(cutLine(line, width) + clearLine)
		if i < len(lines)-1 {
			b.WriteString("\r\n") // behind the last one the screen would move
		}
	}
	return s.write(b.String() + clearBelow)
}

func (s *screen) write(text string) error {
	_, err := io.WriteString(s.out, text)
	return err
}

// cutLine leaves so many characters of a line, and all of its colours.
func cutLine(line string, width int) string {
	var b strings.Builder
	left := width
	for line != "" {
		if code := colorCode.FindStringIndex(line); code != nil && code[0] == 0 {
			b.WriteString(line[:code[1]])
			line = line[code[1]:]
			continue
		}
		_, size := utf8.DecodeRuneInString(line)
		if left--; left >= 0 {
			b.WriteString(line[:size])
		}
		line = line[size:]
	}
	return b.String()
}

// A picture gathers what is to be shown at once on another writer, and takes
// the colours of that.
type picture struct {
	bytes.Buffer
	of io.Writer
}
