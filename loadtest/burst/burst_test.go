package burst

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A server that holds some and refuses the rest, as a bounded queue does.
func TestEveryRequestIsCountedByWhatItMet(t *testing.T) {
	var asked atomic.Int64
	all := make(chan struct{})
	ready := make(chan time.Time, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		if n == 50 {
			ready <- time.Now()
			close(all)
		}
		if n > 20 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		<-all
	})
	mux.HandleFunc("/api/v1/wakes", func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "x", r.URL.Query().Get("workload"))
		_, _ = fmt.Fprintf(w, `{"wakes":[{"ready_at":%q}]}`, (<-ready).Format(time.RFC3339Nano))
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	r, err := Run(context.Background(), Config{
		URL: s.URL + "/", Admin: s.URL, Workload: "x", Requests: 50, Timeout: 20 * time.Second,
		PID: os.Getpid(), MemoryAfter: time.Millisecond,
	})
	require.NoError(t, err)
	assert.Equal(t, 50, r.Requests)
	assert.Zero(t, r.Lost)
	require.Len(t, r.Statuses, 2)
	assert.Equal(t, 200, r.Statuses[0].Status)
	assert.Equal(t, 20, r.Statuses[0].Count)
	assert.Zero(t, r.Statuses[0].Retry)
	assert.Equal(t, 503, r.Statuses[1].Status)
	assert.Equal(t, 30, r.Statuses[1].Count)
	assert.Equal(t, 30, r.Statuses[1].Retry)
	assert.Positive(t, r.LastAfterReadyMS)
	assert.Positive(t, r.IdleBytes)
}

func TestTimesAreOfTheirStatus(t *testing.T) {
	t0 := time.Now()
	var outcomes []outcome
	for i := range 100 {
		outcomes = append(outcomes, outcome{status: 200, sent: t0, ended: t0.Add(time.Duration(i+1) * time.Millisecond)})
	}
	outcomes = append(outcomes, outcome{status: 503, sent: t0, ended: t0.Add(time.Second)}, outcome{err: errors.New("reset")})
	r := summarize(outcomes)
	assert.Equal(t, 1, r.Lost)
	assert.Equal(t, StatusTimes{Status: 200, Count: 100, MinMS: 1, MedianMS: 51, P99MS: 100, MaxMS: 100}, r.Statuses[0])
	assert.Equal(t, StatusTimes{Status: 503, Count: 1, MinMS: 1000, MedianMS: 1000, P99MS: 1000, MaxMS: 1000}, r.Statuses[1])
}

func TestResidentMemoryIsReadFromStatus(t *testing.T) {
	n, err := parseResident([]byte("Name:\trouse\nVmRSS:\t   34992 kB\nRssAnon:\t 1 kB\n"))
	require.NoError(t, err)
	assert.Equal(t, int64(34992<<10), n)
	_, err = parseResident([]byte("Name:\trouse\n"))
	assert.Error(t, err)
}
