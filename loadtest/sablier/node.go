package sablier

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/loadtest/burst"
)

// A node is the Rouse that is measured, as its admin API and the kernel tell.
type node struct{ cfg Config }

func newNode(cfg Config) *node { return &node{cfg} }

// A view is a workload as the admin API shows it.
type view struct {
	Phase      string `json:"phase"`
	Generation uint64 `json:"generation"`
}

func (n *node) view(ctx context.Context, name string) (v view, err error) {
	return v, n.call(ctx, http.MethodGet, name, "", &v)
}

func (n *node) wake(ctx context.Context, name string) error {
	return n.call(ctx, http.MethodPost, name, "/wake", nil)
}

// poll is how often the admin API is asked for news.
const poll = 10 * time.Millisecond

// await returns once the workload is in the phase; of what is not to become
// ready, at once when it has.
func (n *node) await(ctx context.Context, name, phase string) error {
	for {
		v, err := n.view(ctx, name)
		switch {
		case err != nil:
			return err
		case v.Phase == phase:
			return nil
		case phase == "waking" && v.Phase == "ready", !pause(ctx, poll):
			return fmt.Errorf("%s is %s and not %s", name, v.Phase, phase)
		}
	}
}

// sleep returns once it is asleep; what is still in use is asked again.
func (n *node) sleep(ctx context.Context, name string) error {
	for {
		err := n.call(ctx, http.MethodPost, name, "/sleep", nil)
		if err == nil {
			return n.await(ctx, name, "asleep")
		}
		if !pause(ctx, poll) {
			return err
		}
	}
}

func (n *node) call(ctx context.Context, method, name, verb string, out any) error {
	address := strings.TrimSuffix(n.cfg.Admin, "/") + "/api/v1/workloads/" + url.PathEscape(name) + verb
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, address, resp.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

func (n *node) memory() (int64, error) { return burst.Resident(n.cfg.PID) }

// busy is the CPU time of the process so far, of its threads that still run;
// 0 of process 0.
func (n *node) busy() time.Duration {
	var sum time.Duration
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", n.cfg.PID))
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // gone: it has ended
		first, _, _ := bytes.Cut(text, []byte(" "))
		ns, _ := strconv.ParseInt(string(first), 10, 64) // the kernel writes numbers
		sum += time.Duration(ns)
	}
	return sum
}

// pause waits, and reports that ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
