package system_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// chaosTimeout is what a request may take before it is lost: well more
	// than a gateway may hold it.
	chaosTimeout = 80 * time.Second
	// longPath is of the requests that are kept open.
	longPath = "/delay/5000"
	// generationsEvery is how often generations are looked at.
	generationsEvery = 500 * time.Millisecond
)

// What became of a request.
type outcome int

const (
	wasLost     outcome = iota
	wasAnswered         // by its workload, and the answer is the one to this request
	wasRefused          // with a reason
	wasOrphaned         // the gateway had died that had it, or all that could have taken it
)

// A sent is one request, with what became of it.
type sent struct {
	id      string
	target  *target
	method  string
	open    bool // kept open on purpose: tells nothing of the time to recover
	at, end time.Time
	outcome outcome
	what    string // reason of a refusal, or what is wrong
}

// A load is an open loop of requests: each at its time, whatever became of
// those before.
type load struct {
	r      *round
	ctx    context.Context // of what is held open
	cancel context.CancelFunc
	stop   chan struct{}
	once   sync.Once
	wg     sync.WaitGroup
	quiet  atomic.Bool
	number atomic.Int64
	client *http.Client
	woken  woken

	mu   sync.Mutex
	done []sent // guarded by mu
}

func newLoad(r *round) *load {
	l := &load{r: r, stop: make(chan struct{}), woken: woken{last: map[string]uint64{}, sum: map[string]uint64{}}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	// A connection for each request: net/http would repeat a GET by itself on
	// one that was used before.
	l.client = &http.Client{Transport: &http.Transport{
		DisableKeepAlives:  true,
		DisableCompression: true,
		DialContext:        (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
	}}
	return l
}

func (l *load) begin(perSecond int) {
	l.wg.Go(func() { l.pace(time.Second / time.Duration(perSecond)) })
	l.wg.Go(l.watch)
	for _, x := range l.r.targets {
		if x.held {
			l.wg.Go(func() { l.stream(x) })
			l.wg.Go(func() { l.longOnes(x) })
		}
	}
}

// end stops the load, and waits for the end of each request.
func (l *load) end() {
	l.once.Do(func() { close(l.stop) })
	l.cancel()
	l.wg.Wait()
	l.woken.look(l.r.targets) // the last request may have woken one
}

func (l *load) pace(every time.Duration) {
	began := time.Now()
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		case <-time.After(time.Until(began.Add(time.Duration(i) * every))):
		}
		if l.quiet.Load() {
			continue
		}
		x := l.r.targets[i%len(l.r.targets)]
		turn := i / len(l.r.targets)
		l.wg.Go(func() { l.one(x, turn) })
	}
}

func (l *load) watch() {
	tick := time.NewTicker(generationsEvery)
	defer tick.Stop()
	for {
		l.woken.look(l.r.targets)
		select {
		case <-tick.C:
		case <-l.stop:
			return
		}
	}
}

// one sends the request whose turn it is.
func (l *load) one(x *target, turn int) {
	if turn%2 == 0 {
		l.send(x, turn, http.MethodGet, "/")
	} else {
		l.send(x, turn, http.MethodPost, "/echo")
	}
}

// longOnes sends one request of five seconds after the other.
func (l *load) longOnes(x *target) {
	for turn := 0; ; turn++ {
		select {
		case <-l.stop:
			return
		default:
			l.send(x, turn, http.MethodGet, longPath)
		}
	}
}

// send sends a request to the first gateway that can be connected to, and
// keeps what became of it.
func (l *load) send(x *target, turn int, method, path string) {
	s := sent{id: fmt.Sprintf("%s-%d", x.workload, l.number.Add(1)), target: x, method: method, open: path == longPath, at: time.Now()}
	ctx, cancel := context.WithTimeout(context.Background(), chaosTimeout)
	defer cancel()
	for _, n := range x.open(turn) {
		resp, err := l.do(ctx, n, s, path)
		if err == nil {
			s.outcome, s.what = judge(resp, s)
			break
		}
		s.outcome, s.what = orphaned(n, err)
		var op *net.OpError
		if s.outcome == wasLost || !errors.As(err, &op) || op.Op != "dial" {
			break // it may have been taken: it must not be sent again
		}
	}
	l.keep(s)
}

func (n *node) hasEnded() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// orphaned tells a gateway that has died from one that breaks connections.
func orphaned(n *node, err error) (outcome, string) {
	select {
	case <-n.ended:
		return wasOrphaned, "gateway gone"
	case <-time.After(2 * time.Second): // its connections break before its end is known
		return wasLost, err.Error()
	}
}

func (l *load) do(ctx context.Context, n *node, s sent, path string) (*echo, error) {
	var body io.Reader
	if s.method == http.MethodPost {
		body = strings.NewReader("body of " + s.id)
	}
	req, err := http.NewRequestWithContext(ctx, s.method, n.traffic+path, body)
	if err != nil {
		return nil, err
	}
	req.Host = s.target.host
	req.Header.Set("X-Request-ID", s.id)
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	return &echo{resp.StatusCode, resp.Header, read}, err
}

// stream keeps a stream open until the load ends. It is answered if it went on
// until then.
func (l *load) stream(x *target) {
	s := sent{id: fmt.Sprintf("%s-stream-%d", x.workload, l.number.Add(1)), target: x, method: "SSE", open: true, at: time.Now()}
	defer func() { l.keep(s) }()
	req, err := http.NewRequestWithContext(l.ctx, http.MethodGet, x.open(0)[0].traffic+"/sse?every=100ms", nil)
	if err != nil {
		s.what = err.Error()
		return
	}
	req.Host = x.host
	req.Header.Set("X-Request-ID", s.id)
	resp, err := l.client.Do(req)
	if err != nil {
		s.what = err.Error()
		return
	}
	defer resp.Body.Close()
	seen := 0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); seen++ {
	}
	if l.ctx.Err() == nil || seen == 0 {
		s.what = fmt.Sprintf("stream cut after %d lines, status %d", seen, resp.StatusCode)
		return
	}
	s.outcome = wasAnswered
}

func (l *load) keep(s sent) {
	s.end = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, s)
}

// answeredSince reports an answer to a request that was sent after from.
func (l *load) answeredSince(x *target, from time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.done) - 1; i >= 0; i-- {
		if s := &l.done[i]; s.outcome == wasAnswered && s.target == x && s.at.After(from) && !s.open {
			return true
		}
	}
	return false
}
