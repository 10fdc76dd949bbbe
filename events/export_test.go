package events

import "time"

// SetAckWait makes wakes come again sooner than tests have patience.
func SetAckWait(b *Bus, d time.Duration) { b.ackWait = d }

// SetLostGrace is how long workloads of a lost store are kept.
func SetLostGrace(b *Bus, d time.Duration) { b.lostGrace = d }
