package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// pageSize is the number of records read at once, pageBytes their bound.
const (
	pageSize  = 256
	pageBytes = 1 << 20
)

// A record is one message of a stream.
type record struct {
	subject string
	seq     uint64
	at      time.Time // when the server stored it, by its clock
	heard   time.Time // the same moment by ours, as nearly as can be told
	header  nats.Header
	data    []byte
}

// deleted reports the mark that a key leaves behind when it is deleted.
func (r record) deleted() bool {
	return header(r.header, "KV-Operation") != "" || header(r.header, "Nats-Marker-Reason") != ""
}

// newRecord reads the server's headers, which direct reads and re-published
// messages have alike.
func newRecord(msg *nats.Msg) (record, error) {
	r := record{subject: serverHeader(msg.Header, "Nats-Subject"), header: msg.Header, data: msg.Data}
	var err error
	if len(msg.Header[headerSequence]) > 1 {
		return r, fmt.Errorf("%w: %w", ErrMalformed, errDelivered)
	}
	if r.seq, err = strconv.ParseUint(serverHeader(msg.Header, headerSequence), 10, 64); err != nil {
		return r, fmt.Errorf("%w: message without a sequence", ErrMalformed)
	}
	if r.at, err = time.Parse(time.RFC3339Nano, serverHeader(msg.Header, "Nats-Time-Stamp")); err != nil {
		return r, fmt.Errorf("%w: message without a time", ErrMalformed)
	}
	return r, nil
}

const headerSequence = "Nats-Sequence"

// errDelivered: what was stored is what the server had delivered of another
// record. Whoever may read may have the answer go to any subject, past the
// rights that it has itself; the server's headers remain in it.
var errDelivered = errors.New("it is an answer of the server, sent on")

// status is what the server says instead of a record; empty for a record,
// whatever its writer put into its headers.
func status(h nats.Header) string {
	if serverHeader(h, headerSequence) != "" {
		return ""
	}
	return h.Get("Status")
}

// readLast gives the newest message of one subject; ok is false when there is
// none. Any replica may answer, so it may be some milliseconds old.
func (b *Bus) readLast(ctx context.Context, stream, subject string) (r record, ok bool, err error) {
	answer, err := b.request(ctx, nats.NewMsg(apiRead+stream+"."+subject))
	if err != nil {
		return record{}, false, err
	}
	switch status := status(answer.Header); status {
	case "":
		r, err = newRecord(answer)
		return r, err == nil, err
	case "404":
		return record{}, false, nil
	default:
		return record{}, false, fmt.Errorf("read %s: status %s %s", subject, status, answer.Header.Get("Description"))
	}
}

// readLeader is readLast from the leader, whose answer has every write that
// was acknowledged before.
func (b *Bus) readLeader(ctx context.Context, stream, subject string) (r record, ok bool, err error) {
	ask := nats.NewMsg(apiReadLeader + stream)
	if ask.Data, err = json.Marshal(map[string]string{"last_by_subj": subject}); err != nil {
		return record{}, false, err
	}
	answer, err := b.request(ctx, ask)
	if err != nil {
		return record{}, false, err
	}
	var body struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Sequence uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(answer.Data, &body); err != nil {
		return record{}, false, fmt.Errorf("read %s: %w", subject, err)
	}
	if body.Error != nil {
		if errors.Is(body.Error, jetstream.ErrMsgNotFound) {
			return record{}, false, nil
		}
		return record{}, false, body.Error
	}
	r = record{subject: subject, seq: body.Message.Sequence, at: body.Message.Time, data: body.Message.Data}
	if len(body.Message.Header) > 0 {
		if r.header, err = nats.DecodeHeadersMsg(body.Message.Header); err != nil {
			r.header, r.data = nil, nil // it can only be replaced
		}
		if serverHeader(r.header, headerSequence) != "" {
			r.header, r.data = nil, nil // errDelivered
		}
	}
	return r, true, nil
}

// A window is a part of a stream: the messages of a subject (wildcards
// included) from a sequence on, or from a time on when that is set. Reading
// ends with the page that has to, or with the stream where that is 0.
type window struct {
	stream, subject string
	from, to        uint64
	since           time.Time
}

// ask is the server's form of a window.
type ask struct {
	Sequence uint64     `json:"seq,omitempty"`
	Since    *time.Time `json:"start_time,omitempty"`
	Subject  string     `json:"next_by_subj"`
	Batch    int        `json:"batch"`
	MaxBytes int        `json:"max_bytes"`
}

// read hands over every message of the window in order. It needs no consumer
// on the server, so there is nothing that a restart could lose.
func (b *Bus) read(ctx context.Context, w window, each func(record)) error {
	for {
		last, more, err := b.readPage(ctx, w, each)
		if err != nil || !more || w.to > 0 && last >= w.to {
			return err // who writes faster than this reads does not hold it up for ever
		}
		w.from, w.since = last+1, time.Time{}
	}
}

// readPage reads up to pageSize messages; more says that there are others
// behind last.
func (b *Bus) readPage(ctx context.Context, w window, each func(record)) (last uint64, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	ctx, done := b.guards.brief(ctx, apiRead+w.stream)
	defer done()
	answers, stop, err := b.askPage(w)
	if err != nil {
		return 0, false, b.explain(ctx, err)
	}
	defer stop()
	for {
		select {
		case msg := <-answers:
			if over, err := b.takePage(w, msg, each); over || err != nil {
				last, more = endOfPage(msg)
				return last, more, err
			}
		case <-ctx.Done():
			return 0, false, b.explain(ctx, ctx.Err())
		case <-b.closed:
			return 0, false, ErrClosed
		}
	}
}

// takePage hands over one message of a page, and reports whether it was the
// end. A record whose headers cannot be read is not a reason to stop: its
// writer chose them.
func (b *Bus) takePage(w window, msg *nats.Msg, each func(record)) (over bool, err error) {
	switch status := status(msg.Header); status {
	case "":
		r, err := newRecord(msg)
		if err != nil {
			b.skip("record", w.stream, err)
			return false, nil
		}
		each(r)
		return false, nil
	case "204", "404":
		return true, nil
	case "503":
		return true, fmt.Errorf("%w: %w", ErrNoStream, nats.ErrNoResponders)
	default:
		return true, fmt.Errorf("read %s: status %s %s", w.stream, status, msg.Header.Get("Description"))
	}
}

// endOfPage tells how far the page has come, and whether there is more.
func endOfPage(msg *nats.Msg) (last uint64, more bool) {
	last, err := strconv.ParseUint(header(msg.Header, "Nats-Last-Sequence"), 10, 64)
	return last, err == nil && last > 0 && header(msg.Header, "Nats-Num-Pending") != "0"
}

func (b *Bus) askPage(w window) (answers <-chan *nats.Msg, stop func(), err error) {
	a := ask{Sequence: max(1, w.from), Subject: w.subject, Batch: pageSize, MaxBytes: pageBytes}
	if !w.since.IsZero() {
		a.Sequence, a.Since = 0, &w.since
	}
	data, err := json.Marshal(a)
	if err != nil {
		return nil, nil, err
	}
	// A channel, since a subscription that is read takes a record that looks
	// like a "no responders" for one.
	page, inbox := make(chan *nats.Msg, pageSize+1), b.nc.NewInbox()
	sub, err := b.nc.ChanSubscribe(inbox, page)
	if err != nil {
		return nil, nil, err
	}
	stop = func() { _ = sub.Unsubscribe() } // fails only with the connection, which ends it too
	if err := b.nc.PublishMsg(&nats.Msg{Subject: apiRead + w.stream, Reply: inbox, Data: data}); err != nil {
		stop()
		return nil, nil, err
	}
	return page, stop, nil
}

// A streamInfo is what is asked about a stream: which one it is, and how far
// it has come.
type streamInfo struct {
	Created time.Time           `json:"created"`
	Now     time.Time           `json:"ts"` // by the server's clock
	Error   *jetstream.APIError `json:"error"`
	State   struct {
		Messages  uint64    `json:"messages"`
		LastSeq   uint64    `json:"last_seq"`
		FirstTime time.Time `json:"first_ts"` // by the server's clock
		LastTime  time.Time `json:"last_ts"`
	} `json:"state"`
}

// info asks the stream's leader.
func (b *Bus) info(ctx context.Context, stream string) (streamInfo, error) {
	answer, err := b.request(ctx, nats.NewMsg(apiInfo+stream))
	if err != nil {
		return streamInfo{}, err
	}
	var i streamInfo
	if err := json.Unmarshal(answer.Data, &i); err != nil {
		return streamInfo{}, fmt.Errorf("info of %s: %w", stream, err)
	}
	if i.Error != nil {
		return streamInfo{}, fmt.Errorf("info of %s: %w", stream, b.explain(ctx, i.Error))
	}
	return i, nil
}
