package events_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/natsd"
	"github.com/rouse-dev/rouse/workload"
)

// One process with an embedded server asks for a workload and hears that it
// is ready.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "nats")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	server, err := natsd.Start(ctx, natsd.Options{StoreDir: dir})
	if err != nil {
		panic(err)
	}
	defer server.Shutdown()
	bus, err := events.Connect(ctx, events.Config{Server: server, Name: "example", Role: "rouse"})
	if err != nil {
		panic(err)
	}
	defer bus.Close()
	if err := bus.Provision(ctx); err != nil {
		panic(err)
	}

	served := make(chan error)
	go func() { // the scaler's side
		served <- bus.ServeWakes(ctx, "here", 4, func(ctx context.Context, w workload.Wake) events.Verdict {
			state := workload.State{Workload: w.Workload, Phase: workload.Ready, Generation: 1}
			if _, err := bus.PutState(ctx, state); err != nil {
				return events.Permanent(err.Error())
			}
			return events.Done()
		})
	}()
	followed, ready := make(chan error), make(chan workload.State, 1)
	go func() { // the gateway's side
		followed <- bus.FollowStates(ctx, func(s workload.State) { ready <- s }, nil)
	}()
	if err := bus.PublishWake(ctx, "here", workload.Wake{ID: "w1", Workload: "wiki"}); err != nil {
		panic(err)
	}
	state := <-ready
	fmt.Println(state.Workload, "is", state.Phase)
	cancel()
	fmt.Println(<-served, <-followed)
	// Output:
	// wiki is ready
	// <nil> <nil>
}
