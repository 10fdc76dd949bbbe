package docker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/docker/docker/api/types/container"

	"github.com/rouse-dev/rouse/workload"
)

// Weigh adds up the memory of every replica.
func (r *Runtime) Weigh(ctx context.Context, w workload.Workload) (int64, error) {
	var sum int64
	for _, id := range r.view.find(&w) {
		bytes, err := r.engine.memory(ctx, id)
		if err != nil {
			return 0, fmt.Errorf("weigh %s: %w", w.Name, err)
		}
		sum += bytes
	}
	return sum, nil
}

// memory is what a container takes, without the file cache that the kernel
// would give back: what `docker stats` shows. 0 if it does not run.
func (e *engine) memory(ctx context.Context, id string) (int64, error) {
	within, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	answer, err := e.api().ContainerStatsOneShot(within, id)
	if err != nil {
		return 0, e.tell(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }() // it is read, or of no use
	var stats container.StatsResponse
	if err := json.NewDecoder(answer.Body).Decode(&stats); err != nil {
		return 0, fmt.Errorf("read stats: %w", err)
	}
	m := stats.MemoryStats
	cache := m.Stats["inactive_file"] // of cgroup v2
	if of1, ok := m.Stats["total_inactive_file"]; ok {
		cache = of1
	}
	return int64(m.Usage - min(cache, m.Usage)), nil // #nosec G115 -- no machine has 8 EiB
}
