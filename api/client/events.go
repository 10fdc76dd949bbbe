package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rouse-dev/rouse/api"
)

// maxEvent bounds one line of an event stream.
const maxEvent = 4 << 20

// Events hands over what q asks for, one after the other, and blocks until
// there are no more, ctx ends, or handle returns an error, which it returns. A
// stream with q.Follow has no end of its own: if it is cut, the error wraps
// ErrEnded and ErrUnreachable, and an EventQuery.After of the last ID resumes.
func (c *Client) Events(ctx context.Context, q api.EventQuery, handle func(api.Event) error) error {
	query := url.Values{"last": {strconv.Itoa(q.Last)}, "follow": {strconv.FormatBool(q.Follow)}}
	if q.Workload != "" {
		query.Set("workload", q.Workload)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url(query, "events").String(), nil)
	if err != nil {
		return fmt.Errorf("ask for events: %w", err)
	}
	if q.After != "" {
		request.Header.Set("Last-Event-ID", q.After)
	}
	answer, err := c.do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return c.problem(answer)
	}
	if err := c.read(answer.Body, handle); err != nil {
		return err
	}
	if q.Follow {
		return c.unreachable(ErrEnded)
	}
	return nil
}

// read takes the data lines alone: each is one event, with its ID and kind
// inside.
func (c *Client) read(body io.Reader, handle func(api.Event) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e api.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return c.unreachable(fmt.Errorf("read an event: %w", err))
		}
		if err := handle(e); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return c.unreachable(fmt.Errorf("%w: %w", ErrEnded, err))
	}
	return nil
}
