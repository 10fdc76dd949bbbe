// Package webhook sends messages to one HTTP receiver each, signed as the
// Standard Webhooks specification asks, and again until the receiver has them.
//
// Guarantees. A message is tried until the receiver answers 2xx, or it is
// given up as Schedule says, or the receiver says with 410 that it wants none
// any more. Its ID and body are the same at each try, its timestamp and
// signatures are of the try. Redirects are not followed. Neither logs nor
// metrics have the URL, which may hold a password.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// Config says where to send, and as whom.
type Config struct {
	// Name is how metrics and logs call the receiver.
	Name string
	// URL takes the messages: http or https.
	URL string
	// Secrets sign each message, with a signature for each; see ParseSecrets.
	Secrets [][]byte
	// Agent is the User-Agent; empty for "rouse".
	Agent string
	// Schedule bounds the tries. A field that is zero has its default.
	Schedule Schedule
	// Logger is where trouble is told; nil discards it.
	Logger *slog.Logger
	// Registerer takes the metrics; nil leaves them unregistered. Several
	// webhooks may share one.
	Registerer prometheus.Registerer
}

// A Schedule says when a message is tried again, and for how long.
type Schedule struct {
	// Answer is how long the receiver may take to answer: 20 s.
	Answer time.Duration
	// First and Most are the pauses between tries, which double: 1 s to 5 min,
	// each longer or shorter by up to half at random.
	First, Most time.Duration
	// Life is how old a message may become: 24 h. An older one is tried once.
	Life time.Duration
	// Refusals is how often a receiver may answer with a status that is about
	// the message (3xx, 4xx but for 408, 425 and 429) before that message is
	// given up, since others wait behind it: 10.
	Refusals int
	// Alarm is for how long all tries must fail before Trouble tells: 5 min.
	Alarm time.Duration
}

func (s Schedule) withDefaults() Schedule {
	return Schedule{
		Answer: or(s.Answer, 20*time.Second), First: or(s.First, time.Second), Most: or(s.Most, 5*time.Minute),
		Life: or(s.Life, 24*time.Hour), Refusals: or(s.Refusals, 10), Alarm: or(s.Alarm, 5*time.Minute),
	}
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// A Message is what the receiver gets.
type Message struct {
	// ID is unique, and has no '.'.
	ID string
	// At is when it came to be.
	At time.Time
	// Body is JSON.
	Body []byte
}

// An Outcome is how Deliver ended.
type Outcome uint8

const (
	// Delivered: the receiver has it.
	Delivered Outcome = iota
	// Dropped: it was given up.
	Dropped
	// Gone: the receiver wants nothing any more.
	Gone
	// Interrupted: ctx ended first; the receiver may have it all the same.
	Interrupted
)

// A Webhook sends to one receiver. It is safe for concurrent use.
type Webhook struct {
	cfg      Config
	log      *slog.Logger
	client   *http.Client
	attempts *prometheus.CounterVec

	mu      sync.Mutex
	failing time.Time // since when all tries fail; zero: they do not; guarded by mu
	last    error     // of the last try; guarded by mu
}

// New makes a webhook; it asks nobody yet.
func New(cfg Config) (*Webhook, error) {
	if u, err := url.Parse(cfg.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("webhook %s: not an http or https url", cfg.Name)
	}
	if len(cfg.Secrets) == 0 {
		return nil, fmt.Errorf("webhook %s: no secret", cfg.Name)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Schedule = cfg.Schedule.withDefaults()
	cfg.Agent = or(cfg.Agent, "rouse")
	attempts, err := newCounter(cfg.Registerer, cfg.Name)
	if err != nil {
		return nil, err
	}
	return &Webhook{
		cfg: cfg, log: cfg.Logger.With("webhook", cfg.Name), client: newClient(cfg.Schedule.Answer), attempts: attempts,
	}, nil
}

func newClient(answer time.Duration) *http.Client {
	return &http.Client{
		Timeout: answer,
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout: 5 * time.Second,
			IdleConnTimeout:     90 * time.Second,
			MaxIdleConnsPerHost: 1,
			ForceAttemptHTTP2:   true,
		},
		// The address is to be mended where it was given.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Name is the receiver's.
func (w *Webhook) Name() string { return w.cfg.Name }

// Close ends idle connections.
func (w *Webhook) Close() { w.client.CloseIdleConnections() }

// Deliver tries until the message has come to its end. It blocks for as long
// as that takes.
func (w *Webhook) Deliver(ctx context.Context, m Message) Outcome {
	s := w.cfg.Schedule
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(s.First), backoff.WithMultiplier(2), backoff.WithMaxInterval(s.Most),
		backoff.WithRandomizationFactor(0.5), backoff.WithMaxElapsedTime(0),
	)
	for refusals := 0; ; {
		err := w.try(ctx, m)
		var said *answer
		if errors.As(err, &said) && said.refuses() {
			refusals++
		}
		switch {
		case err == nil:
			w.note("delivered", nil)
			return Delivered
		case ctx.Err() != nil:
			return Interrupted
		case said != nil && said.status == http.StatusGone:
			w.note("gone", err)
			w.log.Error("receiver wants no messages any more, nothing is sent to it until the next start")
			return Gone
		case refusals >= s.Refusals, time.Since(m.At) > s.Life:
			w.note("dropped", err)
			w.log.Error("message given up", "id", m.ID, "age", time.Since(m.At).Round(time.Second), "error", err)
			return Dropped
		}
		w.note("failed", err)
		pause := pauses.NextBackOff()
		if said != nil {
			pause = max(pause, min(said.after, s.Most))
		}
		if !sleep(ctx, pause) {
			return Interrupted
		}
	}
}

// note counts a try and tells of the first that fails, and of the end of that.
func (w *Webhook) note(result string, err error) {
	w.attempts.WithLabelValues(w.cfg.Name, result).Inc()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && !w.failing.IsZero():
		w.log.Info("receiver takes messages again", "after", time.Since(w.failing).Round(time.Second))
		w.failing = time.Time{}
	case err != nil && w.failing.IsZero():
		w.log.Warn("message not delivered, it is tried again", "error", err)
		w.failing = time.Now()
	}
	w.last = err
}

// Trouble says what is wrong, once it has lasted: nil while messages are
// delivered, or the trouble is young.
func (w *Webhook) Trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var said *answer
	switch {
	case errors.As(w.last, &said) && said.status == http.StatusGone:
		return fmt.Errorf("the receiver answered 410: %w", ErrGone)
	case w.failing.IsZero() || time.Since(w.failing) < w.cfg.Schedule.Alarm:
		return nil
	}
	return fmt.Errorf("nothing was delivered since %s: %w", w.failing.UTC().Format(time.DateTime+"Z"), w.last)
}

// ErrGone is what Trouble tells of a receiver that wants no more.
var ErrGone = errors.New("it wants no more messages")

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// results are the values of the label result, all there from the start.
var results = []string{"delivered", "failed", "dropped", "gone"}

func newCounter(r prometheus.Registerer, name string) (*prometheus.CounterVec, error) {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rouse_webhook_deliveries_total",
		Help: "Tries to deliver to a webhook: delivered, failed (tried again), dropped (given up), gone (410).",
	}, []string{"webhook", "result"})
	if r != nil {
		err := r.Register(c)
		var again prometheus.AlreadyRegisteredError
		if errors.As(err, &again) {
			c, err = again.ExistingCollector.(*prometheus.CounterVec), nil
		}
		if err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	for _, result := range results {
		c.WithLabelValues(name, result)
	}
	return c, nil
}
