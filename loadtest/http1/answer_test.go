package http1_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/http1"
)

const chunkedAnswer = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" +
	"HTTP/1.1 201 Created\r\ntransfer-encoding: Chunked\r\nX-Request-Id: 00ab\r\nServer-Timing: queue;dur=2\r\n" +
	"Server-Timing: added;dur=0.25\r\nConnection: x, Close\r\n\r\n4;ext=1\r\nWiki\r\n0A \r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"

func ExampleAnswer() {
	var body bytes.Buffer
	answer := http1.Answer{Body: &body}
	n, err := answer.Feed([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more"))
	fmt.Println(n, err, answer.Done(), answer.Status, body.String())
	// Output: 43 <nil> true 200 hello
}

func TestAnAnswerIsTheSameInWhateverPiecesItComes(t *testing.T) {
	for size := 1; size <= len(chunkedAnswer); size++ {
		var body bytes.Buffer
		answer := http1.Answer{Body: &body}
		rest := chunkedAnswer
		for len(rest) > 0 {
			require.False(t, answer.Done())
			piece := rest[:min(size, len(rest))]
			rest = rest[len(piece):]
			n, err := answer.Feed([]byte(piece))
			require.NoError(t, err)
			require.Equal(t, len(piece), n)
			require.True(t, answer.Begun())
		}
		require.True(t, answer.Done(), "pieces of %d", size)
		require.Equal(t, 201, answer.Status)
		require.Equal(t, "Wiki0123456789", body.String())
		require.Equal(t, int64(14), answer.Length)
		require.True(t, answer.Close)
		require.Equal(t, "00ab", string(answer.RequestID))
		added, found := http1.Timing(answer.ServerTiming, "added")
		require.True(t, found)
		require.Equal(t, 250*time.Microsecond, added)
	}
}

func TestWhatFollowsAnAnswerIsLeftAlone(t *testing.T) {
	cases := map[string]struct {
		noBody bool
		status int
	}{
		"HTTP/1.1 204 No Content\r\n\r\n":                        {false, 204},
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n": {false, 304},
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n":           {true, 200},
		"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n":              {false, 200},
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab":         {false, 200},
	}
	for text, want := range cases {
		var answer http1.Answer
		answer.Reset(want.noBody)
		n, err := answer.Feed([]byte(text + "HTTP/1.1 200 OK"))
		require.NoError(t, err, text)
		assert.True(t, answer.Done(), text)
		assert.Equal(t, len(text), n, text)
		assert.Equal(t, want.status, answer.Status, text)
		answer.Reset(false)
		assert.False(t, answer.Begun())
	}
}

func TestWhatCanBeReadInTwoWaysIsMalformed(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	cases := []string{
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/1.1 099 OK\r\n\r\n",
		"HTTP/1.1 200 O\x00K\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"garbage\r\n\r\n",
		ok + "\r\n",
		ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
		ok + "Content-Length: 1, 1\r\n\r\na",
		ok + "Content-Length: +1\r\n\r\na",
		ok + "Content-Length: \r\n\r\n",
		ok + "Content-Length: 1111111111111111111\r\n\r\n",
		ok + "Content-Length : 1\r\n\r\na",
		ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		ok + "Transfer-Encoding: gzip, chunked\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		ok + "Content-Length: 0\r\n folded\r\n\r\n",
		ok + "Content-Length: 0\nX: y\r\n\r\n",
		ok + "No colon\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n-1\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n1111111111111111\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nno trailer\r\n\r\n",
		ok + "X: " + strings.Repeat("x", http1.MaxHead) + "\r\n\r\n",
	}
	for _, text := range cases {
		var answer http1.Answer
		_, err := answer.Feed([]byte(text))
		assert.ErrorIs(t, err, http1.ErrMalformed, "%.60q", text)
		answer.Reset(false)
		err = nil
		for i := 0; i < len(text) && err == nil; i++ {
			_, err = answer.Feed([]byte{text[i]})
		}
		assert.ErrorIs(t, err, http1.ErrMalformed, "byte by byte: %.60q", text)
	}
}

func TestAnAnswerThatIsCutIsNeverDone(t *testing.T) {
	for end := range len(chunkedAnswer) {
		var answer http1.Answer
		_, err := answer.Feed([]byte(chunkedAnswer[:end]))
		require.NoError(t, err)
		require.False(t, answer.Done(), "%q", chunkedAnswer[:end])
	}
}

type refusal struct{}

func (refusal) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWhoeverChecksTheBodyCanRefuseIt(t *testing.T) {
	answer := http1.Answer{Body: refusal{}}
	_, err := answer.Feed([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"))
	assert.ErrorIs(t, err, io.ErrShortWrite)
}

func TestAServerTimingIsFoundByItsName(t *testing.T) {
	cases := map[string]time.Duration{
		`added;dur=1`:                            time.Millisecond,
		`db;dur=9, added ; desc="x" ; dur="0.5"`: 500 * time.Microsecond,
		`added;desc=y,added;dur=2`:               2 * time.Millisecond,
		`addedd;dur=1`:                           -1,
		`added`:                                  -1,
		`added;dur=-1`:                           -1,
		`added;dur=NaN`:                          -1,
		``:                                       -1,
	}
	for header, want := range cases {
		got, found := http1.Timing([]byte(header), "added")
		assert.Equal(t, want >= 0, found, header)
		assert.Equal(t, max(0, want), got, header)
	}
}

// What this package takes, net/http reads the same way.
func FuzzAnAnswerReadIsWhatNetHTTPReads(f *testing.F) {
	f.Add([]byte(chunkedAnswer))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc"))
	f.Add([]byte("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var body bytes.Buffer
		answer := http1.Answer{Body: &body}
		n, err := answer.Feed(text)
		require.LessOrEqual(t, n, len(text))
		if err != nil || !answer.Done() {
			return
		}
		reader := bufio.NewReader(bytes.NewReader(text))
		request := &http.Request{Method: http.MethodGet}
		theirs, err := http.ReadResponse(reader, request)
		for err == nil && theirs.StatusCode < 200 {
			theirs, err = http.ReadResponse(reader, request)
		}
		require.NoError(t, err)
		require.Equal(t, theirs.StatusCode, answer.Status)
		content, err := io.ReadAll(theirs.Body)
		require.NoError(t, err)
		require.Equal(t, string(content), body.String())
		require.Equal(t, theirs.Close, answer.Close)
	})
}

func BenchmarkAnswer(b *testing.B) {
	b.ReportAllocs()
	text := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Tue, 01 Dec 2026 10:00:00 GMT\r\nContent-Length: 150\r\n\r\n" + strings.Repeat("x", 150))
	var answer http1.Answer
	for b.Loop() {
		answer.Reset(false)
		if _, err := answer.Feed(text); err != nil || !answer.Done() {
			b.Fatal(err)
		}
	}
}
