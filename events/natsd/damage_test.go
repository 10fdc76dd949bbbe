package natsd_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events/natsd"
)

const (
	keys   = 20 // in the bucket, each written twice
	bucket = "KV_STATE"
)

func connect(t *testing.T, s *natsd.Server) jetstream.JetStream {
	t.Helper()
	nc, err := dial(t, "", nats.InProcessServer(s))
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

// filled makes a store with a bucket, a work queue and its consumer.
func filled(t *testing.T, killed bool) string {
	t.Helper()
	dir := t.TempDir()
	s, err := natsd.Start(t.Context(), natsd.Options{StoreDir: dir})
	require.NoError(t, err)
	defer s.Shutdown()
	js := connect(t, s)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: bucket, Subjects: []string{"$KV.STATE.>"}, MaxMsgsPerSubject: 1, AllowDirect: true, DenyDelete: true,
		RePublish: &jetstream.RePublish{Source: "$KV.STATE.>", Destination: "state.>"},
	})
	require.NoError(t, err)
	queue, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "QUEUE", Subjects: []string{"wake.*"}, Retention: jetstream.WorkQueuePolicy})
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EMPTY", Subjects: []string{"empty"}})
	require.NoError(t, err)
	_, err = queue.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "worker"})
	require.NoError(t, err)
	for i := range 2 * keys {
		msg := nats.NewMsg(fmt.Sprint("$KV.STATE.w", i%keys))
		msg.Header.Set("ce-id", fmt.Sprint(i))
		msg.Data = bytes.Repeat([]byte{'x'}, 200)
		_, err = js.PublishMsg(t.Context(), msg)
		require.NoError(t, err)
	}
	_, err = js.Publish(t.Context(), "wake.one", nil)
	require.NoError(t, err)
	if killed {
		time.Sleep(2200 * time.Millisecond) // the list of streams is written
		copied := filepath.Join(t.TempDir(), "killed")
		require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
		return copied
	}
	return dir
}

// tree is every file below the server's directory with what is in it.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files[rel] = d.Type().String()
		if err == nil && d.Type().IsRegular() {
			var data []byte
			data, err = os.ReadFile(path)
			files[rel] = string(data)
		}
		return err
	}))
	return files
}

// A wound is one way to damage a store.
type wound struct {
	name string
	at   string // below streams
	do   func(path string) error
	// says is what the error tells; empty: the server starts with everything.
	says string
	// warns is what the log tells where all but the last write is there.
	warns string
}

func flip(at float64) func(string) error {
	return func(path string) error {
		data, err := os.ReadFile(path)
		if err == nil {
			data[int(at*float64(len(data)-1))] ^= 0x55
			err = os.WriteFile(path, data, 0o600)
		}
		return err
	}
}

func truncate(to float64) func(string) error {
	return func(path string) error {
		info, err := os.Stat(path)
		if err == nil {
			err = os.Truncate(path, int64(to*float64(info.Size())))
		}
		return err
	}
}

func replace(text string) func(string) error {
	return func(path string) error {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o600)
	}
}

func grow(text string) func(string) error {
	return func(path string) error {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(text)
		return err
	}
}

func emptyDir(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Mkdir(path, 0o700)
}

func wounds() []wound {
	const meta, sum, block = bucket + "/meta.inf", bucket + "/meta.sum", bucket + "/msgs/1.blk"
	return []wound{
		{name: "nothing", at: block, do: func(string) error { return nil }},
		{name: "stream that was being made", at: "NEW/msgs", do: func(p string) error { return os.MkdirAll(p, 0o700) }},
		{name: "empty stream without description", at: "EMPTY/meta.inf", do: os.Remove},
		{name: "consumer's description gone", at: "QUEUE/obs/worker/meta.inf", do: os.Remove},
		{name: "consumer cut off", at: "QUEUE/obs/worker/o.dat", do: truncate(0.2)},

		{name: "last write half done", at: block, do: grow("\x00\x01half"), warns: "cut short"},
		{name: "last write flipped", at: block, do: flip(1), warns: "cut short"},

		{name: "description flipped", at: meta, do: flip(0.5), says: "does not match its checksum"},
		{name: "description cut off", at: meta, do: truncate(0.5), says: "does not match its checksum"},
		{name: "description gone", at: meta, do: os.Remove, says: "the description cannot be read"},
		{name: "checksum flipped", at: sum, do: flip(0.5), says: "does not match its checksum"},
		{name: "checksum gone", at: sum, do: os.Remove, says: "the checksum of the description cannot be read"},
		{name: "messages flipped at the beginning", at: block, do: flip(0), says: "unreadable at byte 0 of"},
		{name: "messages flipped in the middle", at: block, do: flip(0.5), says: "with messages behind it"},
		{name: "messages cut off", at: block, do: truncate(0), says: "the stream is empty, and had come to message 40"},
		{name: "messages gone", at: block, do: os.Remove, says: "the stream is empty, and had come to message 40"},
		{name: "messages are garbage", at: block, do: replace(strings.Repeat("garbage ", 1000)), says: "the stream is empty, and had come to message 40"},
		{name: "messages are a directory", at: block, do: emptyDir, says: "is a directory"},
		{name: "no messages directory", at: bucket + "/msgs", do: os.RemoveAll, says: "the stream is empty, and had come to message 40"},
		{name: "stream gone", at: bucket, do: os.RemoveAll, says: "the stream is gone"},
		{name: "stream empty", at: bucket, do: emptyDir, says: "the stream is gone"},
		{name: "stream is a file", at: bucket, do: replace("x"), says: "the stream is gone"},
		{name: "streams are a file", at: ".", do: replace("x"), says: "is not a directory"},
		{name: "store is a file", at: "../..", do: replace("x"), says: "is not a directory"},
		{name: "foreign messages", at: "JUNK/msgs/1.blk", do: func(p string) error {
			_ = os.MkdirAll(filepath.Dir(p), 0o700)
			return os.WriteFile(p, []byte("junk"), 0o600)
		}, says: "JUNK"},
		{name: "consumer's description flipped", at: "QUEUE/obs/worker/meta.inf", do: flip(0.5), says: "does not match its checksum"},
	}
}

// A damaged store is never used in part, is left as it is, and is moved aside
// only when that was asked for.
func TestDamagedStoreIsRefusedAndMovedAsideOnlyWhenAsked(t *testing.T) {
	for _, killed := range []bool{false, true} {
		sound := filled(t, killed)
		for _, w := range wounds() {
			t.Run(fmt.Sprintf("killed %t/%s", killed, w.name), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "store")
				require.NoError(t, os.CopyFS(dir, os.DirFS(sound)))
				store := filepath.Join(dir, "jetstream")
				require.NoError(t, w.do(filepath.Join(store, "$G", "streams", w.at)))
				before := tree(t, store)
				var log bytes.Buffer
				opts := natsd.Options{StoreDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))}

				s, err := natsd.Start(t.Context(), opts)
				if w.says == "" {
					require.NoError(t, err)
					defer s.Shutdown()
					lost := 0
					if w.warns != "" {
						assert.Contains(t, log.String(), w.warns)
						lost = 1
					}
					assert.GreaterOrEqual(t, countKeys(t, s), keys-lost)
					return
				}
				require.ErrorIs(t, err, natsd.ErrStoreDamaged)
				assert.ErrorContains(t, err, w.says)
				assert.ErrorContains(t, err, dir, "the place is named")
				if !loadable(w.says) {
					assert.Equal(t, before, tree(t, store), "nothing was changed")
				}
				_, err = natsd.Start(t.Context(), opts)
				require.ErrorIs(t, err, natsd.ErrStoreDamaged, "and it stays so")

				before = tree(t, store)
				opts.MoveAside = true
				s, err = natsd.Start(t.Context(), opts)
				require.NoError(t, err)
				defer s.Shutdown()
				aside, err := filepath.Glob(store + ".broken-*")
				require.NoError(t, err)
				require.Len(t, aside, 1)
				assert.Contains(t, log.String(), aside[0])
				if !loadable(w.says) {
					assert.Equal(t, before, tree(t, aside[0]), "all that was there is kept")
				}
				assert.Zero(t, countKeys(t, s))
			})
		}
	}
}

// loadable: only the server's own reading shows it, which may tidy up.
func loadable(says string) bool {
	return strings.Contains(says, "gone") || strings.Contains(says, "empty") || strings.Contains(says, "load")
}

// countKeys counts the keys of the bucket that can be read; none if there is
// no bucket.
func countKeys(t *testing.T, s *natsd.Server) int {
	t.Helper()
	js := connect(t, s)
	stream, err := js.Stream(t.Context(), bucket)
	if err != nil {
		require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
		return 0
	}
	found := 0
	for i := range keys {
		if _, err := stream.GetLastMsgForSubject(t.Context(), fmt.Sprint("$KV.STATE.w", i)); err == nil {
			found++
		}
	}
	return found
}

// A flag that stays in a service's command line must not cost the history at
// each start.
func TestSoundStoreIsNotMovedAside(t *testing.T) {
	dir := filled(t, false)
	for range 2 {
		s, err := natsd.Start(t.Context(), natsd.Options{StoreDir: dir, MoveAside: true})
		require.NoError(t, err)
		assert.Equal(t, keys, countKeys(t, s))
		s.Shutdown()
	}
	aside, err := filepath.Glob(filepath.Join(dir, "jetstream.broken-*"))
	require.NoError(t, err)
	assert.Empty(t, aside)
}

// Where nothing is left there is nothing to save.
func TestRemovedStoreIsBegunAnewWithAWord(t *testing.T) {
	dir := filled(t, false)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "jetstream")))
	var log bytes.Buffer
	s := start(t, natsd.Options{StoreDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	assert.Zero(t, countKeys(t, s))
	assert.Contains(t, log.String(), "nats store is gone")
}

// A stream that was deleted on purpose is not missed.
func TestDeletedStreamIsNotMissed(t *testing.T) {
	dir := filled(t, false)
	s, err := natsd.Start(t.Context(), natsd.Options{StoreDir: dir})
	require.NoError(t, err)
	require.NoError(t, connect(t, s).DeleteStream(t.Context(), bucket))
	s.Shutdown()
	start(t, natsd.Options{StoreDir: dir})
}

func TestSyncedStoreKeepsWhatItHas(t *testing.T) {
	dir := filled(t, false)
	assert.Equal(t, keys, countKeys(t, start(t, natsd.Options{StoreDir: dir, SyncAlways: true})))
}
