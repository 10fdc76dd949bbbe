package activator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// instantly is a Waker whose workloads are ready as soon as they are asked for.
type instantly struct{ *activator.Activator }

func (i *instantly) Wake(_ context.Context, w workload.Wake) error {
	i.Observe(workload.State{
		Workload: w.Workload, Phase: workload.Ready, Generation: w.Generation + 1, Revision: 1,
		Replicas: []workload.Replica{{ID: "c0ffee", Address: "172.18.0.2:3000"}},
	})
	return nil
}

// A request to a sleeping workload is held until news of a replica comes.
func Example() {
	waker := &instantly{}
	a := activator.New(activator.Config{Gateway: "gw-1"}, waker)
	waker.Activator = a
	a.Update([]workload.Workload{{Name: "wiki", HoldTimeout: 50 * time.Second}})

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error)
	go func() { ended <- a.Run(ctx) }()

	for range 2 {
		lease, err := a.Gate("wiki").Acquire(ctx, activator.Ask{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(lease.Replica().Address, "cold:", lease.Cold())
		lease.Answered() // with the first byte of the answer
		lease.Release()  // with the last
	}
	cancel()
	fmt.Println(<-ended)
	// Output:
	// 172.18.0.2:3000 cold: true
	// 172.18.0.2:3000 cold: false
	// <nil>
}
