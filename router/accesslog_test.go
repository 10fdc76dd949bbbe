package router

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

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
		log := newAccessLog(AccessLog{To: out})
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
	log := newAccessLog(AccessLog{To: &sink{}})
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
		log := newAccessLog(AccessLog{To: out})
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

func BenchmarkLogLine(b *testing.B) {
	log := newAccessLog(AccessLog{To: &sink{}})
	log.lines = make([]byte, 0, logLimit)
	var line []byte
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		line = newLogLine(line[:0], log.format).
			time("time", now).text("path", "/some/path").number("status", 200).seconds("total_seconds", time.Millisecond).end()
		log.write(line)
		if len(log.lines) > logFlushSize {
			log.lines = log.lines[:0]
		}
	}
}
