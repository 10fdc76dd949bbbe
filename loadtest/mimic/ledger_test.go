package mimic_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/mimic"
)

func read(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func ask(t *testing.T, url, id string) *http.Response {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Header.Set("X-Request-ID", id)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

func TestTheLedgerHasEachStartRequestAndSignalInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	url, stop := start(t, mimic.Config{Ledger: path})
	_ = ask(t, url+"/", "a")
	_ = ask(t, url+"/healthz", "unseen")
	streaming := ask(t, url+"/chunked?n=3&every=20ms", "b")
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	_, err := io.ReadAll(streaming.Body)
	require.NoError(t, err)
	require.NoError(t, <-stopped)

	lines := read(t, path)
	require.Regexp(t, regexp.MustCompile(`^start \d{19}$`), lines[0])
	assert.Equal(t, []string{"begin a", "end a", "begin b", "term 1", "end b"}, lines[1:])

	_, again := start(t, mimic.Config{Ledger: path})
	require.NoError(t, again())
	lines = read(t, path)[len(lines):]
	require.Regexp(t, regexp.MustCompile(`^start \d{19}$`), lines[0])
	assert.Equal(t, []string{"term 0"}, lines[1:], "a second copy adds to it")
}

func TestWhatIsDeafWritesDownThatItWasAskedToEndAndGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	server := mimic.New(mimic.Config{Listen: "127.0.0.1:0", Deaf: true, Ledger: path, ExitAfter: 500 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	url := "http://" + server.Address()
	cancel()
	assert.Equal(t, http.StatusOK, ask(t, url, "after").StatusCode)
	var exit *mimic.ExitError
	require.ErrorAs(t, <-ended, &exit)
	assert.ElementsMatch(t, []string{"term 0", "begin after", "end after"}, read(t, path)[1:])
}

// One that is over at once may see its context end before the context has
// come to say so.
func TestEveryCopyThatIsAskedToEndWritesItDown(t *testing.T) {
	const copies = 200
	path := filepath.Join(t.TempDir(), "ledger")
	for range copies {
		_, stop := start(t, mimic.Config{Ledger: path})
		require.NoError(t, stop())
	}
	lines := read(t, path)
	require.Len(t, lines, 2*copies)
	for i, line := range lines {
		assert.True(t, strings.HasPrefix(line, []string{"start ", "term 0"}[i%2]), "line %d: %s", i, line)
	}
}

func TestALedgerThatCannotBeWrittenIsAnError(t *testing.T) {
	err := mimic.New(mimic.Config{Ledger: t.TempDir()}).Run(t.Context())
	assert.ErrorContains(t, err, "open ledger")
}

func TestTheHealthCheckAnswersWhatItWasToldTo(t *testing.T) {
	url, _ := start(t, mimic.Config{})
	answer, _ := get(t, url+"/health/503")
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	answer, _ = get(t, url+"/healthz")
	assert.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	answer, _ = get(t, url+"/health/99")
	assert.Equal(t, http.StatusBadRequest, answer.StatusCode)
}

func TestMemoryIsEatenByTheMebibyte(t *testing.T) {
	url, _ := start(t, mimic.Config{})
	answer, _ := get(t, url+"/eat/1")
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	answer, _ = get(t, url+"/eat/all")
	assert.Equal(t, http.StatusBadRequest, answer.StatusCode)
}
