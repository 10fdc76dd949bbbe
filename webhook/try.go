package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// readMost is how much of an answer is read, so that its connection can be
// used again.
const readMost = 64 << 10

// An answer is a status other than 2xx.
type answer struct {
	status int
	after  time.Duration // what Retry-After asks for; 0: nothing
}

func (a *answer) Error() string {
	return fmt.Sprintf("answered %d %s", a.status, http.StatusText(a.status))
}

// refuses reports a status that is about the message or the URL, and not
// about a receiver that has no time.
func (a *answer) refuses() bool {
	busy := []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}
	return a.status >= 300 && a.status < 500 && !slices.Contains(busy, a.status)
}

// try sends the message once. nil: the receiver has it.
func (w *Webhook) try(ctx context.Context, m Message) error {
	r, err := w.request(ctx, m, time.Now())
	if err != nil {
		return err
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return bare(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, readMost) // the status has said it all
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	return &answer{status: resp.StatusCode, after: retryAfter(resp.Header.Get("Retry-After"))}
}

func (w *Webhook) request(ctx context.Context, m Message, now time.Time) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.cfg.URL, bytes.NewReader(m.Body))
	if err != nil {
		return nil, bare(err)
	}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", w.cfg.Agent)
	r.Header.Set("webhook-id", m.ID)
	r.Header.Set("webhook-timestamp", timestamp)
	r.Header.Set("webhook-signature", sign(w.cfg.Secrets, m.ID, timestamp, m.Body))
	return r, nil
}

// bare is the error without the URL.
func bare(err error) error {
	var about *url.Error
	if !errors.As(err, &about) {
		return err
	}
	if about.Timeout() {
		return errors.New("no answer in time")
	}
	return about.Err
}

// retryAfter reads the header's seconds, or its date.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 1<<30)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
