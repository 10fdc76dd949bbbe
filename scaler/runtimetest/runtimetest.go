// Package runtimetest is the contract of scaler.Runtime as a test suite that
// every implementation calls with its own platform.
//
// It owns what is promised in the comments of scaler.Runtime and nothing
// beyond: what is special about one platform is tested beside its runtime.
// It knows of a platform only what a Fixture tells. All workloads are the
// sample workload, `loadtest mimic`, whose flags make it behave as a test
// needs it.
//
// Each promise is a subtest with a Fixture of its own, and they run in
// parallel as far as -parallel lets them. No promise is about how fast
// something is; the only times in here bound how long a failing test waits.
package runtimetest

import (
	"testing"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// A Fixture is a platform with nothing of this test on it yet. Whatever its
// functions make is removed when the test that they are given ends.
type Fixture struct {
	// New makes a runtime on the platform. It is called again to stand for a
	// scaler that was started anew: the last one made is then used no more,
	// but what it started stays, if Adopts.
	New func(t *testing.T) scaler.Runtime
	// Workload makes a workload that does not run yet, whose command is
	// "mimic" with a listen address and the given further flags. Its name is
	// unique and its StopTimeout a second or more.
	Workload func(t *testing.T, flags ...string) workload.Workload
	// Missing describes a workload that the platform has nothing of.
	Missing func(t *testing.T) workload.Workload
	// Kill ends a running workload behind the runtime's back, with SIGKILL.
	Kill func(t *testing.T, w workload.Workload)
	// Adopts says that a new runtime finds what an earlier one started.
	Adopts bool
	// Pauses says that workload.StopPause is supported.
	Pauses bool
}

// patience bounds how long a test waits for what should have come by then.
const patience = time.Minute

// Run checks the whole contract, with a fresh fixture for each promise.
func Run(t *testing.T, setup func(t *testing.T) Fixture) {
	promises := []struct {
		name  string
		check func(t *testing.T, f Fixture)
	}{
		{"StartReturnsWhatAnswers", startReturnsWhatAnswers},
		{"StartOfWhatRunsReturnsItAsItIs", startOfWhatRunsReturnsItAsItIs},
		{"ConcurrentStartsAreOneStart", concurrentStartsAreOneStart},
		{"WorkloadsStartAndStopInParallel", workloadsStartAndStopInParallel},
		{"StartOfWhatIsMissingSaysSo", startOfWhatIsMissingSaysSo},
		{"StartWithAnEndedContextSaysSo", startWithAnEndedContextSaysSo},
		{"StartAfterAnUnfinishedStopIsANewStart", startAfterAnUnfinishedStopIsANewStart},
		{"StopEndsIt", stopEndsIt},
		{"StopOfWhatDoesNotRunIsNoError", stopOfWhatDoesNotRunIsNoError},
		{"StopKillsWhatDoesNotEnd", stopKillsWhatDoesNotEnd},
		{"StartAfterStopIsANewStart", startAfterStopIsANewStart},
		{"WeighTellsWhatItTakes", weighTellsWhatItTakes},
		{"PauseFreezesAndStartResumes", pauseFreezesAndStartResumes},
		{"ListTellsWhatRunsOfKnownWorkloads", listTellsWhatRunsOfKnownWorkloads},
		{"ANewRuntimeAdoptsWhatRuns", aNewRuntimeAdoptsWhatRuns},
		{"LogsAreTheLastLinesOfTheLastStart", logsAreTheLastLinesOfTheLastStart},
		{"AnExitIsToldWithItsCode", anExitIsToldWithItsCode},
		{"AnEndFromOutsideIsToldAndMended", anEndFromOutsideIsToldAndMended},
		{"EventsComeInOrder", eventsComeInOrder},
		{"NothingIsToldOfUnknownWorkloads", nothingIsToldOfUnknownWorkloads},
		{"WatchEndsWithItsContext", watchEndsWithItsContext},
	}
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.check(t, setup(t))
		})
	}
}
