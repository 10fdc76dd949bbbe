package coldstart

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// poll is how often the admin API is asked for news.
const poll = 20 * time.Millisecond

// rouse is the system under test, as its callers see it.
type rouse struct {
	cfg   Config
	api   string
	admin *http.Client
}

func newRouse(cfg Config) *rouse {
	return &rouse{
		cfg:   cfg,
		api:   strings.TrimSuffix(cfg.Admin, "/") + "/api/v1",
		admin: &http.Client{},
	}
}

// coldStart puts the workload to sleep, then wakes it by a request.
func (r *rouse) coldStart(ctx context.Context, t *Trial) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	if err := r.sleep(ctx); err != nil {
		return err
	}
	pause(ctx, r.cfg.Settle)
	seen, err := r.request(ctx)
	if err != nil {
		return err
	}
	if seen.wake, err = r.wake(ctx, seen.sent); err != nil {
		return err
	}
	seen.into(t)
	return nil
}

// bareStart starts the reference, if there is one, and stops it again.
func (r *rouse) bareStart(ctx context.Context, t *Trial) error {
	if r.cfg.Bare == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	if err := r.sleep(ctx); err != nil { // alone on the machine, as the other
		return err
	}
	pause(ctx, r.cfg.Settle)
	times, err := r.cfg.Bare.Start(ctx)
	if stopErr := r.cfg.Bare.Stop(ctx); err == nil {
		err = stopErr
	}
	if err != nil {
		return fmt.Errorf("bare start: %w", err)
	}
	t.Bare = times.bare()
	return nil
}

// sleep returns once the workload is asleep. What is still in use is asked
// again, until ctx ends.
func (r *rouse) sleep(ctx context.Context) error {
	for {
		var view struct{ Phase string }
		err := r.call(ctx, http.MethodGet, "/workloads/"+url.PathEscape(r.cfg.Workload), &view)
		if err == nil && view.Phase == "asleep" {
			return nil
		}
		if err == nil && view.Phase != "draining" {
			err = r.call(ctx, http.MethodPost, "/workloads/"+url.PathEscape(r.cfg.Workload)+"/sleep", nil)
		}
		if !pause(ctx, poll) {
			return fmt.Errorf("put %s to sleep: it is %q: %w", r.cfg.Workload, view.Phase, orCause(ctx, err))
		}
	}
}

// orCause prefers the error that explains why the time ran out.
func orCause(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// request is one request to the sleeping workload, over a connection that is
// open: what stands in front of Rouse keeps its connections. It is written and
// read by this goroutine alone, for a client that hands an answer from one
// goroutine to the next would be measured as Rouse.
func (r *rouse) request(ctx context.Context) (*observation, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.cfg.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if r.cfg.Host != "" {
		request.Host = r.cfg.Host
	}
	var head bytes.Buffer
	if err := request.Write(&head); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", request.URL.Host)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline() // there is one: Config.Timeout
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	if !pause(ctx, settled) {
		return nil, context.Cause(ctx)
	}
	seen := &observation{sent: time.Now()}
	if _, err := conn.Write(head.Bytes()); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(&firstByte{conn: conn, at: &seen.firstByte}), request)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	return seen, seen.read(answer)
}

// settled is how long a connection is left alone before it is used, so that
// its opening is over on both sides.
const settled = 20 * time.Millisecond

// firstByte notes when the first bytes came.
type firstByte struct {
	conn net.Conn
	at   *time.Time
}

func (f *firstByte) Read(p []byte) (int, error) {
	n, err := f.conn.Read(p)
	if n > 0 && f.at.IsZero() {
		*f.at = time.Now()
	}
	return n, err
}

// read takes the rest of the answer in, which must be that of a cold start.
func (o *observation) read(answer *http.Response) error {
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return fmt.Errorf("read the answer: %w", err)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("answered %s: %.300s", answer.Status, body)
	case answer.Header.Get("Rouse-Cold-Start") != "?1":
		return fmt.Errorf("not a cold start: the answer has no Rouse-Cold-Start")
	}
	o.timing = strings.Join(answer.Header.Values("Server-Timing"), ",")
	return decodeReport(body, &o.report)
}

func decodeReport(body []byte, report *mimic.Report) error {
	if err := json.Unmarshal(body, report); err != nil {
		return fmt.Errorf("not the answer of a mimic: %w", err)
	}
	if report.ListeningAt == 0 {
		return fmt.Errorf("not the answer of a mimic: no listening_at_unix_ns")
	}
	return nil
}

// wake finds the record of the cold start that a request sent at that time
// has made. Records arrive a little after the answer, and the gateway's part
// of one after the scaler's: it is given a second more.
func (r *rouse) wake(ctx context.Context, sent time.Time) (Wake, error) {
	var found Wake
	patience := time.Now().Add(time.Second)
	for {
		var list struct{ Wakes []Wake }
		err := r.call(ctx, http.MethodGet, "/wakes?workload="+url.QueryEscape(r.cfg.Workload), &list)
		for _, wake := range list.Wakes {
			if wake.complete() && wake.ReadyAt.After(sent) {
				found = wake
			}
		}
		if found.ID != "" && (!found.OpenedAt.IsZero() || time.Now().After(patience)) {
			return found, nil
		}
		if !pause(ctx, poll) {
			return Wake{}, fmt.Errorf("no record of the wake: %w", orCause(ctx, err))
		}
	}
}

// call asks the admin API; out may be nil.
func (r *rouse) call(ctx context.Context, method, path string, out any) error {
	return callJSON(ctx, r.admin, method, r.api+path, out)
}

func callJSON(ctx context.Context, client *http.Client, method, url string, out any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, url, err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return err // net/http names method and URL
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, url, err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %.300s", method, url, answer.Status, body)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, url, err)
	}
	return nil
}
