package catalog

import (
	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// Foreign gives the settings that Rouse makes of Sablier's labels of one
// container, which opted in by them, and what is wrong with the others.
func Foreign(c workload.Container) ([]strict.Setting, []workload.Problem) {
	b := &builder{}
	var w workload.Workload
	settings := b.foreignSettings(&draft{name: c.WorkloadName()}, c, nil, Fields(&w))
	return settings, b.problems
}
