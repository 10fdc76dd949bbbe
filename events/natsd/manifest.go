package natsd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// manifestEvery is how often the manifest is brought up to date.
const manifestEvery = 2 * time.Second

// A manifest is what there was, to be told from what the server found: of
// files that are gone nothing else tells.
type manifest map[string]streamMark // account/stream -> how far it had come

type streamMark struct {
	Created time.Time `json:"created"`
	LastSeq uint64    `json:"last_seq"`
	// Keeps: messages go only by another on the same subject, or by age.
	Keeps bool `json:"keeps"`
	// Until is when the last message goes by age; zero: never.
	Until    time.Time `json:"until,omitzero"`
	Messages uint64    `json:"messages"`
}

// emptied reports that all messages have gone, other than by their age.
func (was streamMark) emptied(is streamMark) bool {
	aged := !was.Until.IsZero() && time.Now().After(was.Until)
	return is.LastSeq == 0 || was.Keeps && !aged && was.Messages > 0 && is.Messages == 0
}

func manifestFile(dir string) string { return filepath.Join(dir, "rouse.streams.json") }

// readManifest gives an empty one where there is none, and also where it
// cannot be read: it is a help, and no reason not to start.
func readManifest(dir string, log *slog.Logger) manifest {
	data, err := os.ReadFile(manifestFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var m manifest
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		log.Warn("list of nats streams not readable", "file", manifestFile(dir), "error", err)
	}
	return m
}

// forget drops the list where the whole store was removed: there is nothing
// left to save, so that only a word of it is due.
func forget(opts Options) {
	if _, err := os.Lstat(jetstream(opts.StoreDir)); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := os.Remove(manifestFile(opts.StoreDir)); err == nil {
		opts.Logger.Error("nats store is gone, a new one is begun", "was", jetstream(opts.StoreDir))
	}
}

// write replaces the file as a whole.
func (m manifest) write(dir string) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	next := manifestFile(dir) + ".tmp"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, manifestFile(dir))
}

// present is what the server has now, in files.
func present(s *server.Server) (manifest, error) {
	info, err := s.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Config: true})
	if err != nil {
		return nil, err
	}
	m := manifest{}
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			if stream.Config != nil && stream.Config.Storage == server.FileStorage {
				m[account.Name+"/"+stream.Name] = mark(stream)
			}
		}
	}
	return m, nil
}

func mark(s server.StreamDetail) streamMark {
	m := streamMark{
		Created: s.Created, LastSeq: s.State.LastSeq, Messages: s.State.Msgs,
		Keeps: s.Config.Retention == server.LimitsPolicy,
	}
	if s.Config.MaxAge > 0 {
		m.Until = s.State.LastTime.Add(s.Config.MaxAge)
	}
	return m
}

// compare finds what was there and is gone. A stream that is a little shorter
// is told of and accepted: after a loss of power the last writes may be
// missing, unless every write is synced.
func (m manifest) compare(dir string, now manifest, log *slog.Logger) error {
	var gone []error
	for _, name := range slices.Sorted(maps.Keys(m)) {
		was := m[name]
		is, ok := now[name]
		place := filepath.Join(jetstream(dir), filepath.Dir(name), "streams", filepath.Base(name))
		switch {
		case was.LastSeq == 0 || ok && !is.Created.Equal(was.Created):
		case !ok:
			gone = append(gone, damaged(place, "the stream is gone"))
		case was.emptied(is):
			gone = append(gone, damaged(place, fmt.Sprintf("the stream is empty, and had come to message %d", was.LastSeq)))
		case is.LastSeq < was.LastSeq:
			log.Error("nats stream has lost its last messages", "stream", name, "had", was.LastSeq, "has", is.LastSeq)
		}
	}
	return errors.Join(gone...)
}

// unloaded finds streams that are in the store and that the server left out.
func unloaded(dir string, now manifest) error {
	streams, err := storedStreams(jetstream(dir))
	if err != nil {
		return err
	}
	var left []error
	for _, stream := range streams {
		account := filepath.Base(filepath.Dir(filepath.Dir(stream)))
		if _, ok := now[account+"/"+filepath.Base(stream)]; ok {
			continue
		}
		blocks, err := filepath.Glob(filepath.Join(globQuote(stream), "msgs", "*.blk"))
		if err == nil && holdsAnything(blocks) {
			left = append(left, damaged(stream, "the server cannot load the stream (its log says why)"))
		}
	}
	return errors.Join(left...)
}
