package router

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/bubble"
)

// sink takes what an accessLog writes, piece by piece.
type sink struct {
	mu     sync.Mutex
	pieces []string
	err    error
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.pieces = append(s.pieces, string(p))
	return len(p), nil
}

func (s *sink) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.pieces...)
}

func TestLinesAreWrittenTogetherAndTheRestAtTheEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		out := &sink{}
		log := newAccessLog(out)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); log.run(ctx, func(err error) { t.Error(err) }) }()
		log.write([]byte("one\n"))
		log.write([]byte("two\n"))
		synctest.Wait()
		assert.Empty(t, out.all(), "a line is not a system call")
		time.Sleep(logFlushEvery)
		synctest.Wait()
		assert.Equal(t, []string{"one\ntwo\n"}, out.all())
		log.write([]byte(strings.Repeat("x", logFlushSize)))
		synctest.Wait()
		assert.Len(t, out.all(), 2, "much is written at once")
		log.write([]byte("last\n"))
		cancel()
		<-ended
		assert.Equal(t, "last\n", out.all()[2])
	})
}

func TestStuckWriterCostsLinesNotRequests(t *testing.T) {
	log := newAccessLog(&sink{})
	line := bytes.Repeat([]byte("x"), 1<<20)
	for range logLimit>>20 + 3 {
		log.write(line)
	}
	lines := string(log.take(nil))
	assert.Len(t, strings.TrimSuffix(lines, "{\"dropped\":3}\n"), logLimit, "what fits is kept, the rest counted")
	assert.Empty(t, log.take(nil))
}

func TestBrokenWriterIsReportedOnceAndTriedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		out := &sink{err: errors.New("no space left")}
		log := newAccessLog(out)
		var reported atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go log.run(ctx, func(error) { reported.Add(1) })
		for range 5 {
			log.write([]byte("lost\n"))
			time.Sleep(logFlushEvery)
		}
		synctest.Wait()
		assert.EqualValues(t, 1, reported.Load())
		out.mend()
		log.write([]byte("kept\n"))
		time.Sleep(logFlushEvery)
		synctest.Wait()
		assert.Equal(t, []string{"kept\n"}, out.all())
	})
}

func (s *sink) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = nil
}

func TestLogLineIsJSON(t *testing.T) {
	var b logLine
	b = append(b, '{')
	b = b.text("a", "x\"\\\n\x00\x7f\u2028ä\xff").number("n", -3).flag("f", true).seconds("d", 1500*time.Millisecond)
	b = b.time("t", time.Date(2024, 5, 6, 7, 8, 9, 123456789, time.UTC))
	b = append(b, '}')
	var got map[string]any
	require.NoError(t, json.Unmarshal(b, &got), string(b))
	assert.Equal(t, map[string]any{"a": "x\"\\\n\x00\x7f\u2028ä\ufffd", "n": -3.0, "f": true, "d": 1.5, "t": "2024-05-06T07:08:09.123456Z"}, got)
}

func FuzzAppendJSON(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\"\\\xff\u2029")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendJSON(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if utf8.ValidString(s) && got != s {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}

func BenchmarkLogLine(b *testing.B) {
	log := newAccessLog(&sink{})
	log.lines = make([]byte, 0, logLimit)
	var line logLine
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		line = append(line[:0], '{')
		line = line.time("time", now).text("path", "/some/path").number("status", 200).seconds("total_seconds", time.Millisecond)
		log.write(append(line, "}\n"...))
		if len(log.lines) > logFlushSize {
			log.lines = log.lines[:0]
		}
	}
}
