package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/workload"
)

// A stage is a Backend whose workloads change while somebody looks.
type stage struct {
	*fake
	mu   sync.Mutex
	list []api.Workload
	asks int // of the list
}

func newStage(workloads ...api.Workload) *stage { return &stage{fake: newFake(), list: workloads} }

func (s *stage) Workloads(context.Context) ([]api.Workload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks++
	return slices.Clone(s.list), nil
}

func (s *stage) Workload(_ context.Context, name string) (api.Workload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.list {
		if w.Name == name {
			return w, nil
		}
	}
	return api.Workload{}, api.ErrNoWorkload
}

// change changes the workload of a name, and says so in the history.
func (s *stage) change(name string, kind workload.EventKind, change func(*api.Workload)) {
	s.mu.Lock()
	for i := range s.list {
		if s.list[i].Name == name {
			change(&s.list[i])
		}
	}
	s.mu.Unlock()
	if kind != "" {
		s.Add(workload.Event{Workload: name, Kind: kind, At: time.Now(), Actor: "scaler"})
	}
}

func (s *stage) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks
}

// A viewer follows the frames.
type viewer struct {
	t    *testing.T
	read *bufio.Reader
}

// look begins to follow; leave ends it.
func look(t *testing.T, base string) (v *viewer, leave func()) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/live", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	t.Cleanup(func() { leave(); _ = res.Body.Close() })
	return &viewer{t, bufio.NewReader(res.Body)}, leave
}

// A seen frame is one with its workloads read.
type seen struct {
	api.Frame
	list []api.Workload
}

func (v *viewer) next() seen {
	v.t.Helper()
	for {
		line, err := v.read.ReadString('\n')
		require.NoError(v.t, err)
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var f seen
		require.NoError(v.t, json.Unmarshal([]byte(data), &f.Frame))
		for _, text := range f.Workloads {
			var w api.Workload
			require.NoError(v.t, json.Unmarshal(text, &w))
			f.list = append(f.list, w)
		}
		return f
	}
}

// serving is a server that ends with the test, and its streams with it: a page
// that looks for it again may have begun another meanwhile.
func serving(t *testing.T, cfg api.Config, b api.Backend) *httptest.Server {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	server := httptest.NewUnstartedServer(api.New(cfg, b))
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	t.Cleanup(func() { end(); server.Close() })
	return server
}

func TestLiveTellsEverythingAndThenWhatHasChanged(t *testing.T) {
	s := newStage(api.Workload{Name: "blog", Phase: workload.Asleep}, api.Workload{Name: "wiki", Phase: workload.Asleep})
	for _, e := range coldStart("w0", "blog", 0) {
		s.Add(e)
	}
	v, _ := look(t, serving(t, api.Config{}, s).URL)
	first := v.next()
	assert.True(t, first.Whole)
	require.Len(t, first.list, 2)
	require.Len(t, first.Wakes, 1)
	assert.Len(t, first.Events, 5)
	assert.Empty(t, first.Events[0].Wake.Phases, "the cold start is in wakes alone")
	assert.JSONEq(t, "[]", string(first.Problems))

	s.change("wiki", workload.EventReady, func(w *api.Workload) { w.Phase, w.Queued = workload.Ready, 3 })
	f := v.next()
	for len(f.list) == 0 || len(f.Events) == 0 {
		more := v.next()
		f.list, f.Events = append(f.list, more.list...), append(f.Events, more.Events...)
	}
	assert.False(t, f.Whole)
	require.Len(t, f.list, 1, "only what has changed")
	assert.Equal(t, workload.Ready, f.list[0].Phase)
	require.Len(t, f.Events, 1)
	assert.Equal(t, workload.EventReady, f.Events[0].Kind)
	assert.Nil(t, f.Problems)

	s.mu.Lock()
	s.list = s.list[:1]
	s.mu.Unlock()
	for f = v.next(); f.Gone == nil; f = v.next() {
	}
	assert.Equal(t, []string{"wiki"}, f.Gone)
}

func TestLiveHasWhatAColdStartHasCometo(t *testing.T) {
	s := newStage(api.Workload{Name: "wiki"})
	v, _ := look(t, serving(t, api.Config{}, s).URL)
	v.next()
	for _, e := range coldStart("w1", "wiki", 0) {
		s.Add(e)
	}
	var last api.Wake
	for last.ReleasedAt.IsZero() {
		if f := v.next(); len(f.Wakes) > 0 {
			last = f.Wakes[len(f.Wakes)-1]
		}
	}
	assert.Equal(t, "w1", last.ID)
	assert.Equal(t, api.ResultReady, last.Result)
	assert.NotEmpty(t, last.Phases)
}

func TestLiveLooksOnceForAllAndNotAtAllForNobody(t *testing.T) {
	s := newStage(api.Workload{Name: "wiki"})
	base := serving(t, api.Config{}, s).URL
	assert.Zero(t, s.asked())
	var leaves []func()
	for range 20 {
		v, leave := look(t, base)
		v.next()
		leaves = append(leaves, leave)
	}
	before := s.asked()
	time.Sleep(time.Second)
	assert.LessOrEqual(t, s.asked()-before, 10, "about seven times in a second, whoever looks")
	for _, leave := range leaves {
		leave()
	}
	require.Eventually(t, func() bool {
		before := s.asked()
		time.Sleep(400 * time.Millisecond)
		return s.asked() == before
	}, 20*time.Second, time.Millisecond)
	v, _ := look(t, base)
	assert.True(t, v.next().Whole, "and it begins anew")
}

func TestLiveLeavesOutWhatComesTooFastAndSaysHowMuch(t *testing.T) {
	s := newStage(api.Workload{Name: "wiki"})
	v, _ := look(t, serving(t, api.Config{}, s).URL)
	v.next()
	const n = 5000
	for i := range n {
		s.Add(workload.Event{Workload: "wiki", Kind: workload.EventSlept, At: noon.Add(time.Duration(i)), Generation: uint64(i)})
	}
	told, missed := 0, 0
	var last api.Event
	for told+missed < n {
		f := v.next()
		assert.LessOrEqual(t, len(f.Events), 50)
		told, missed = told+len(f.Events), missed+f.Missed
		if len(f.Events) > 0 {
			last = f.Events[len(f.Events)-1]
		}
	}
	assert.Equal(t, n, told+missed, "none is lost without a word")
	assert.EqualValues(t, n-1, last.Generation, "the newest are kept")
}

func TestLiveKeepsUpWithAViewerThatIsSlow(t *testing.T) {
	s := newStage(api.Workload{Name: "wiki"})
	v, _ := look(t, serving(t, api.Config{}, s).URL)
	v.next()
	big := strings.Repeat("x", 1<<20)
	for i := range 60 { // more than is kept for it, and than its socket takes
		s.change("wiki", "", func(w *api.Workload) { w.Path = fmt.Sprint(i, big) })
		time.Sleep(160 * time.Millisecond)
	}
	var f seen
	frames := 0
	for f = v.next(); !strings.HasPrefix(f.list[len(f.list)-1].Path, "59"); f = v.next() {
		frames++
	}
	assert.Less(t, frames, 60, "it was given the whole in place of what it had missed")
}
