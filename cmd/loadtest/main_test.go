package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExitCodeTellsWhoseFaultItWas(t *testing.T) {
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer sick.Close()
	well := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer well.Close()
	cases := []struct {
		code int
		args []string
	}{
		{exitUsage, []string{"dance"}},
		{exitUsage, []string{"mimic", "--unknown"}},
		{exitUsage, []string{"mimic", "--startup", "soon"}},
		{exitUsage, []string{"mimic", "argument"}},
		{exitUsage, []string{"healthcheck"}},
		{exitUsage, []string{"storm"}},
		{exitFailure, []string{"mimic", "--listen", "nowhere"}},
		{exitFailure, []string{"healthcheck", sick.URL}},
		{0, []string{"healthcheck", well.URL}},
		{9, []string{"mimic", "--startup", "1h", "--exit-after", "1ms", "--exit-code", "9"}},
	}
	for _, c := range cases {
		assert.Equal(t, c.code, run(c.args), "%q", c.args)
	}
}

func TestMimicTakesItsPortFromTheEnvironment(t *testing.T) {
	t.Setenv("PORT", "no such port")
	assert.Equal(t, exitFailure, run([]string{"mimic"}))
	assert.Equal(t, 0, run([]string{"mimic", "--listen", "127.0.0.1:0", "--exit-after", "1ms"}))
}

func TestMimicStoppedBeforeItListensExitsAtOnce(t *testing.T) {
	ignored := make(chan os.Signal, 1) // or one that comes early, or late, would end the tests
	signal.Notify(ignored, syscall.SIGTERM)
	code := make(chan int)
	go func() { code <- run([]string{"mimic", "--startup", "1h"}) }()
	for {
		require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
		select {
		case got := <-code:
			assert.Equal(t, exitTerminated, got)
			return
		case <-time.After(5 * time.Millisecond): // it may not listen to signals yet
		}
	}
}
