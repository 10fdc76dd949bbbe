package api_test

import (
	"context"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/workload"
)

func ExampleHistory() {
	h := api.NewHistory(100, 1000)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	wake := &workload.Wake{ID: "w1", Workload: "wiki", RequestedAt: at, ReceivedAt: at.Add(time.Millisecond)}
	h.Add(workload.Event{Workload: "wiki", Kind: workload.EventReady, At: at.Add(time.Second), Wake: wake})

	w, _ := h.WakeByID(context.Background(), "w1")
	fmt.Println(w.Workload, w.Result, w.Phases[0].Phase, w.Phases[0].Duration())
	// Output: wiki ready wake 1ms
}
