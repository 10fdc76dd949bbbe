package router_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Whatever a test started has ended with it: what is left at the end is the
// package's own and has no owner.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
