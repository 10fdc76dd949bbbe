//go:build linux

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

const (
	// largeLog is the size from which on a log is put aside at a start.
	largeLog = 8 << 20
	// logWindow is how much of the end of a log is read.
	logWindow = 1 << 20
	// maxLine is where a line is cut.
	maxLine = 4 << 10
	// startMark begins the line that separates two starts in a log.
	startMark = "=== started by rouse at "
)

func logPath(dir, name string) string { return filepath.Join(dir, name+".log") }

// openLog opens the log of a workload for one more start. A large one is put
// aside, in place of the one that was put aside before.
func openLog(dir, name string, now time.Time) (*os.File, error) {
	path := logPath(dir, name)
	if info, err := os.Stat(path); err == nil && info.Size() > largeLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, fmt.Errorf("put log aside: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := markStart(f, now); err != nil {
		f.Close()
		return nil, fmt.Errorf("write log: %w", err)
	}
	return f, nil
}

// markStart writes the line that tells this start from the last. The last may
// have ended in the middle of a line.
func markStart(f *os.File, now time.Time) error {
	_, err := fmt.Fprintf(f, "\n%s%s ===\n", startMark, now.UTC().Format(time.RFC3339Nano))
	return err
}

// Logs returns the last lines of the last start, standard output and error
// in the order they were written. Lines are cut at 4 KiB, and no more than
// the last MiB is looked at.
func (r *Runtime) Logs(ctx context.Context, w workload.Workload, lines int) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("logs of %s: %w", w.Name, err)
	}
	data, err := tail(logPath(r.dir, w.Name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // it never started
	}
	if err != nil {
		return nil, fmt.Errorf("logs of %s: %w", w.Name, err)
	}
	return lastLines(data, lines), nil
}

// tail reads the end of a file.
func tail(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-logWindow)
	return io.ReadAll(io.NewSectionReader(f, from, logWindow))
}

// lastLines cuts off what is before the last start, and gives the last n
// lines of the rest. What they hold is anything: it is made valid text.
func lastLines(data []byte, n int) []string {
	if i := bytes.LastIndex(data, []byte("\n"+startMark)); i >= 0 {
		_, data, _ = bytes.Cut(data[i+1:], []byte("\n"))
	}
	data = bytes.TrimSuffix(data, []byte("\n"))
	if len(data) == 0 || n <= 0 {
		return nil
	}
	all := bytes.Split(data, []byte("\n"))
	all = all[max(0, len(all)-n):]
	lines := make([]string, len(all))
	for i, line := range all {
		line = bytes.TrimSuffix(line, []byte("\r"))
		lines[i] = strings.ToValidUTF8(string(line[:min(len(line), maxLine)]), "\uFFFD")
	}
	return lines
}
