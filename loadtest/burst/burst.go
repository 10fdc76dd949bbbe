// Package burst measures many requests at once to one sleeping workload:
// what becomes of each, how soon, and what holding them costs Rouse.
//
// It knows Rouse as its clients do: the traffic address, and the admin API
// for the moment of readiness. Every connection is opened before the first
// request is sent, so that all requests are on their way within milliseconds
// and the time of a refusal is that of the answer alone.
package burst

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Config says what to send where.
type Config struct {
	// URL is what to ask for, through Rouse; only http.
	URL string
	// Host is the Host header; empty takes the URL's.
	Host string
	// Admin is the base URL of Rouse's admin API.
	Admin string
	// Workload is the name of the workload, which must be asleep.
	Workload string
	// Requests is how many.
	Requests int
	// Timeout bounds everything.
	Timeout time.Duration
	// PID is the process that holds the requests; 0 measures no memory.
	PID int
	// MemoryAfter is how long after the last request was sent the memory is
	// read: while they are held.
	MemoryAfter time.Duration
}

// A Result is what came of one burst. Times are in milliseconds.
type Result struct {
	Requests int           `json:"requests"`
	Lost     int           `json:"lost"` // no answer at all
	Statuses []StatusTimes `json:"statuses"`
	// SendMS is from the first request sent to the last.
	SendMS float64 `json:"send_ms"`
	// LastAfterReadyMS is from the readiness of the workload, as its wake
	// record tells it, to the end of the last answer of 200.
	LastAfterReadyMS float64 `json:"last_after_ready_ms"`
	// HeldBytes is what one held request adds to the resident memory of the
	// process beyond what it had before the connections; 0: not measured.
	HeldBytes int64 `json:"held_bytes,omitempty"`
	// IdleBytes is what it had before.
	IdleBytes int64 `json:"idle_bytes,omitempty"`
}

// StatusTimes are the answers with one status: how many, and the time from
// the sending of each request to the end of its answer.
type StatusTimes struct {
	Status   int     `json:"status"`
	Count    int     `json:"count"`
	Retry    int     `json:"with_retry_after"`
	MinMS    float64 `json:"min_ms"`
	MedianMS float64 `json:"median_ms"`
	P99MS    float64 `json:"p99_ms"`
	MaxMS    float64 `json:"max_ms"`
}

// An outcome is one request's.
type outcome struct {
	status      int
	retry       bool
	sent, ended time.Time
	err         error
}

// Run sends the burst and waits for every answer.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	before, err := Resident(cfg.PID)
	if err != nil {
		return nil, err
	}
	conns, request, err := connect(ctx, cfg)
	defer closeAll(conns)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	outcomes := make([]outcome, len(conns))
	allSent := make(chan struct{})
	var answers sync.WaitGroup
	for i, conn := range conns {
		outcomes[i].sent = time.Now()
		if _, err := conn.Write(request); err != nil {
			outcomes[i].err = err
			continue
		}
		answers.Go(func() { outcomes[i].read(conn, allSent) })
	}
	sent := time.Now()
	close(allSent)
	held, err := memoryLater(ctx, cfg)
	answers.Wait()
	if err != nil {
		return nil, err
	}
	r := summarize(outcomes)
	r.SendMS = ms(sent.Sub(began))
	r.IdleBytes = before
	if cfg.PID != 0 {
		r.HeldBytes = (held - before) / int64(len(conns))
	}
	return r, r.sinceReady(ctx, cfg, outcomes)
}

// connect opens the connections and makes the bytes of the request.
func connect(ctx context.Context, cfg Config) ([]net.Conn, []byte, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, nil, fmt.Errorf("%q is not a http:// address", cfg.URL)
	}
	host := cfg.Host
	if host == "" {
		host = u.Host
	}
	var conns []net.Conn
	deadline, _ := ctx.Deadline()
	for range cfg.Requests {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
		if err != nil {
			return conns, nil, fmt.Errorf("connection %d: %w", len(conns)+1, err)
		}
		conns = append(conns, conn)
		if err := conn.SetDeadline(deadline); err != nil {
			return conns, nil, err
		}
	}
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: loadtest\r\nAccept: */*\r\n\r\n", u.RequestURI(), host)
	return conns, request, nil
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		_ = c.Close() // nothing more is wanted of it
	}
}

// read takes the answer in. It is parsed only once every request has been
// sent: what this program does on the machine's cores in between would be
// measured as Rouse's.
func (o *outcome) read(conn net.Conn, allSent <-chan struct{}) {
	s := &stamped{conn: conn}
	first := make([]byte, 4096)
	n, err := s.Read(first)
	<-allSent
	if err == nil {
		o.status, o.retry, err = parse(io.MultiReader(bytes.NewReader(first[:n]), s))
	}
	o.ended, o.err = s.last, err
}

func parse(r io.Reader) (status int, retry bool, err error) {
	res, err := http.ReadResponse(bufio.NewReader(r), nil)
	if err != nil {
		return 0, false, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header.Get("Retry-After") != "", err
}

// stamped remembers when bytes last came.
type stamped struct {
	conn net.Conn
	last time.Time
}

func (s *stamped) Read(p []byte) (int, error) {
	n, err := s.conn.Read(p)
	s.last = time.Now()
	return n, err
}

// memoryLater reads the memory while the requests are held.
func memoryLater(ctx context.Context, cfg Config) (int64, error) {
	if cfg.PID == 0 {
		return 0, nil
	}
	select {
	case <-time.After(cfg.MemoryAfter):
		return Resident(cfg.PID)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func summarize(outcomes []outcome) *Result {
	r := &Result{Requests: len(outcomes)}
	times := map[int][]time.Duration{} // status -> of each answer
	retries := map[int]int{}
	for _, o := range outcomes {
		if o.err != nil {
			r.Lost++
			continue
		}
		times[o.status] = append(times[o.status], o.ended.Sub(o.sent))
		if o.retry {
			retries[o.status]++
		}
	}
	for status, ts := range times {
		slices.Sort(ts)
		at := func(q float64) float64 { return ms(ts[min(len(ts)-1, int(q*float64(len(ts))))]) }
		r.Statuses = append(r.Statuses, StatusTimes{
			Status: status, Count: len(ts), Retry: retries[status],
			MinMS: at(0), MedianMS: at(0.5), P99MS: at(0.99), MaxMS: at(1),
		})
	}
	slices.SortFunc(r.Statuses, func(a, b StatusTimes) int { return a.Status - b.Status })
	return r
}

// Save writes result.json into the directory, which it makes if need be.
func (r *Result) Save(dir string) error {
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "result.json"), append(encoded, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("save result: %w", err)
	}
	return nil
}

// sinceReady asks for the wake record and fills in LastAfterReadyMS.
func (r *Result) sinceReady(ctx context.Context, cfg Config, outcomes []outcome) error {
	var last time.Time
	for _, o := range outcomes {
		if o.err == nil && o.status == http.StatusOK && o.ended.After(last) {
			last = o.ended
		}
	}
	if last.IsZero() {
		return errors.New("no request was answered with 200")
	}
	ready, err := readyAt(ctx, cfg)
	if err == nil {
		r.LastAfterReadyMS = ms(last.Sub(ready))
	}
	return err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
