//go:build !linux

package system_test

import "time"

// sharpSleep is as sharp as Go's.
func sharpSleep() func(time.Duration) { return time.Sleep }
