package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/internal/browsertest"
	"github.com/rouse-dev/rouse/workload"
)

// home is a household of workloads with a past.
func home(t *testing.T) (*stage, *prometheus.Registry) {
	t.Helper()
	now := time.Now()
	var list []api.Workload
	s := newStage()
	for i, name := range []string{"wiki", "photos", "git", "preview-482", "recipes", "llama", "jellyfin", "ci", "budget", "paperless"} {
		w := api.Workload{Name: name, Hosts: []string{name + ".example.com"}, Since: now.Add(-time.Duration(i) * time.Hour), Generation: uint64(i), ColdStarts: i % 4,
			Node: "local", Runtime: "docker", Origin: name + " (container)"}
		for k := range i % 4 {
			began := now.Add(-time.Duration(20-5*k)*time.Hour - time.Duration(17*i)*time.Minute)
			wake := workload.Wake{ID: fmt.Sprint(name, k), Workload: name, Trigger: workload.TriggerRequest, Gateway: "gw", RequestedAt: began,
				ReceivedAt: began.Add(2 * time.Millisecond), StartAt: began.Add(3 * time.Millisecond), StartedAt: began.Add(time.Duration(180+40*i) * time.Millisecond),
				ReadyAt: began.Add(time.Duration(400+300*i) * time.Millisecond), OpenedAt: began.Add(time.Duration(401+300*i) * time.Millisecond)}
			wake.ReleasedAt = wake.OpenedAt.Add(4 * time.Millisecond)
			s.Add(workload.Event{Workload: name, Kind: workload.EventReady, At: wake.ReadyAt, Wake: &wake})
			s.Add(workload.Event{Workload: name, Kind: workload.EventSlept, At: began.Add(time.Duration(1+i%3) * time.Hour), Reason: workload.Reason{Code: workload.ReasonIdle}, FreedBytes: int64(200+100*i) << 20})
		}
		list = append(list, w)
	}
	list[0].Phase, list[0].InFlight, list[0].Replicas = workload.Ready, 2, []api.Replica{{ID: "r", Address: "172.17.0.2:80", InFlight: 2}}
	list[2].Phase, list[2].SleepsAt = workload.Ready, now.Add(9*time.Minute)
	list[5].Phase, list[5].Queued = workload.Waking, 3
	list[7].Phase, list[7].Reason = workload.Failed, workload.Reason{Code: workload.ReasonExited, ExitCode: 1, Detail: "no such table: jobs"}
	s.list, s.workloads = list, list
	s.Add(workload.Event{Workload: "git", Kind: workload.EventReady, At: now.Add(-50 * time.Minute)})
	s.lines = []string{"listening on :80", "<b>not bold</b>"}
	s.problems = []workload.Problem{{Workload: "photos", Place: "photos (container)", Message: `unknown label rouse.idle-timout`, Fix: "did you mean rouse.idle-timeout?"}}
	reg := prometheus.NewRegistry()
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rouse_added_latency_seconds", Buckets: []float64{
		25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60}}, []string{"workload", "path"})
	require.NoError(t, reg.Register(h))
	gauge := func(name string, value float64, labels prometheus.Labels) {
		require.NoError(t, reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, ConstLabels: labels}, func() float64 { return value })))
	}
	for i, stream := range []string{"KV_ROUSE_STATE", "ROUSE_EVENTS", "ROUSE_WAKES"} {
		gauge("jetstream_stream_total_messages", float64(10*i), prometheus.Labels{"stream_name": stream, "stream_leader": "home"})
		gauge("jetstream_stream_total_bytes", float64(123_456*i), prometheus.Labels{"stream_name": stream, "stream_leader": "home"})
	}
	gauge("rouse_nats_connected", 1, nil)
	gauge("jetstream_consumer_num_waiting", 1, prometheus.Labels{"stream_name": "ROUSE_WAKES", "consumer_name": "scaler-local"})
	for i := range 1000 {
		h.WithLabelValues("wiki", "warm").Observe(20e-6 + float64(i*i)*3e-10)
	}
	for i := range 12 {
		h.WithLabelValues("wiki", "cold").Observe(2e-3 + float64(i)*1e-3)
	}
	return s, reg
}

const drawn = `document.querySelectorAll("#rows tr button").length > 0 && document.querySelector("#tiles dd") !== null`

func TestDashboardCanBeReadByEverybody(t *testing.T) {
	s, reg := home(t)
	tab := browsertest.Open(t, nil)
	base := serving(t, api.Config{Gatherer: reg, Version: "v1.0.0"}, s).URL
	tab.Screen("light", 1280, 900)
	tab.Visit(base + "/")
	tab.Until(drawn)
	tab.Until(`document.querySelectorAll("#nats-tables tbody tr").length === 4`)
	tab.Until(`!!document.querySelector("#histogram svg") && document.querySelector(".strip").title !== ""`)
	complaints, requests := tab.Heard()
	assert.Empty(t, complaints)
	for _, asked := range requests {
		assert.True(t, strings.HasPrefix(asked, base) || strings.HasPrefix(asked, "data:"), "it asks for %s", asked)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390, 320} {
			where := fmt.Sprintf("dashboard-%s-%d", scheme, width)
			tab.Screen(scheme, width, 900)
			look := tab.Look()
			assert.LessOrEqual(t, look.Overflow, 0.0, where)
			assert.Empty(t, look.Unreadable, where)
			assert.Greater(t, look.Texts, 100, where)
			if dir := os.Getenv("PICTURES"); dir != "" && width != 320 {
				tab.Screen(scheme, width, 1500)
				require.NoError(t, os.WriteFile(filepath.Join(dir, where+".png"), tab.Picture(), 0o644))
			}
		}
	}
	names := map[string]int{}
	live := 0
	for _, n := range tab.Tree() {
		if browsertest.Controls[n.Role] {
			assert.NotEmpty(t, n.Name, n.Role)
			names[n.Role+" "+n.Name]++
		}
		if n.Live == "polite" {
			live++
		}
	}
	for _, control := range []string{"button Wake: photos", "button Put to sleep: wiki", "button Keep awake for an hour: git", "searchbox Filter", "combobox Order", "button photos"} {
		assert.Equal(t, 1, names[control], "%s of %v", control, names)
	}
	assert.Positive(t, live, "what happens is announced")
	assert.True(t, slices.ContainsFunc(tab.Tree(), func(n browsertest.Node) bool { return n.Role == "image" && strings.Contains(n.Name, "of 24 h") }), "the strip is told in words")
	assert.Contains(t, browsertest.Eval[string](tab, `document.getElementById("wrongs").textContent`), "rouse.idle-timeout?")
}

func TestDashboardShowsAnEventAtOnce(t *testing.T) {
	s, _ := home(t)
	tab := browsertest.Open(t, nil)
	tab.Visit(serving(t, api.Config{}, s).URL + "/")
	tab.Until(drawn)
	var took []time.Duration
	for i := range 9 {
		phase, kind := workload.Ready, workload.EventReady
		if i%2 == 1 {
			phase, kind = workload.Asleep, workload.EventSlept
		}
		text := fmt.Sprintf(`[...document.querySelectorAll("#rows tr")].find(r => r.textContent.startsWith("photos")).querySelector(".phase").textContent === %q`, phase)
		seen := make(chan time.Time, 1)
		go func() {
			tab.Until(text)
			seen <- time.Now()
		}()
		time.Sleep(50*time.Millisecond + time.Duration(i*17)*time.Millisecond)
		began := time.Now()
		s.change("photos", kind, func(w *api.Workload) { w.Phase = phase })
		took = append(took, (<-seen).Sub(began))
	}
	slices.Sort(took)
	t.Logf("from an event to the page: median %v, most %v of %d", took[len(took)/2], took[len(took)-1], len(took))
	assert.Contains(t, browsertest.Eval[string](tab, `document.getElementById("tail").textContent`), "photos")
}

func TestDashboardWakesPutsToSleepAndKeeps(t *testing.T) {
	s, _ := home(t)
	tab := browsertest.Open(t, nil)
	tab.Visit(serving(t, api.Config{}, s).URL + "/")
	tab.Until(drawn)
	press := func(name string) {
		t.Helper()
		tab.Do(chromedp.Focus(chromedp.CSS(fmt.Sprintf(`[aria-label=%q]`, name))), chromedp.KeyEvent("\r")) // by keyboard alone
	}
	press("Wake: photos")
	require.Eventually(t, func() bool { s.fake.mu.Lock(); defer s.fake.mu.Unlock(); return len(s.waits) == 1 }, 10*time.Second, time.Millisecond)
	s.change("photos", workload.EventReady, func(w *api.Workload) { w.Phase = workload.Ready })
	tab.Until(`document.getElementById("said").textContent === "photos is ready."`)
	press("Put to sleep: photos")
	require.Eventually(t, func() bool {
		s.fake.mu.Lock()
		defer s.fake.mu.Unlock()
		return slices.Equal(s.slept, []string{"photos"})
	}, 10*time.Second, time.Millisecond)
	press("Keep awake for an hour: git")
	require.Eventually(t, func() bool {
		s.fake.mu.Lock()
		defer s.fake.mu.Unlock()
		return slices.Equal(s.kept, []time.Duration{time.Hour})
	}, 10*time.Second, time.Millisecond)
	s.change("git", "", func(w *api.Workload) { w.KeptUntil = time.Now().Add(time.Hour) })
	tab.Until(`!!document.querySelector('[aria-label="Do not keep awake: git"]')`)

	tab.Do(chromedp.Focus(chromedp.CSS("#filter")), chromedp.KeyEvent("llama"))
	tab.Until(`[...document.querySelectorAll("#rows tr")].filter(r => r.checkVisibility()).length === 1`)
	tab.Do(chromedp.Click(chromedp.CSS("#rows tr:not([hidden]) th button")))
	tab.Until(`document.getElementById("more").open && document.getElementById("more-text").textContent.includes("<b>not bold</b>")`)
	assert.Contains(t, browsertest.Eval[string](tab, `document.getElementById("more-text").textContent`), "3 requests wait for it.")
}

func TestDashboardLinksToOneColdStart(t *testing.T) {
	s, _ := home(t)
	tab := browsertest.Open(t, nil)
	base := serving(t, api.Config{}, s).URL
	tab.Visit(base + "/#wake=git1")
	tab.Until(`document.getElementById("more").open && document.getElementById("more-title").textContent === "Cold start of git"`)
	assert.Equal(t, 6, browsertest.Eval[int](tab, `document.querySelectorAll("#more .bar i").length`))
	tab.Do(chromedp.Click(chromedp.CSS("#close")))
	tab.Until(`location.hash === ""`)
}

func TestDashboardAsksForTheTokenAndKeepsItOutOfTheURL(t *testing.T) {
	s, _ := home(t)
	tab := browsertest.Open(t, nil)
	base := serving(t, api.Config{Token: "s3cret"}, s).URL
	tab.Visit(base + "/")
	tab.Until(`document.getElementById("login").checkVisibility()`)
	tab.Do(chromedp.SendKeys(chromedp.CSS("#token"), "wrong\r"))
	tab.Until(`document.getElementById("wrong").textContent === "That is not the token."`)
	tab.Do(chromedp.SendKeys(chromedp.CSS("#token"), "s3cret\r"))
	tab.Until(drawn)
	assert.False(t, browsertest.Eval[bool](tab, `document.getElementById("login").checkVisibility()`))
	tab.Visit(base + "/")
	tab.Until(drawn) // it is remembered for this tab
	_, requests := tab.Heard()
	require.NotEmpty(t, requests)
	for _, asked := range requests {
		assert.NotContains(t, asked, "s3cret")
	}
	assert.Equal(t, "", browsertest.Eval[string](tab, `location.search + location.hash`))
}

func TestDashboardTakesAnyName(t *testing.T) {
	tab := browsertest.Open(t, nil)
	evil := `<img src=x onerror=alert(1)>` + strings.Repeat("Übergröße-", 1000)
	s := newStage(api.Workload{Name: evil, Phase: workload.Failed, Hosts: []string{evil}, Reason: workload.Reason{Code: "exited", Detail: evil}, Origin: evil})
	s.problems = []workload.Problem{{Workload: evil, Message: evil, Fix: evil}}
	s.Add(workload.Event{Workload: evil, Kind: workload.EventFailed, At: time.Now(), Reason: workload.Reason{Detail: evil}, Wake: &workload.Wake{ID: evil, Workload: evil, RequestedAt: time.Now()}})
	tab.Screen("light", 390, 900)
	tab.Visit(serving(t, api.Config{}, s).URL + "/")
	tab.Until(drawn)
	assert.Zero(t, browsertest.Eval[int](tab, `document.querySelectorAll("img").length`))
	assert.LessOrEqual(t, tab.Look().Overflow, 0.0)
	complaints, _ := tab.Heard()
	assert.Empty(t, complaints)
}

func TestDashboardFindsTheServerAgain(t *testing.T) {
	s, _ := home(t)
	tab := browsertest.Open(t, nil)
	server := serving(t, api.Config{}, s)
	tab.Visit(server.URL + "/")
	tab.Until(drawn)
	server.CloseClientConnections()
	s.change("photos", workload.EventReady, func(w *api.Workload) { w.Phase = workload.Ready })
	tab.Until(`!!document.querySelector('[aria-label="Put to sleep: photos"]') && document.getElementById("link").textContent === "live"`)
}
