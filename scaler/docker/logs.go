package docker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/workload"
)

// Logs returns the last lines that w's containers wrote to both outputs since
// their last start, in the order of their writing. With several containers
// each line begins with the name of its own.
func (r *Runtime) Logs(ctx context.Context, w workload.Workload, lines int) ([]string, error) {
	if !r.Connected() {
		if err := r.sync(ctx, true); err != nil {
			return nil, fmt.Errorf("logs of %s: %w", w.Name, err)
		}
	}
	ids := r.view.current(&w)
	var all []line
	for _, id := range ids {
		own, err := r.logsOf(ctx, id, lines)
		if err != nil {
			return nil, fmt.Errorf("logs of %s: %w", w.Name, err)
		}
		all = append(all, own...)
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	all = all[max(0, len(all)-max(0, lines)):]
	texts := make([]string, len(all))
	for i, l := range all {
		texts[i] = l.text
		if len(ids) > 1 {
			texts[i] = l.container + " | " + l.text
		}
	}
	return texts, nil
}

// A line is what a container wrote, with the engine's time in a form that
// sorts as text.
type line struct {
	at, container, text string
}

func (r *Runtime) logsOf(ctx context.Context, id string, lines int) ([]line, error) {
	rec, err := r.known(ctx, id)
	if err != nil {
		return nil, err
	}
	if rec.startedAt.IsZero() {
		return nil, nil // it never ran
	}
	e, _ := r.view.get(id)
	raw, err := r.engine.output(ctx, rec, e.writesFrom, lines)
	if err != nil {
		return nil, fmt.Errorf("container %s: %w", rec.Name, err)
	}
	own := make([]line, len(raw))
	for i, text := range raw {
		at, rest, _ := strings.Cut(text, " ")
		own[i] = line{at: at, container: rec.Name, text: rest}
	}
	return own, nil
}
