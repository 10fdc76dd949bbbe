package main

import (
	"context"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/doctor"
)

const (
	// findingsFor is how long findings are good for all who ask, and
	// findingsWithin how long they may take.
	findingsFor    = 30 * time.Second
	findingsWithin = 10 * time.Second
)

// findings are what a doctor last found out from within this process.
type findings struct {
	mu    sync.Mutex // held while they are made, so that they are made once
	at    time.Time
	found []api.Finding
}

// Findings examines what this process can see: the workloads, NATS, and with a
// scaler the engine. What is wrong with descriptions is among Problems.
func (b *backend) Findings(ctx context.Context) ([]api.Finding, error) {
	b.findings.mu.Lock()
	defer b.findings.mu.Unlock()
	if !b.findings.at.IsZero() && time.Since(b.findings.at) < findingsFor {
		return b.findings.found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, findingsWithin)
	defer cancel()
	list, err := b.Workloads(ctx)
	if err != nil {
		return nil, err
	}
	x := &examination{cfg: b.settings}
	x.uses(b.settings.Admin.Listen, list)
	if b.scales {
		x.engine(ctx)
	}
	x.nats(ctx)
	x.Problems = nil
	found := []api.Finding{}
	for _, f := range doctor.Examine(x.Evidence).Findings {
		found = append(found, api.Finding{Severity: string(f.Severity), Code: f.Code, Place: f.Place, What: f.What, Why: f.Why, Fix: f.Fix})
	}
	b.findings.at, b.findings.found = time.Now(), found
	return found, nil
}
