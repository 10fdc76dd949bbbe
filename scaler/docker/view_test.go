package docker

import (
	"maps"
	"testing"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// engineTimeOf is a moment of the engine in these tests.
func engineTimeOf(seconds int) time.Time { return time.Unix(1_700_000_000+int64(seconds), 0) }

var web = workload.Workload{Name: "web"}

// seenRunning is a record of a container of web that began to run then.
func seenRunning(id string, at int) record {
	r := seenCreated(id)
	r.state, r.startedAt = stateRunning, engineTimeOf(at)
	return r
}

func seenCreated(id string) record {
	var r record
	r.sighting = sight(prefixes{"rouse."}, id, "name-"+id, map[string]string{"rouse.enable": "true", "rouse.name": "web"})
	r.state, r.stopSignal = stateCreated, "15"
	return r
}

func seenExited(id string, at, code int) record {
	r := seenRunning(id, at)
	r.state, r.exitCode = stateExited, code
	return r
}

// newTellingView knows the workload web and one container of it.
func newTellingView(first record) *view {
	v := newView()
	v.update([]workload.Workload{web})
	v.listed([]sighting{first.sighting}, true)
	v.apply(first, v.version(first.ID))
	v.resynced()
	v.takeNews()
	return v
}

func message(id string, action events.Action, at int, attributes ...string) events.Message {
	m := events.Message{Type: events.ContainerEventType, Action: action, TimeNano: engineTimeOf(at).UnixNano()}
	m.Actor = events.Actor{ID: id, Attributes: map[string]string{}}
	for i := 0; i < len(attributes); i += 2 {
		m.Actor.Attributes[attributes[i]] = attributes[i+1]
	}
	return m
}

// kinds are the news without their details.
func kinds(v *view) []scaler.EventKind {
	var ks []scaler.EventKind
	for _, e := range v.takeNews() {
		ks = append(ks, e.Kind)
	}
	return ks
}

func TestAnEndIsToldAtOnce(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	v.hear(message("a", events.ActionDie, 20, "exitCode", "3"), prefixes{"rouse."})
	require.Equal(t, []scaler.Event{{
		Kind: scaler.Died, Workload: "web", ID: "a@20231114T221330.000000000", ExitCode: 3, At: engineTimeOf(20),
	}}, v.takeNews())
	require.Empty(t, v.up())
}

func TestAnOldEndDoesNotTouchTheNextRun(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	v.hear(message("a", events.ActionDie, 9, "exitCode", "0"), prefixes{"rouse."})
	require.Empty(t, v.takeNews())
	require.Len(t, v.up(), 1)
	require.Equal(t, []string{"a"}, v.takeDirty(), "it is a reason to look again")
}

func TestALookThatIsOutOfDateIsNotTaken(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	version := v.version("a")
	v.hear(message("a", events.ActionDie, 20, "exitCode", "0"), prefixes{"rouse."})
	require.False(t, v.apply(seenRunning("a", 10), version))
	require.Empty(t, v.up())
}

func TestARestartThatWasMissedIsAnEndAndAStart(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	old := v.entries["a"].replicaID()
	v.apply(seenRunning("a", 30), v.version("a"))
	news := v.takeNews()
	require.Len(t, news, 2)
	require.Equal(t, scaler.Died, news[0].Kind)
	require.Equal(t, old, news[0].ID)
	require.Equal(t, scaler.Started, news[1].Kind)
	require.Equal(t, v.entries["a"].replicaID(), news[1].ID)
	require.NotEqual(t, old, news[1].ID)
}

func TestARunThatWasMissedWholeIsToldWithItsEnd(t *testing.T) {
	v := newTellingView(seenCreated("a"))
	v.apply(seenExited("a", 30, 5), v.version("a"))
	news := v.takeNews()
	require.Len(t, news, 1)
	require.Equal(t, scaler.Died, news[0].Kind)
	require.Equal(t, 5, news[0].ExitCode)
}

func TestWhatWasThereBeforeIsNoNews(t *testing.T) {
	v := newView()
	v.update([]workload.Workload{web})
	v.listed([]sighting{seenRunning("a", 10).sighting}, true)
	v.apply(seenRunning("a", 10), v.version("a"))
	v.resynced()
	require.Equal(t, []scaler.EventKind{scaler.Resynced}, kinds(v))
	require.Len(t, v.up(), 1)
}

func TestTheMemoryIsFoundToBeTheCauseByOneLook(t *testing.T) {
	for name, oom := range map[string]bool{"memory": true, "killed": false} {
		t.Run(name, func(t *testing.T) {
			v := newTellingView(seenRunning("a", 10))
			v.hear(message("a", events.ActionDie, 20, "exitCode", "137"), prefixes{"rouse."})
			require.Empty(t, v.takeNews(), "the cause is not known")
			require.Empty(t, v.up(), "the end is")
			require.Equal(t, []string{"a"}, v.takeDirty())
			rec := seenExited("a", 10, 137)
			rec.oom = oom
			v.apply(rec, v.version("a"))
			news := v.takeNews()
			require.Len(t, news, 1)
			require.Equal(t, oom, news[0].OOM)
		})
	}
}

func TestAnEndIsToldThoughTheLookFails(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	v.hear(message("a", events.ActionDie, 20, "exitCode", "137"), prefixes{"rouse."})
	v.takeDirty()
	v.refreshed("a")
	require.Equal(t, []scaler.EventKind{scaler.Died}, kinds(v))
}

func TestAKillThatWasAskedForNeedsNoLook(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	v.hear(message("a", events.ActionKill, 19, "signal", "9"), prefixes{"rouse."})
	v.hear(message("a", events.ActionDie, 20, "exitCode", "137"), prefixes{"rouse."})
	require.Equal(t, []scaler.EventKind{scaler.Died}, kinds(v))
}

func TestTheEventOfTheMemoryComesFirst(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	v.hear(message("a", events.ActionOOM, 19), prefixes{"rouse."})
	v.hear(message("a", events.ActionDie, 20, "exitCode", "137"), prefixes{"rouse."})
	news := v.takeNews()
	require.Len(t, news, 1)
	require.True(t, news[0].OOM)
}

func TestOnlyTheSignalThatAsksForAnEndCounts(t *testing.T) {
	for _, c := range []struct {
		stopSignal, signal string
		ending             bool
	}{
		{"", "15", true}, {"", "1", false}, {"SIGQUIT", "3", true}, {"SIGQUIT", "15", false},
		{"SIGQUIT", "9", true}, {"SIGRTMIN+3", "37", true}, {"28", "28", true},
	} {
		rec := seenRunning("a", 10)
		rec.stopSignal = signalNumber(c.stopSignal)
		v := newTellingView(rec)
		v.hear(message("a", events.ActionKill, 20, "signal", c.signal), prefixes{"rouse."})
		require.Equal(t, c.ending, v.ending("a", rec.startedAt), "%+v", c)
	}
}

func TestTheAskOfAnEarlierRunIsForgottenWithTheNext(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	v.asked("a")
	require.True(t, v.ending("a", engineTimeOf(10)))
	v.apply(seenRunning("a", 30), v.version("a"))
	require.False(t, v.ending("a", engineTimeOf(30)))

	// This one came before the look showed the run that it was about.
	v.hear(message("a", events.ActionKill, 41, "signal", "15"), prefixes{"rouse."})
	v.apply(seenRunning("a", 40), v.version("a"))
	require.True(t, v.ending("a", engineTimeOf(40)))
}

// The output of a run begins before the engine's time of its start.
func TestTheOutputOfARunBeginsAfterTheEndOfTheOneBefore(t *testing.T) {
	from := func(v *view) time.Time { return v.entries["a"].writesFrom }
	running := seenRunning("a", 10)
	running.finishedAt = engineTimeOf(5)
	v := newTellingView(running)
	require.Equal(t, engineTimeOf(9), from(v), "adopted while it ran")

	v.hear(message("a", events.ActionDie, 20, "exitCode", "0"), prefixes{"rouse."})
	require.Equal(t, engineTimeOf(9), from(v), "ended")
	v.hear(message("a", events.ActionDie, 32, "exitCode", "1"), prefixes{"rouse."})
	next := seenExited("a", 30, 1)
	next.finishedAt = engineTimeOf(31)
	v.apply(next, v.version("a"))
	require.Equal(t, engineTimeOf(29), from(v), "ended as soon as it was started")
	v.apply(next, v.version("a"))
	require.Equal(t, engineTimeOf(29), from(v))

	v = newTellingView(seenExited("a", 30, 1))
	require.Equal(t, engineTimeOf(30).Add(-overlap), from(v), "nothing known of the run before")
	v = newTellingView(seenRunning("a", 10))
	require.True(t, from(v).IsZero(), "the first run")
	quick := seenRunning("a", 10)
	quick.finishedAt = engineTimeOf(10).Add(-100 * time.Millisecond)
	require.Equal(t, engineTimeOf(10).Add(-50*time.Millisecond), from(newTellingView(quick)), "half way")
}

func TestOfAReplacedContainerOnlyTheNewOneIsToRun(t *testing.T) {
	labels := map[string]string{
		"rouse.enable": "true", "rouse.name": "web",
		composeProject: "p", composeService: "web", composeNumber: "1",
	}
	v := newTellingView(seenCreated("other"))
	for i, id := range []string{"old", "new"} {
		m := message(id, events.ActionCreate, 100+i, "name", id)
		maps.Copy(m.Actor.Attributes, labels)
		v.hear(m, prefixes{"rouse."})
	}
	require.Equal(t, []string{"other", "new"}, v.current(&web))
	require.ElementsMatch(t, []string{"old", "new", "other"}, v.find(&web), "all are to be stopped")
	looked := seenCreated("new")
	looked.sighting = v.entries["new"].sighting
	require.True(t, v.apply(looked, v.version("new")))
	require.Len(t, v.containers(), 2)
	v.hear(message("new", events.ActionDestroy, 103), prefixes{"rouse."})
	require.Equal(t, []string{"other", "old"}, v.current(&web))
}

// A container that is recreated is not looked at for a moment. The old one
// stands in for it, and neither is told of with half of what it is.
func TestARecreatedContainerIsToldOfOnceItWasLookedAt(t *testing.T) {
	labels := map[string]string{
		"rouse.enable": "true", "rouse.name": "web",
		composeProject: "p", composeService: "web", composeNumber: "1",
	}
	names := func(v *view) (names []string) {
		for _, c := range v.containers() {
			names = append(names, c.Name)
		}
		return names
	}
	first := seenCreated("a")
	first.sighting = sight(prefixes{"rouse."}, "a", "old", labels)
	first.created = engineTimeOf(1)
	v := newTellingView(first)
	require.True(t, v.settled())

	second := seenCreated("b")
	second.sighting = sight(prefixes{"rouse."}, "b", "new", labels)
	second.created = engineTimeOf(2)
	v.listed([]sighting{first.sighting, second.sighting}, false)
	require.False(t, v.settled())
	require.Equal(t, []string{"old"}, names(v))

	require.True(t, v.apply(second, v.version("b")))
	require.True(t, v.settled())
	require.Equal(t, []string{"new"}, names(v))
}

func TestWhatComposeMadeForOneCommandIsNotSeen(t *testing.T) {
	v := newTellingView(seenCreated("a"))
	v.hear(message("b", events.ActionCreate, 20, "name", "b", "rouse.enable", "true", composeOneOff, "True"), prefixes{"rouse."})
	require.Len(t, v.containers(), 1)
}

func TestNobodyLooksAtWhatIsNotOptedIn(t *testing.T) {
	v := newTellingView(seenCreated("a"))
	v.hear(message("b", events.ActionCreate, 20, "name", "db"), prefixes{"rouse."})
	v.hear(message("b", events.ActionStart, 21, "name", "db"), prefixes{"rouse."})
	require.Empty(t, v.takeDirty())
	require.Empty(t, v.listed([]sighting{seenCreated("a").sighting, sight(prefixes{"rouse."}, "b", "db", nil)}, false))

	v.update([]workload.Workload{{Name: "db", Container: "db"}})
	require.Equal(t, []string{"b"}, v.takeDirty(), "an entry of the file names it")
}

func TestANewWorkloadHearsOfWhatRunsAlready(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	v.update(nil)
	v.update([]workload.Workload{web})
	require.Equal(t, []scaler.EventKind{scaler.Started}, kinds(v))
	v.update([]workload.Workload{web})
	require.Empty(t, kinds(v))
}

func TestTheListRaisesQuestionsOnly(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	same := seenRunning("a", 10).sighting
	require.Empty(t, v.listed([]sighting{same}, false))
	require.Equal(t, []string{"a"}, v.listed([]sighting{same}, true), "it may have been restarted")
	exited := same
	exited.state = stateExited
	require.Equal(t, []string{"a"}, v.listed([]sighting{exited}, false))
	require.Equal(t, []string{"a"}, v.listed(nil, false), "it may be gone")
	require.Len(t, v.up(), 1)
}

func TestOneLookAtATime(t *testing.T) {
	v := newTellingView(seenCreated("a"))
	start := message("a", events.ActionStart, 20)
	v.hear(start, prefixes{"rouse."})
	require.Equal(t, []string{"a"}, v.takeDirty())
	v.hear(start, prefixes{"rouse."})
	require.Empty(t, v.takeDirty())
	v.refreshed("a")
	require.Equal(t, []string{"a"}, v.takeDirty())
}

func TestAVerdictIsToldOnce(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	for range 2 {
		v.hear(message("a", events.ActionHealthStatusHealthy, 20), prefixes{"rouse."})
	}
	v.hear(message("a", events.ActionHealthStatusUnhealthy, 21), prefixes{"rouse."})
	require.Equal(t, []scaler.EventKind{scaler.Healthy, scaler.Unhealthy}, kinds(v))
	require.Equal(t, scaler.HealthUnhealthy, v.up()[0].record.health)
}

func TestARemovalIsAnEndFirst(t *testing.T) {
	v := newTellingView(seenRunning("a", 10))
	v.remove("a", engineTimeOf(20))
	require.Equal(t, []scaler.EventKind{scaler.Died, scaler.Removed}, kinds(v))
	require.Empty(t, v.containers())
}

func BenchmarkHear(b *testing.B) {
	v := newTellingView(seenRunning("a", 10))
	for i := range 100 {
		v.hear(message(string(rune('A'+i)), events.ActionCreate, 1, "name", "n"), prefixes{"rouse."})
	}
	m := message("a", events.ActionKill, 20, "signal", "1")
	b.ReportAllocs()
	for b.Loop() {
		v.hear(m, prefixes{"rouse."})
	}
}
