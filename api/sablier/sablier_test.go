package sablier_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/api/sablier"
	"github.com/rouse-dev/rouse/workload"
)

const (
	blocking = "/api/strategies/blocking?"
	dynamic  = "/api/strategies/dynamic?"
)

func TestABlockingCallIsAnsweredWhenTheLastOfAGroupIsReady(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		began := time.Now()
		answer := r.start(blocking + "group=office&session_duration=1h0m0s&timeout=1m0s")
		assert.Equal(t, 1, r.wakes("wiki"), "both are asked for at once")
		assert.Equal(t, 1, r.wakes("mail"))
		assert.Zero(t, r.wakes("lone"), "names only reach who is meant")
		time.Sleep(1234 * time.Millisecond)
		r.see("wiki", workload.Ready)
		synctest.Wait()
		require.Empty(t, answer)
		time.Sleep(100 * time.Millisecond)
		r.see("mail", workload.Ready)
		requireReady(t, come(t, answer), "mail", "wiki")
		assert.Equal(t, 1334*time.Millisecond, time.Since(began), "it comes then, not at a tick")
		requireReady(t, r.get(blocking+"names=wiki&names=mail&names=wiki"), "wiki", "mail")
		requireReady(t, r.get("/api/strategies/blocking/?names=proj-wiki-1"), "wiki")
	})
}

func TestAHundredCallersOfOneColdGroupAreOneStartAndAreAnsweredTogether(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		type ending struct {
			rec *httptest.ResponseRecorder
			at  time.Time
		}
		answers := make(chan ending, 100)
		for range cap(answers) {
			go func() {
				rec := r.get(blocking + "group=team")
				answers <- ending{rec, time.Now()}
			}()
		}
		synctest.Wait()
		require.Equal(t, 1, r.wakes("wiki"), "one ask, whoever waits")
		time.Sleep(300 * time.Millisecond)
		r.see("wiki", workload.Ready)
		ready := time.Now()
		synctest.Wait()
		require.Len(t, answers, 100, "all of them, with no time in between")
		for range cap(answers) {
			e := <-answers
			requireReady(t, e.rec, "wiki")
			require.Equal(t, ready, e.at)
		}
		require.Equal(t, 1, r.wakes("wiki"))
	})
}

func TestAFailedStartAnswersAtOnceForTheWholeGroup(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		began := time.Now()
		answer := r.start(blocking + "group=office")
		time.Sleep(50 * time.Millisecond)
		r.see("wiki", workload.Failed, func(s *workload.State) {
			s.Reason = workload.Reason{Code: workload.ReasonExited, ExitCode: 3}
			s.RetryAt = time.Now().Add(10 * time.Second)
		})
		rec := come(t, answer)
		p := requireProblem(t, rec, http.StatusBadGateway, "start-failed")
		assert.Equal(t, "wiki: exited with code 3", p.Detail)
		assert.Equal(t, "10", rec.Header().Get("Retry-After"))
		assert.Equal(t, 50*time.Millisecond, time.Since(began))
		requireProblem(t, r.get(blocking+"names=wiki"), http.StatusBadGateway, "start-failed")

		page := r.get(dynamic + "names=wiki")
		assert.Equal(t, "not-ready", page.Header().Get(statusHeader))
		assert.Contains(t, page.Body.String(), "exited with code 3")
	})
}

func TestATimeoutSaysWhoWasNotReady(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		answer := r.start(blocking + "group=office&timeout=12")
		r.see("mail", workload.Ready)
		time.Sleep(12*time.Second - time.Nanosecond)
		synctest.Wait()
		require.Empty(t, answer)
		time.Sleep(time.Nanosecond)
		p := requireProblem(t, come(t, answer), http.StatusGatewayTimeout, "timeout")
		assert.Equal(t, "not ready after 12s: wiki: starting; the wake goes on", p.Detail)
		require.Len(t, p.Instances, 2)
		assert.Equal(t, "ready", p.Instances[0].Status)
		assert.Equal(t, "starting", p.Instances[1].Status)
	})
}

func TestADynamicCallIsAnsweredAtOnce(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		began := time.Now()
		target := dynamic + "group=team&display_name=The+%3Cb%3Ewiki&theme=matrix&refresh_frequency=5s&session_duration=30m&show_details=true"
		rec := r.get(target)
		require.Equal(t, http.StatusOK, rec.Code)
		assert.Equal(t, "not-ready", rec.Header().Get(statusHeader))
		assert.Equal(t, "text/html; charset=utf-8", rec.Header().Get("Content-Type"))
		assert.Equal(t, fmt.Sprint(rec.Body.Len()), rec.Header().Get("Content-Length"))
		assert.Contains(t, rec.Header().Get("Cache-Control"), "no-cache")
		page := rec.Body.String()
		assert.Contains(t, page, `http-equiv="refresh" content="5"`)
		assert.Contains(t, page, "The &lt;b&gt;wiki is waking up")
		assert.Contains(t, page, "wiki: starting")
		assert.NotRegexp(t, `(?i)https?://|src=|@import|url\(|<script`, page, "it loads nothing")
		assert.NotContains(t, r.get(dynamic+"names=wiki&show_details=false").Body.String(), "wiki: starting")
		synctest.Wait()
		assert.Equal(t, 1, r.wakes("wiki"))
		r.see("wiki", workload.Ready)
		rec = r.get(target)
		assert.Equal(t, "ready", rec.Header().Get(statusHeader))
		assert.Equal(t, "text/html; charset=utf-8", rec.Header().Get("Content-Type"))
		assert.Equal(t, began, time.Now(), "nobody waited")
	})
}

func TestAcceptChoosesBetweenThePageAndJSON(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		for accept, kind := range map[string]string{
			"": "text/html", "*/*": "text/html", "text/html,application/json;q=0.9": "text/html", "image/png": "text/html",
			"application/json": "application/json", "application/json, text/html;q=0.5": "application/json",
			"text/html;q=0, application/json": "application/json", ";;;,": "text/html",
		} {
			var header []string
			if accept != "" {
				header = []string{"Accept", accept}
			}
			rec := r.get(dynamic+"names=lone&theme=ghost", header...)
			assert.Equal(t, http.StatusOK, rec.Code)
			assert.Equal(t, "not-ready", rec.Header().Get(statusHeader), accept)
			assert.Contains(t, rec.Header().Get("Content-Type"), kind, accept)
		}
		assert.JSONEq(t, `{"session":{"instances":[{"instance":{"name":"lone","currentReplicas":0,"desiredReplicas":1,"status":"starting"}}],"status":"not-ready"}}`,
			r.get(dynamic+"names=lone", "Accept", "application/json").Body.String())
		r.see("lone", workload.Ready)
		requireReady(t, r.get(dynamic+"names=lone", "Accept", "application/json"), "lone")
	})
}

func TestWhoIsOptionalIsWokenAndNotWaitedFor(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		r.see("wiki", workload.Ready)
		rec := r.get(blocking + "names=wiki&names=optional:lone")
		requireReady(t, rec, "wiki", "lone")
		assert.Contains(t, rec.Body.String(), `"status":"starting"`)
		synctest.Wait()
		assert.Equal(t, 1, r.wakes("lone"))
	})
}

func TestBadInputIsRefusedBeforeAnythingIsStarted(t *testing.T) {
	manyNames := func(n int) string {
		return "names=" + strings.Join(strings.Split(strings.Repeat("wiki,", n-1)+"wiki", ","), "&names=")
	}
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		for query, want := range map[string]struct {
			status     int
			id, detail string
		}{
			"":                                               {400, "validation-error", "either names or group"},
			"names=&group=":                                  {400, "validation-error", "either names or group"},
			"names=wiki&group=office":                        {400, "validation-error", "either names or group"},
			"group=office&group=team":                        {400, "validation-error", "more than one group"},
			manyNames(10_000):                                {400, "validation-error", "more than 256 names"},
			"group=nope":                                     {404, "group-not-found", `"nope"`},
			"names=wiki&names=nobody":                        {404, "instance-not-managed", `"nobody"`},
			"names=optional:nobody":                          {404, "instance-not-managed", `"nobody"`},
			"names=" + strings.Repeat("x", 5000):             {404, "instance-not-managed", "x…"},
			"names=..%2F..%2Fetc%00":                         {404, "instance-not-managed", `\x00`},
			"names=wiki%zz":                                  {400, "validation-error", "cannot be read"},
			"names=wiki&session_duration=1d":                 {400, "validation-error", "24h"},
			"names=wiki&session_duration=-5m":                {400, "validation-error", "not more than 0"},
			"names=wiki&session_duration=0":                  {400, "validation-error", "not more than 0"},
			"names=wiki&session_duration=abc":                {400, "validation-error", `"abc" is not a duration`},
			"names=wiki&session_duration=2000000h":           {400, "validation-error", "more than a year"},
			"names=wiki&session_duration=99999999999999999h": {400, "validation-error", "not a duration"},
			"names=wiki&timeout=soon":                        {400, "validation-error", "timeout"},
			"names=wiki&refresh_frequency=-1s":               {400, "validation-error", "refresh_frequency"},
			"names=wiki&show_details=maybe":                  {400, "validation-error", "show_details"},
		} {
			for _, strategy := range []string{blocking, dynamic} {
				p := requireProblem(t, r.get(strategy+query), want.status, want.id)
				assert.Contains(t, p.Detail, want.detail, query)
				assert.Less(t, len(p.Detail)+len(p.Instance), 800, "nothing is repeated at length")
			}
		}
		p := requireProblem(t, r.get(dynamic+"names=wiki&theme=neon"), http.StatusNotFound, "theme-not-found")
		assert.Contains(t, p.AvailableTheme, "hacker-terminal")
		p = requireProblem(t, r.get(blocking+"group=nope"), http.StatusNotFound, "group-not-found")
		assert.Equal(t, []string{"office", "team"}, p.AvailableGroups)
		synctest.Wait()
		for _, name := range []string{"wiki", "mail", "lone"} {
			assert.Zero(t, r.wakes(name))
		}
	})
}

func TestDurationsAreReadAsPluginsWriteThem(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		r.see("wiki", workload.Ready)
		for _, d := range []string{"5m0s", "1h", "90s", "1.5h", "300", "", "+", "100ms"} {
			requireReady(t, r.get(blocking+"names=wiki&timeout=&unknown=x&session_duration="+d), "wiki")
		}
	})
}

func TestOtherRoutesAndMethods(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		assert.Equal(t, "OK", r.get("/health").Body.String())
		r.healthy.Store(false)
		assert.Equal(t, http.StatusServiceUnavailable, r.get("/health").Code)
		for _, path := range []string{"/api/themes", "/api/dynamic/themes"} {
			assert.JSONEq(t, `{"themes":["ghost","hacker-terminal","matrix","rouse","shuffle"]}`, r.get(path).Body.String())
		}
		requireProblem(t, r.get("/api/strategies"), http.StatusNotFound, "not-found")
		requireProblem(t, r.get("/"), http.StatusNotFound, "not-found")
		rec := httptest.NewRecorder()
		r.api.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, blocking+"names=wiki", nil))
		requireProblem(t, rec, http.StatusMethodNotAllowed, "method-not-allowed")
		requireProblem(t, r.get(blocking+"names=wiki", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden, "cross-site")
		synctest.Wait()
		assert.Zero(t, r.wakes("wiki"))
	})
}

func TestAGroupThatChangesWhileWaitingIsTakenAsItIsThen(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		grows := r.start(blocking + "group=team")
		shrinks := r.start(blocking + "group=office")
		named := r.start(blocking + "names=mail")
		ws := office()
		r.update(ws[0], workload.Workload{Name: "late", Groups: []string{"team"}}) // mail is gone
		time.Sleep(time.Millisecond)
		requireProblem(t, come(t, named), http.StatusNotFound, "instance-not-managed")
		r.see("wiki", workload.Ready)
		requireReady(t, come(t, shrinks), "wiki")
		synctest.Wait()
		require.Empty(t, grows)
		assert.Equal(t, 1, r.wakes("late"))
		r.see("late", workload.Ready)
		requireReady(t, come(t, grows), "late", "wiki")
	})
}

func TestAGroupThatGoesWhileWaitingIsNotFound(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		answer := r.start(blocking + "group=team")
		r.update(office()[1])
		time.Sleep(time.Millisecond)
		requireProblem(t, come(t, answer), http.StatusNotFound, "group-not-found")
	})
}

func TestACallerThatLeavesGivesItsPlaceBack(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		ctx, leave := context.WithCancel(context.Background())
		answer := make(chan *httptest.ResponseRecorder, 1)
		go func() { answer <- r.getContext(ctx, blocking+"group=office") }()
		synctest.Wait()
		leave()
		requireProblem(t, come(t, answer), http.StatusServiceUnavailable, "request-cancelled")
		for _, v := range r.act.Views() {
			assert.Zero(t, v.Queued)
		}
	})
}

func TestTheQueueIsBoundedForCallsToo(t *testing.T) {
	inBubble(t, activator.Config{QueueRequests: 1, WakesPerMinute: 1}, office(), func(t *testing.T, r *rig) {
		first := r.start(blocking + "names=lone")
		rec := r.get(blocking + "names=lone")
		requireProblem(t, rec, http.StatusServiceUnavailable, "queue-full")
		assert.Equal(t, "2", rec.Header().Get("Retry-After"))
		r.see("lone", workload.Ready)
		requireReady(t, come(t, first), "lone")
		r.see("lone", workload.Asleep)
		requireProblem(t, r.get(blocking+"names=lone"), http.StatusServiceUnavailable, "wake-limited")
		page := r.get(dynamic + "names=lone")
		assert.Equal(t, "not-ready", page.Header().Get(statusHeader))
		assert.Contains(t, page.Body.String(), "woken too often")
	})
}

func TestACallKeepsItsWorkloadsAwakeForTheSessionAndCountsAsNoOtherUse(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		keptFor := func(name string) time.Duration {
			for _, l := range r.act.Activity().Loads {
				if l.Workload == name {
					assert.EqualValues(t, -1, l.IdleMS, "no request of ours")
					return time.Duration(l.KeepMS) * time.Millisecond
				}
			}
			return 0
		}
		r.get(dynamic + "names=wiki&session_duration=30s")
		assert.Equal(t, 30*time.Second, keptFor("wiki"), "from the ask on")
		answer := r.start(blocking + "names=wiki&session_duration=10m")
		time.Sleep(20 * time.Second)
		r.see("wiki", workload.Ready)
		requireReady(t, come(t, answer), "wiki")
		assert.Equal(t, 10*time.Minute, keptFor("wiki"), "from the answer on")
		r.get(blocking + "names=wiki&session_duration=1m")
		assert.Equal(t, 10*time.Minute, keptFor("wiki"), "a shorter one takes nothing away")
		time.Sleep(9*time.Minute + 30*time.Second)
		assert.Equal(t, 30*time.Second, keptFor("wiki"))
		r.get(blocking + "names=wiki")
		assert.Equal(t, 5*time.Minute, keptFor("wiki"), "Sablier's default")
		time.Sleep(6 * time.Minute)
		assert.Equal(t, -time.Minute, keptFor("wiki"), "that it was is not forgotten")
	})
}

// A user's request that was let go is on its way when the drain asks.
func TestADrainWaitsForWhatWasJustLetGo(t *testing.T) {
	inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
		r.see("wiki", workload.Ready)
		requireReady(t, r.get(blocking+"names=wiki&session_duration=1s"), "wiki")
		assert.Equal(t, 1, r.act.Drain("wiki", r.revisions.Add(1)).InFlight)
		r.see("wiki", workload.Ready)
		time.Sleep(time.Second)
		assert.Zero(t, r.act.Drain("wiki", r.revisions.Add(1)).InFlight)
		r.start(blocking + "names=wiki&timeout=1s") // the gate is closed by now
		time.Sleep(time.Second)
	})
}

func Example() {
	act := activator.New(activator.Config{}, nil)
	api := sablier.New(sablier.Config{}, act)
	act.Update([]workload.Workload{{Name: "wiki"}})
	api.Update([]workload.Workload{{Name: "wiki"}})
	rec := httptest.NewRecorder()
	api.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api/strategies/dynamic?names=wiki", nil))
	fmt.Println(rec.Code, rec.Header().Get("X-Sablier-Session-Status"))
	// Output: 200 not-ready
}
