package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/workload"
)

// maxProblems bounds the problems that are told of one node, in bytes.
const maxProblems = maxValue / 2

// ReplaceProblems makes ps all that is wrong with the descriptions of a node.
// Of very many the first are told, and how many there are besides.
func (b *Bus) ReplaceProblems(ctx context.Context, node string, ps []workload.Problem) error {
	key := subject(keyProblems, node)
	known, ok, err := b.readLast(ctx, streamProblems, key)
	if err == nil && ok {
		_, _, err = decodeProblems(known)
	}
	unreadable := errors.Is(err, ErrMalformed) || errors.Is(err, ErrVersion)
	if err != nil && !unreadable {
		return fmt.Errorf("read problems of %s: %w", node, err)
	}
	msg, err := b.message(key, envelope{kind: "problems", about: node}, fitting(ps))
	if err == nil && (unreadable || (len(ps) > 0 || ok) && string(known.data) != string(msg.Data)) {
		err = b.put(ctx, msg)
	}
	if err != nil {
		return fmt.Errorf("write problems of %s: %w", node, err)
	}
	return nil
}

// fitting gives as many problems as one record may hold.
func fitting(ps []workload.Problem) []workload.Problem {
	size := 0
	for i, p := range ps {
		data, err := json.Marshal(p)
		if size += len(data) + 1; err != nil || size > maxProblems {
			more := workload.Problem{Place: "-", Message: fmt.Sprintf("and %d more", len(ps)-i)}
			return append(slices.Clone(ps[:i]), more)
		}
	}
	return append([]workload.Problem{}, ps...)
}

// FollowProblems hands over what is wrong with the descriptions of every
// node, sorted by workload and place: first what is stored, then after every
// change. h is called by one goroutine. It blocks like FollowWorkloads.
func (b *Bus) FollowProblems(ctx context.Context, h func([]workload.Problem)) error {
	nodes := map[string][]workload.Problem{}
	f := &feed{
		bus: b, stream: streamProblems, source: keyProblems + ".>", live: subjectProblems + ".>", kind: "problems",
		reset:   func() { clear(nodes) },
		settled: func() { h(sorted(nodes)) },
		take: func(r record) {
			node, ps, err := decodeProblems(r)
			if err != nil {
				b.skip("problems", r.subject, err)
				return
			}
			nodes[node] = ps
		},
	}
	return f.run(ctx)
}

func decodeProblems(r record) (node string, ps []workload.Problem, err error) {
	node, err = parseName(keyProblems, r.subject)
	if err != nil || r.deleted() {
		return node, nil, err
	}
	if err := decode("problems", node, r.header, r.data, &ps); err != nil {
		return "", nil, err
	}
	return node, ps, nil
}

func sorted(nodes map[string][]workload.Problem) []workload.Problem {
	var all []workload.Problem
	for _, ps := range nodes {
		all = append(all, ps...)
	}
	slices.SortFunc(all, func(x, y workload.Problem) int {
		return strings.Compare(x.Workload+"\x00"+x.Place+"\x00"+x.Message, y.Workload+"\x00"+y.Place+"\x00"+y.Message)
	})
	return all
}
