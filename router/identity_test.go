package router

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/tracing"
)

func TestRequestIDIsJoinedWhenHarmlessElseMade(t *testing.T) {
	for _, id := range []string{"abc", "01J-x_y.z:1/2+3=", strings.Repeat("a", 128)} {
		assert.Equal(t, id, identify(http.Header{"X-Request-Id": {id}}, nil, nil).requestID)
	}
	for _, id := range []string{"", "a b", "a\"b", "<script>", "a\nb", "ä", strings.Repeat("a", 129)} {
		assert.Regexp(t, "^[0-9a-f]{32}$", identify(http.Header{"X-Request-Id": {id}}, nil, nil).requestID, "%q", id)
	}
	assert.Regexp(t, "^[0-9a-f]{32}$", identify(http.Header{"X-Request-Id": {"a", "b"}}, nil, nil).requestID)
	assert.NotEqual(t, identify(nil, nil, nil).requestID, identify(nil, nil, nil).requestID)
}

func TestTraceparentIsJoinedWhenValidElseMade(t *testing.T) {
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, sent := range []string{"00-" + id + "-" + span + "-01", "00-" + id + "-" + span + "-00", "cc-" + id + "-" + span + "-01-what-else"} {
		got, joined := traceOf(sent)
		assert.True(t, joined)
		assert.Equal(t, sent, got)
		assert.Equal(t, id, traceID(got))
	}
	for _, sent := range []string{
		"", "00", "ff-" + id + "-" + span + "-01", "00-" + id + "-" + span + "-01-more", "00-" + id + "-" + span + "-0",
		"00-" + strings.ToUpper(id) + "-" + span + "-01", "00-" + strings.Repeat("0", 32) + "-" + span + "-01",
		"00-" + id + "-" + strings.Repeat("0", 16) + "-01", "cc-" + id + "-" + span + "-01what",
	} {
		got, joined := traceOf(sent)
		assert.False(t, joined, sent)
		assert.True(t, tracing.Valid(got), got)
		assert.NotEqual(t, sent, got)
	}
}

func traceOf(sent string) (traceparent string, joined bool) {
	id := identify(http.Header{"Traceparent": {sent}}, nil, nil)
	return id.traceparent, id.traceJoined
}

func FuzzTraceparent(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add("00-")
	f.Fuzz(func(t *testing.T, sent string) {
		got, joined := traceOf(sent)
		if !tracing.Valid(got) || len(traceID(got)) != 32 || (joined && got != sent) {
			t.Fatalf("%q gave %q, joined %v", sent, got, joined)
		}
	})
}

func FuzzRequestID(f *testing.F) {
	f.Add("abc")
	f.Fuzz(func(t *testing.T, sent string) {
		if id := identify(http.Header{"X-Request-Id": {sent}}, nil, nil).requestID; !plainID(id) {
			t.Fatalf("%q gave %q", sent, id)
		}
	})
}
