//go:build linux

package process_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/scaler/process"
	"github.com/rouse-dev/rouse/workload"
)

func Example() {
	dir, err := os.MkdirTemp("", "processes")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	rt, err := process.New(process.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer func() { _ = rt.Close(ctx) }()

	w := workload.Workload{
		Name: "hello", StopTimeout: time.Second,
		Process: &workload.Process{Command: []string{"sh", "-c", "echo hello; exit 7"}},
	}
	rt.Update([]workload.Workload{w})
	ended := make(chan scaler.Event, 10)
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = rt.Watch(watching, func(e scaler.Event) { ended <- e })
	}()
	<-ended // resynced
	if _, err := rt.Start(ctx, w); err != nil {
		panic(err)
	}
	<-ended // started
	fmt.Println("exit code", (<-ended).ExitCode)
	lines, err := rt.Logs(ctx, w, 10)
	fmt.Println(lines, err)
	stop()
	<-done
	// Output:
	// exit code 7
	// [hello] <nil>
}

func BenchmarkStartStop(b *testing.B) {
	rt, err := process.New(process.Config{Dir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rt.Close(context.Background()) }()
	w := sleeper("bench", "exec sleep 300")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rt.Start(b.Context(), w); err != nil {
			b.Fatal(err)
		}
		if err := rt.Stop(b.Context(), w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPauseResume(b *testing.B) {
	rt, err := process.New(process.Config{Dir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rt.Close(context.Background()) }()
	w := sleeper("bench", "exec sleep 300")
	w.Stop = workload.StopPause
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rt.Start(b.Context(), w); err != nil {
			b.Fatal(err)
		}
		if err := rt.Stop(b.Context(), w); err != nil {
			b.Fatal(err)
		}
	}
}
