package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// settleDelay puts the several changes of one save together.
const settleDelay = 100 * time.Millisecond

// watchConfig reads the configuration again on SIGHUP and when its file
// changes, until ctx ends. Defaults and workloads apply at once; other keys
// that changed are named, and apply at the next start. A bad file changes
// nothing.
func (n *node) watchConfig(load func() (Config, error)) part {
	return func(ctx context.Context) error {
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
		changes, stop := n.fileChanges()
		defer stop()
		for {
			select {
			case <-hup:
			case e := <-changes:
				if filepath.Clean(e.Name) != filepath.Clean(n.core.cfg.File) {
					continue
				}
				settle(ctx, changes)
			case <-ctx.Done():
				return nil
			}
			n.apply(load())
		}
	}
}

// noReload answers SIGHUP in the roles whose settings all apply at the start:
// the default would end them.
func noReload(c *core) part {
	return func(ctx context.Context) error {
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
		for {
			select {
			case <-hup:
				c.log.Warn("only certificates are read again, settings of this role apply at the next start")
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// fileChanges watches the folder of the file: editors replace files.
func (n *node) fileChanges() (<-chan fsnotify.Event, func()) {
	if n.core.cfg.File == "" {
		return nil, func() {}
	}
	w, err := fsnotify.NewWatcher()
	if err == nil {
		err = w.Add(filepath.Dir(n.core.cfg.File))
	}
	if err != nil {
		n.log.Warn("config file is not watched, SIGHUP reads it again", "file", n.core.cfg.File, "error", err)
		return nil, func() {}
	}
	return w.Events, func() { _ = w.Close() }
}

func settle(ctx context.Context, changes <-chan fsnotify.Event) {
	quiet := time.NewTimer(settleDelay)
	defer quiet.Stop()
	for {
		select {
		case <-changes:
			quiet.Reset(settleDelay)
		case <-quiet.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (n *node) apply(next Config, err error) {
	n.metrics.Reloaded(err == nil)
	if err != nil {
		n.log.Error("configuration not reloaded, the one before stays in force", "problems", err.Error())
		return
	}
	if keys := needRestart(n.core.cfg, next); len(keys) > 0 {
		n.log.Warn("changed keys apply at the next start", "keys", strings.Join(keys, ", "))
	}
	n.mu.Lock()
	n.cfg = next
	n.mu.Unlock()
	n.log.Info("configuration reloaded", "file", next.File, "workloads", len(next.Workloads))
	n.again()
}

// needRestart lists the keys that differ and do not apply at once.
func needRestart(before, after Config) []string {
	old := configTable(&before)
	var keys []string
	for _, k := range configTable(&after) {
		if k.Value.Shape == strict.Opaque || strings.HasPrefix(k.Name, "defaults.") {
			continue
		}
		if o := old.Find(k.Name); o != nil && !reflect.DeepEqual(o.Value.JSON(), k.Value.JSON()) {
			keys = append(keys, k.Name)
		}
	}
	if !reflect.DeepEqual(webhookViews(before.Webhooks), webhookViews(after.Webhooks)) {
		keys = append(keys, "webhooks")
	}
	slices.Sort(keys)
	return keys
}

// complain logs problems that were not there before, once each.
func (n *node) complain(problems []workload.Problem) {
	now := map[string]bool{}
	for _, p := range problems {
		line := fmt.Sprint(p.Workload, p.Error())
		now[line] = true
		if !n.complained[line] {
			n.log.Warn("workload has a problem", "workload", p.Workload, "place", p.Place, "problem", p.Message, "fix", p.Fix)
		}
	}
	n.complained = now
}
