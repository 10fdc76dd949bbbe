package main

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/loadtest/openloop"
)

// newProgress gives what shows an interval: a line that is written over on a
// terminal, or a line of JSON each.
func newProgress(how string, w *os.File) (func(openloop.Interval), error) {
	if _, err := unix.IoctlGetTermios(int(w.Fd()), unix.TCGETS); how == "auto" && err != nil {
		how = "none"
	}
	lines := json.NewEncoder(w)
	return pick("progress", how, map[string]func(openloop.Interval){
		"none": func(openloop.Interval) {},
		"json": func(i openloop.Interval) { _ = lines.Encode(i.Progress()) }, // nobody reads it: not worth an end
		"auto": func(i openloop.Interval) { line(w, i) },
	})
}

func line(w *os.File, i openloop.Interval) {
	p := i.Progress()
	phase, end := "", ""
	if p.WarmUp {
		phase = " warm-up"
	}
	if i.Last {
		end = "\n"
	}
	_, _ = fmt.Fprintf(w, "\r\x1b[K%5.0f s%s  sent %.0f/s  ok %.0f/s  failed %d  backlog %d  in flight %d  p95 %.3f ms%s",
		p.AtSeconds, phase, p.SendRate, p.OKRate, p.Failed, p.Backlog, p.InFlight, p.IntendedP, end)
}
