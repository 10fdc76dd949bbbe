package system_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A chaosReport is the table of docs/reliability.md, and a file with a line
// for each round. It is written anew after each, so that a run that is cut
// short has left what it found. It is safe for concurrent use.
type chaosReport struct {
	t    *testing.T
	head string // of the table; told of before the page makes the tree dirty

	mu      sync.Mutex
	rounds  *os.File                 // guarded by mu, as are the rest
	tallies map[string][]*tally      // fault -> rounds that settled
	failed  map[string]int           // fault -> rounds
	skipped map[string]bool          // fault -> this machine cannot
	took    map[string]time.Duration // fault -> longest round
}

func newChaosReport(t *testing.T) *chaosReport {
	t.Helper()
	file, err := os.CreateTemp("", "rouse-chaos-*.jsonl")
	require.NoError(t, err)
	t.Logf("rounds: %s", file.Name())
	head := fmt.Sprintf("%s, `make chaos`, commit %s, %s. %d rounds are under way at a time, on the same cores.\n\n",
		time.Now().UTC().Format(time.DateOnly), commit(), machine(), chaosAtOnce)
	return &chaosReport{t: t, head: head, rounds: file,
		tallies: map[string][]*tally{}, failed: map[string]int{}, skipped: map[string]bool{}, took: map[string]time.Duration{}}
}

// run runs one round.
func (c *chaosReport) run(f fault) {
	began := time.Now()
	var got *tally
	skipped := false
	passed := c.t.Run(f.name, func(t *testing.T) {
		t.Cleanup(func() { skipped = t.Skipped() })
		got = once(t, f)
	})
	c.add(f.name, got, passed, skipped)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took[f.name] = max(c.took[f.name], time.Since(began))
}

func (c *chaosReport) longest(fault string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.took[fault]
}

func (c *chaosReport) add(fault string, got *tally, passed, skipped bool) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skipped[fault] = skipped
	if !passed {
		c.failed[fault]++
	}
	if got != nil {
		c.tallies[fault] = append(c.tallies[fault], got)
		assert.NoError(c.t, json.NewEncoder(c.rounds).Encode(got))
	}
	c.write()
}

func (c *chaosReport) close() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write()
	require.NoError(c.t, c.rounds.Close())
}

// Where the table stands in the file.
const (
	chaosBegin = "<!-- chaos:begin -->"
	chaosEnd   = "<!-- chaos:end -->"
)

var chaosPlace = regexp.MustCompile(`(?s)` + chaosBegin + `.*` + chaosEnd)

// write is under the lock.
func (c *chaosReport) write() {
	c.t.Helper()
	if *chaosFile == "" {
		return
	}
	page, err := os.ReadFile(*chaosFile)
	assert.NoError(c.t, err)
	assert.Regexp(c.t, chaosPlace, string(page), "%s has no place for the table", *chaosFile)
	table := chaosBegin + "\n" + c.table() + chaosEnd
	page = chaosPlace.ReplaceAllLiteral(page, []byte(table))
	assert.NoError(c.t, os.WriteFile(*chaosFile, page, 0o644))
}

func (c *chaosReport) table() string {
	var b strings.Builder
	b.WriteString(c.head)
	b.WriteString("| fault | rounds | sent | answered | refused | lost | twice | stopped in use | starts / cold starts + by others | recovery p50 | max | refused: why |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	again := 0
	for _, f := range registered {
		b.WriteString(c.row(f.name))
		for _, got := range c.tallies[f.name] {
			again += got.Again
		}
	}
	fmt.Fprintf(&b, "\n%d GETs were sent again because the replica that had them was killed; they are not counted as twice.\n", again)
	return b.String()
}

func (c *chaosReport) row(fault string) string {
	rounds := c.tallies[fault]
	switch {
	case len(rounds) == 0 && c.skipped[fault]:
		return fmt.Sprintf("| %s | not run: this machine cannot | | | | | | | | | | |\n", fault)
	case len(rounds) == 0 && c.failed[fault] == 0:
		return fmt.Sprintf("| %s | not run: no time was left | | | | | | | | | | |\n", fault)
	}
	sum := tally{Reasons: map[string]int{}}
	var recovered []time.Duration
	for _, got := range rounds {
		sum.add(got)
		recovered = append(recovered, got.Recovery)
	}
	slices.Sort(recovered)
	recovered = append(recovered, 0)[:max(1, len(recovered))]
	count := fmt.Sprint(len(rounds))
	if n := c.failed[fault]; n > 0 {
		count = fmt.Sprintf("%d (**%d failed**)", max(len(rounds), n), n)
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d | %d | %d / %d + %d | %s | %s | %s |\n", fault, count,
		sum.Sent, sum.Answered, sum.Refused, sum.Lost+sum.Astray, sum.Twice, sum.InUse, sum.Starts, sum.Woken, sum.Others,
		short(recovered[(len(recovered)-1)/2]), short(recovered[len(recovered)-1]), why(sum.Reasons))
}

func (c *tally) add(o *tally) {
	c.Sent, c.Answered, c.Refused = c.Sent+o.Sent, c.Answered+o.Answered, c.Refused+o.Refused
	c.Lost, c.Astray, c.Twice, c.InUse = c.Lost+o.Lost, c.Astray+o.Astray, c.Twice+o.Twice, c.InUse+o.InUse
	c.Starts, c.Woken, c.Others = c.Starts+o.Starts, c.Woken+o.Woken, c.Others+o.Others
	for reason, n := range o.Reasons {
		c.Reasons[reason] += n
	}
}

func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// why lists the reasons, the most frequent first.
func why(reasons map[string]int) string {
	names := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		if reasons[a] != reasons[b] {
			return reasons[b] - reasons[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s: %d", name, reasons[name])
	}
	return strings.Join(names, ", ")
}
