package main

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
)

func TestTopRedrawsInPlaceAndLeavesTheTerminalAsItWas(t *testing.T) {
	quiet(t)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	s := &standIn{History: api.NewHistory(0, 0), workloads: []api.Workload{blog(), shop(), wiki()}}
	server := httptest.NewServer(api.New(api.Config{}, s))
	defer server.Close()
	p := newPTY(t, 60, 8)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"top", "--admin", server.URL, "--every", "100ms"}, p.program, p.program)
	}()
	frames := func() int { return strings.Count(p.seen.String(), goHome) }
	require.Eventually(t, func() bool { return frames() >= 3 }, 10*time.Second, time.Millisecond)
	cancel()
	require.Equal(t, exitOK, <-ended)
	require.Eventually(t, func() bool { return strings.HasSuffix(p.seen.String(), firstScreen) }, 10*time.Second, time.Millisecond)

	seen := p.seen.String()
	assert.Equal(t, 1, strings.Count(seen, otherScreen))
	assert.Contains(t, seen, color(phaseColor(shop().Phase), "failed"), "a terminal gets colours")
	frame := strings.Split(seen, goHome)[2]
	lines := strings.Split(frame, "\r\n")
	require.Len(t, lines, 8, "as many as there is room for: %q", frame)
	for _, line := range lines {
		plain := colorCode.ReplaceAllString(strings.NewReplacer(clearLine, "", clearBelow, "", "\r", "").Replace(line), "")
		assert.LessOrEqual(t, len([]rune(plain)), 60, plain)
	}
	assert.Less(t, strings.Index(frame, "shop"), strings.Index(frame, "blog"), "what failed comes first")
}

func TestTopKeepsTheLastListWhileTheServerIsAway(t *testing.T) {
	quiet(t)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	s := &standIn{History: api.NewHistory(0, 0), workloads: []api.Workload{wiki()}}
	server := serveOn(t, "127.0.0.1:0", s)
	p := newPTY(t, 100, 20)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"top", "--admin", server.Addr, "--every", "100ms"}, p.program, p.program)
	}()
	last := func() string {
		frames := strings.Split(p.seen.String(), goHome)
		return frames[max(0, len(frames)-2)] // the last one may be half there
	}
	require.Eventually(t, func() bool { return strings.Contains(last(), "wiki") }, 10*time.Second, time.Millisecond)
	require.NoError(t, server.Close())
	require.Eventually(t, func() bool { return strings.Contains(last(), "trying again") }, 10*time.Second, time.Millisecond)
	assert.Contains(t, last(), "wiki")
	assert.NotRegexp(t, "\x1b\\[3[0-9]m", p.seen.String(), "NO_COLOR")
	server = serveOn(t, server.Addr, s)
	defer server.Close()
	require.Eventually(t, func() bool { return strings.Contains(last(), "rouse at ") }, 10*time.Second, time.Millisecond)
	cancel()
	require.Equal(t, exitOK, <-ended)
}

func TestProgressOfAWakeIsOneLineOnATerminal(t *testing.T) {
	quiet(t)
	t.Setenv("TERM", "xterm")
	s := wakingStandIn()
	server := httptest.NewServer(api.New(api.Config{}, s))
	defer server.Close()
	p := newPTY(t, 100, 20)
	code := run(t.Context(), []string{"wake", "wiki", "--wait", "--admin", server.URL}, p.program, p.program)
	require.Equal(t, exitOK, code)
	require.Eventually(t, func() bool { return strings.Contains(p.seen.String(), "is ") }, 10*time.Second, time.Millisecond)
	seen := p.seen.String()
	assert.Equal(t, 1, strings.Count(seen, "\n"), "%q", seen)
	assert.Contains(t, seen, "\r"+clearLine+"wiki is ", "nothing is left of it")
	assert.Contains(t, seen, progressWords["start"])
	assert.Contains(t, seen, " of about 0.9 s")
}
