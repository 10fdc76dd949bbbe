package system_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What docs/operate.md shows of the four questions is what the commands print
// when things are as it says: the same lines, but for numbers, names made up by
// chance, and how long a bar is.
func TestOperate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, plan{role: "up", dir: dir, config: fmt.Sprintf(`gateway: gw
docker: { host: "" }
workloads:
  - { name: wiki, host: [wiki.test], process: { command: [%[1]q, mimic, --listen, "127.0.0.1:{port}", --startup, 1s] } }
  - { name: shop, host: [shop.test], process: { command: [%[1]q, mimic, --listen, "127.0.0.1:{port}", --startup, 4s] } }
`, binary(t, "loadtest"))})
	chapters := questions(t)

	ask := func(ctx context.Context, host, path string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.traffic+path, nil)
		require.NoError(t, err)
		req.Host = host
		req.Header.Set("User-Agent", "Uptime/1.0")
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
	ask(t.Context(), "wiki.test", "/status/200")
	eventually(t, "the access log has it", func() bool { return strings.Contains(n.log.String(), `"cold":true`) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "access.log"), []byte(n.log.String()), 0o600))
	eventually(t, "the wake is told to its end", func() bool {
		return strings.Contains(n.say(dir, "rouse explain wiki"), "release")
	})
	n.tells(t, dir, chapters["Why did it wake?"])
	n.tells(t, dir, chapters["Why was it slow?"])

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := n.open(ctx, http.MethodGet, "wiki.test", "/sse?every=1s", nil)
	require.NoError(t, err)
	defer stream.Body.Close()
	eventually(t, "the stream is counted", func() bool { v, err := n.view("wiki"); return err == nil && v.InFlight == 1 })
	n.tells(t, dir, chapters["Why does it not sleep?"])

	for range 2 {
		go ask(ctx, "shop.test", "/")
	}
	eventually(t, "two are held", func() bool { v, err := n.view("shop"); return err == nil && v.Queued == 2 && v.Phase == "waking" })
	eventually(t, "it was started", func() bool {
		return strings.Contains(n.say(dir, "rouse events shop --kind started"), "started")
	})
	n.tells(t, dir, chapters["What is waiting?"])
}

// A session is a command and what it prints.
type session struct{ command, prints string }

// questions are the sessions below each heading.
func questions(t *testing.T) map[string][]session {
	t.Helper()
	text, err := os.ReadFile("../docs/operate.md")
	require.NoError(t, err)
	found := map[string][]session{}
	for _, chapter := range strings.Split(string(text), "\n### ")[1:] {
		title, body, _ := strings.Cut(chapter, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		for _, m := range regexp.MustCompile("(?s)```console\n\\$ ([^\n]*)\n(.*?)```").FindAllStringSubmatch(body, -1) {
			found[title] = append(found[title], session{m[1], m[2]})
		}
	}
	require.Len(t, found, 4, "questions with answers")
	return found
}

// say runs a command as somebody at a terminal of this machine does.
func (n *node) say(dir, command string) string {
	ctx, cancel := context.WithTimeout(n.t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary(n.t, "rouse"))+":"+os.Getenv("PATH"), "ROUSE_ADMIN="+n.admin)
	out, _ := cmd.CombinedOutput() // a refusal is an answer too
	return string(out)
}

// tells compares what the commands print with the document.
func (n *node) tells(t *testing.T, dir string, sessions []session) {
	t.Helper()
	require.NotEmpty(t, sessions)
	for _, e := range sessions {
		got := n.say(dir, e.command)
		assert.Equal(t, shape(e.prints), shape(got), "$ %s\n%s", e.command, got)
	}
}

// shape is a text without what differs from one time to the next.
func shape(text string) string {
	for _, r := range [...]struct{ what, with string }{
		{`[A-Z2-7]{26}`, "ID"},
		{`[0-9a-f]{32}`, "ID"},
		{`\S*/up-\d+\.yaml`, "rouse.yaml"},
		{`"replica":"[^"]*"`, `"replica":"R"`},
		{`replica +\S+ at`, "replica R at"},
		{`[+-]\d{4}\b`, "ZONE"},
		{`\d+(\.\d+)?`, "N"},
		{` *█+`, " BAR"},
		{` +`, " "},
		{` *\n`, "\n"},
	} {
		text = regexp.MustCompile(r.what).ReplaceAllString(text, r.with)
	}
	return text
}
