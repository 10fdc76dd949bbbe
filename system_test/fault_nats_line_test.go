package system_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/events/eventstest"
)

// A cut is a way in which the line between a role and NATS fails, at a moment.
type cut struct {
	role     string
	at       moment
	how      string
	do       func(*eventstest.Proxy)
	gateways int
}

var _ = register(cuts()...)

// cuts cuts one role off from NATS for longer than every idle_timeout.
func cuts() (faults []fault) {
	const (
		refused = "connections cut and refused"
		lost    = "connections stand, nothing arrives"
		deaf    = "it is heard and hears nothing"
	)
	for _, c := range []cut{
		{role: "the only gateway", at: midUse, how: refused, do: (*eventstest.Proxy).Refuse},
		{role: "the only gateway", at: midUse, how: lost, do: (*eventstest.Proxy).Lose},
		{role: "the only gateway", at: midUse, how: deaf, do: (*eventstest.Proxy).Mute},
		{role: "the only gateway", at: midStart, how: lost, do: (*eventstest.Proxy).Lose},
		{role: "one of two gateways", at: midUse, how: refused, do: (*eventstest.Proxy).Refuse, gateways: 2},
		{role: "one of two gateways", at: midUse, how: lost, do: (*eventstest.Proxy).Lose, gateways: 2},
		{role: "the scaler", at: midStart, how: refused, do: (*eventstest.Proxy).Refuse},
		{role: "the scaler", at: midStart, how: lost, do: (*eventstest.Proxy).Lose},
		{role: "the scaler", at: midSleep, how: lost, do: (*eventstest.Proxy).Lose},
		{role: "the scaler", at: midUse, how: deaf, do: (*eventstest.Proxy).Mute},
	} {
		faults = append(faults, fault{
			name:  fmt.Sprintf("%s cut off from NATS %s: %s", c.role, c.at, c.how),
			round: c.round,
		})
	}
	return faults
}

func (c cut) round(t *testing.T, r *round) {
	s := newSite(t, r, sitePlan{gateways: c.gateways})
	line := s.gatewayLine
	if c.role == "the scaler" {
		line = s.scalerLine
	}
	s.begin(c.at)
	r.inject(func() {
		c.do(line)
		time.Sleep(away)
		line.Admit()
	})
	r.settle()
}
