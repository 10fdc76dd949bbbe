package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rouse-dev/rouse/workload"
)

// PutWorkload makes a workload known to every gateway, in place of what was
// known under its name.
func (b *Bus) PutWorkload(ctx context.Context, w workload.Workload) error {
	msg, err := b.message(subject(keyWorkloads, w.Name), envelope{kind: "workload", about: w.Name}, w)
	if err == nil {
		err = b.put(ctx, msg)
	}
	if err != nil {
		return fmt.Errorf("write workload %s: %w", w.Name, err)
	}
	return nil
}

// DeleteWorkload takes a workload away from every gateway. One that is not
// known is no error.
func (b *Bus) DeleteWorkload(ctx context.Context, name string) error {
	msg, err := b.message(subject(keyWorkloads, name), envelope{kind: "workload", about: name}, nil)
	if err == nil {
		msg.Data = nil
		msg.Header.Set("KV-Operation", "DEL")
		err = b.put(ctx, msg)
	}
	if err != nil {
		return fmt.Errorf("delete workload %s: %w", name, err)
	}
	return nil
}

// ReplaceWorkloads makes ws all that is known of a node: it writes what
// differs and deletes what is gone. A name that another node had is taken
// over, with a warning: the last to describe it has it. To call it again
// costs one reading, and brings back what was lost with a store.
func (b *Bus) ReplaceWorkloads(ctx context.Context, node string, ws []workload.Workload) error {
	known, err := b.knownWorkloads(ctx)
	if err != nil {
		return fmt.Errorf("read workloads: %w", err)
	}
	var failed []error
	for _, w := range ws {
		w.Node = node
		old, ok := known[w.Name]
		delete(known, w.Name)
		if ok && old.node != "" && old.node != node {
			b.log.Warn("workload is described by two nodes", "workload", w.Name, "node", node, "before", old.node)
		}
		if !ok || !old.is(w) {
			failed = append(failed, b.PutWorkload(ctx, w))
		}
	}
	for name, old := range known {
		if old.node == node {
			failed = append(failed, b.DeleteWorkload(ctx, name))
		}
	}
	return errors.Join(failed...)
}

type knownWorkload struct {
	node string
	data []byte
}

func (k knownWorkload) is(w workload.Workload) bool {
	data, err := json.Marshal(w)
	return err == nil && bytes.Equal(data, k.data)
}

// knownWorkloads are those that are stored, by name. One that cannot be read
// is of no node, and like no other.
func (b *Bus) knownWorkloads(ctx context.Context) (map[string]knownWorkload, error) {
	known := map[string]knownWorkload{}
	err := b.retry(ctx, pageLimit, func(ctx context.Context) error {
		clear(known)
		return b.read(ctx, window{stream: streamWorkloads, subject: keyWorkloads + ".>"}, func(r record) {
			name, err := parseName(keyWorkloads, r.subject)
			if err != nil || r.deleted() {
				return
			}
			var k knownWorkload
			if w, err := decodeWorkload(r); err == nil {
				k = knownWorkload{w.Node, r.data}
			}
			known[name] = k
		})
	})
	return known, err
}

// decodeWorkload reads a record of the bucket that is not a deletion.
func decodeWorkload(r record) (workload.Workload, error) {
	name, err := parseName(keyWorkloads, r.subject)
	if err != nil {
		return workload.Workload{}, err
	}
	var w workload.Workload
	if err := decode("workload", name, r.header, r.data, &w); err != nil {
		return workload.Workload{}, err
	}
	if w.Node == "" {
		return workload.Workload{}, fmt.Errorf("workload %s: %w: without a node", name, ErrMalformed)
	}
	for _, n := range []int64{
		int64(w.IdleTimeout), int64(w.HoldTimeout), int64(w.WakeTimeout), int64(w.PageAfter), int64(w.StopTimeout),
		int64(w.Port), int64(w.QueueRequests), int64(w.Min), int64(w.Max), int64(w.TargetConcurrency),
	} {
		if n < 0 {
			return workload.Workload{}, fmt.Errorf("workload %s: %w: numbers that cannot be", name, ErrMalformed)
		}
	}
	w.Name = name
	return w, nil
}
