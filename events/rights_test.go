package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/workload"
)

var streamNames = []string{"ROUSE_WAKES", "ROUSE_EVENTS", "ROUSE_ACTIVITY", "KV_ROUSE_STATE", "KV_ROUSE_WORKLOADS", "KV_ROUSE_PROBLEMS"}

// shipped runs a server with the accounts that are shipped, as they are, and
// two users more: a witness that may do everything, and one that may nothing.
func shipped(t *testing.T) *server.Server {
	t.Helper()
	opts := accounts(t)
	opts.Host, opts.Port, opts.StoreDir, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, t.TempDir(), true, true
	account := opts.Users[0].Account
	none := &server.SubjectPermission{Deny: []string{">"}}
	opts.Users = append(opts.Users,
		&server.User{Username: "witness", Password: "w", Account: account},
		&server.User{Username: "nobody", Password: "n", Account: account, Permissions: &server.Permissions{Publish: none, Subscribe: none}})
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(patience))
	return s
}

// A client is a role that speaks NATS by hand, and what the server refuses it.
type client struct {
	*nats.Conn
	refused chan error
	tried   int
}

func enter(t *testing.T, s *server.Server, user, password string) *client {
	t.Helper()
	c, closed := &client{refused: make(chan error, 1000)}, make(chan struct{})
	nc, err := nats.Connect(fmt.Sprintf("nats://%s:%s@%s", user, password, s.Addr()), nats.CustomInboxPrefix("_INBOX_"+user),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.refused <- err }),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close(); <-closed })
	c.Conn = nc
	return c
}

// denied reports whether the server refused what was done last. Its word
// comes before that on what nobody may do, which is tried next.
func (c *client) denied(t *testing.T, subject string) (denied bool) {
	t.Helper()
	c.tried++
	never := fmt.Sprintf("never.%d", c.tried)
	require.NoError(t, c.Publish(never, nil))
	for {
		err := receive(t, c.refused, patience)
		require.ErrorIs(t, err, nats.ErrPermissionViolation)
		if strings.Contains(err.Error(), `"`+never+`"`) {
			return denied
		}
		denied = denied || strings.Contains(err.Error(), `"`+subject+`"`)
	}
}

// A right is a subject and the roles that have it.
type right struct{ subject, roles string }

// publishing has every subject there is, of Rouse and of the server, and who
// may publish to it.
func publishing() []right {
	rights := []right{
		{"rouse.v1.wake.n.wiki", "gateway scaler"},
		{"rouse.v1.sleep.n.wiki", "gateway"}, {"rouse.v1.keep.n.wiki", "gateway"}, {"rouse.v1.logs.n.wiki", "gateway"},
		// Gateways are one role: one may speak for another. See DESIGN.md.
		{"rouse.v1.activity.gateway", "gateway"}, {"rouse.v1.activity.another", "gateway"},
		{"rouse.v1.drain.wiki", "scaler"},
		{"rouse.v1.event.wiki.released", "gateway scaler"},
		{"rouse.v1.state.wiki", ""}, {"rouse.v1.workload.wiki", ""}, {"rouse.v1.problems.n", ""},
		{"rouse.v1.recorded.wiki.ready", ""}, {"rouse.v1.recorded.wiki.released", ""}, {"rouse.v1.heard.gateway", ""},
		{"$KV.ROUSE_STATE.wiki", "scaler"}, {"$KV.ROUSE_WORKLOADS.wiki", "scaler"}, {"$KV.ROUSE_PROBLEMS.n", "scaler"},
		{"$KV.ROUSE_STATE.a.b", ""}, {"$KV.OTHER.wiki", ""},
		{"rouse.v2.wake.n.wiki", ""}, {"rouse.v1.other", ""}, {"rouse", ""}, {"other", ""},
		{"_INBOX.x.y", ""}, {"_INBOX_gateway.x.y", ""}, {"_INBOX_scaler.x.y", ""}, {"_INBOX_rouse.x.y", ""},
		{"$JS.API.INFO", "gateway scaler"}, {"$JS.API.STREAM.NAMES", ""}, {"$JS.API.STREAM.LIST", ""},
		{"$JS.API.STREAM.CREATE.OTHER", ""}, {"$JS.API.STREAM.UPDATE.OTHER", ""}, {"$JS.API.DIRECT.GET.OTHER", ""},
		{"$JS.API.STREAM.RESTORE.OTHER", ""}, {"$JS.API.META.LEADER.STEPDOWN", ""}, {"$JS.API.SERVER.REMOVE", ""},
		{"$JS.API.ACCOUNT.PURGE.ROUSE", ""},
		{"$JS.API.CONSUMER.INFO.ROUSE_EVENTS.queue-x", "scaler"}, {"$JS.API.CONSUMER.RESET.ROUSE_EVENTS.queue-x", "scaler"},
		{"$JS.API.CONSUMER.CREATE.ROUSE_EVENTS.queue-x", "scaler"}, {"$JS.API.CONSUMER.MSG.NEXT.ROUSE_EVENTS.queue-x", "scaler"},
		{"$JS.API.CONSUMER.INFO.ROUSE_WAKES.scaler-n", "scaler"}, {"$JS.API.CONSUMER.MSG.NEXT.ROUSE_WAKES.scaler-n", "scaler"},
		{"$JS.API.CONSUMER.CREATE.ROUSE_WAKES.scaler-n.rouse.v1.wake.n.*", "scaler"},
		{"$JS.ACK.ROUSE_WAKES.scaler-n.1.1.1.1.1", "scaler"}, {"$JS.ACK.ROUSE_EVENTS.x.1.1.1.1.1", "scaler"}, {"$JS.ACK.ROUSE_ACTIVITY.x.1.1.1.1.1", ""}, {"$JS.FC.ROUSE_WAKES.x.y", ""},
		{"$SYS.REQ.SERVER.PING", ""}, {"$SYS.REQ.ACCOUNT.ROUSE.CONNZ", ""}, {"$SRV.PING", ""},
	}
	for _, kind := range []string{"woken", "started", "ready", "failed", "slept", "adopted", "invented"} {
		rights = append(rights, right{"rouse.v1.event.wiki." + kind, "scaler"})
	}
	for _, stream := range streamNames {
		rights = append(rights,
			right{"$JS.API.STREAM.INFO." + stream, "gateway scaler"},
			right{"$JS.API.STREAM.CREATE." + stream, "scaler"}, right{"$JS.API.STREAM.UPDATE." + stream, "scaler"},
			right{"$JS.API.STREAM.DELETE." + stream, ""}, right{"$JS.API.STREAM.PURGE." + stream, ""},
			right{"$JS.API.STREAM.MSG.DELETE." + stream, ""}, right{"$JS.API.STREAM.SNAPSHOT." + stream, ""},
			right{"$JS.API.STREAM.RESTORE." + stream, ""}, right{"$JS.API.STREAM.LEADER.STEPDOWN." + stream, ""},
			right{"$JS.API.STREAM.PEER.REMOVE." + stream, ""},
			right{"$JS.API.CONSUMER.NAMES." + stream, ""}, right{"$JS.API.CONSUMER.LIST." + stream, ""},
			right{"$JS.API.CONSUMER.DELETE." + stream + ".scaler-n", ""},
			right{"$JS.API.CONSUMER.DURABLE.CREATE." + stream + ".spy", ""},
			right{"$JS.API.CONSUMER.CREATE." + stream, ""},
		)
		direct := "gateway scaler"
		switch stream {
		case "ROUSE_WAKES":
			direct = ""
		case "ROUSE_EVENTS": // scalers have consumers there, for webhooks
		default:
			rights = append(rights, right{"$JS.API.CONSUMER.CREATE." + stream + ".spy", ""}, right{"$JS.API.CONSUMER.MSG.NEXT." + stream + ".spy", ""})
		}
		rights = append(rights, right{"$JS.API.DIRECT.GET." + stream, direct})
		leader := ""
		if stream == "KV_ROUSE_STATE" {
			leader = "scaler"
		}
		rights = append(rights, right{"$JS.API.STREAM.MSG.GET." + stream, leader})
	}
	return rights
}

func subscribing() []right {
	return []right{
		{"rouse.v1.state.>", "gateway scaler"}, {"rouse.v1.workload.>", "gateway scaler"}, {"rouse.v1.problems.>", "gateway scaler"},
		{"rouse.v1.recorded.>", "gateway scaler"}, {"rouse.v1.heard.>", "gateway scaler"},
		{"rouse.v1.drain.*", "gateway"}, {"rouse.v1.sleep.n.*", "scaler"}, {"rouse.v1.keep.n.*", "scaler"}, {"rouse.v1.logs.n.*", "scaler"},
		{"_INBOX_gateway.>", "gateway"}, {"_INBOX_scaler.>", "scaler"},
		{"$JS.EVENT.ADVISORY.STREAM.QUORUM_LOST.*", "gateway scaler"}, {"$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.*", "gateway scaler"},
		{"$JS.EVENT.ADVISORY.STREAM.DELETED.*", "gateway scaler"}, {"$JS.EVENT.ADVISORY.CONSUMER.QUORUM_LOST.*.*", "gateway scaler"},
		{"$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.*.*", "gateway scaler"}, {"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.*.*", "gateway scaler"},
		{"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.*.*", "gateway scaler"},
		{"$JS.EVENT.ADVISORY.>", ""}, {"$JS.EVENT.ADVISORY.API", ""}, {"$JS.EVENT.ADVISORY.STREAM.*.*", ""},
		{"rouse.v1.wake.>", ""}, {"rouse.v1.activity.*", ""}, {"rouse.v1.event.>", ""}, {"$KV.>", ""}, {"$KV.ROUSE_STATE.>", ""},
		{"_INBOX.>", ""}, {"_INBOX_rouse.>", ""}, {"*.>", ""}, {">", ""}, {"rouse.>", ""}, {"rouse.v1.>", ""}, {"other", ""},
		{"$JS.API.>", ""}, {"$JS.ACK.>", ""}, {"$JS.EVENT.>", ""}, {"$SYS.>", ""}, {"$SRV.>", ""},
	}
}

func provisioned(t *testing.T, s *server.Server) {
	t.Helper()
	b, err := events.Connect(t.Context(), events.Config{URL: "nats://witness:w@" + s.Addr().String(), Name: "witness", Role: "witness"})
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, b.Provision(within(t, patience)))
	mustPut(t, b, workload.State{Workload: "wiki", Phase: workload.Ready, Generation: 1})
}

// contents is all that is stored, as the witness sees it: how far each stream
// has come, its consumers and its configuration.
func contents(t *testing.T, witness *client) map[string]string {
	t.Helper()
	all := map[string]string{}
	msg, err := witness.Request("$JS.API.STREAM.LIST", nil, patience)
	require.NoError(t, err)
	var list struct {
		Streams []struct {
			Config struct {
				Name string `json:"name"`
			} `json:"config"`
			State json.RawMessage `json:"state"`
		} `json:"streams"`
	}
	require.NoError(t, json.Unmarshal(msg.Data, &list))
	for _, stream := range list.Streams {
		all[stream.Config.Name] = string(stream.State)
	}
	return all
}

// Every subject that a role has no business with is refused by the server, on
// the accounts that are shipped; the others are not. What is refused reaches
// nobody, and changes nothing.
func TestEachRoleHasItsRightsAndNoOthers(t *testing.T) {
	s := shipped(t)
	provisioned(t, s)
	witness := enter(t, s, "witness", "w")
	before := contents(t, witness)
	for role, password := range map[string]string{"gateway": "g", "scaler": "s", "nobody": "n"} {
		c := enter(t, s, role, password)
		heard, err := witness.SubscribeSync(">")
		require.NoError(t, err)
		require.NoError(t, witness.Flush())
		for _, r := range publishing() {
			if has(r, role) {
				continue // what it may do is tried below, once nothing has to stay as it is
			}
			require.NoError(t, c.PublishRequest(r.subject, "_INBOX_"+role+".x.y", []byte("{}")))
			assert.True(t, c.denied(t, r.subject), "%s may not publish to %s", role, r.subject)
		}
		require.NoError(t, witness.Flush())
		for {
			msg, err := heard.NextMsg(time.Millisecond)
			if err != nil {
				break
			}
			if !strings.HasPrefix(msg.Subject, "$JS.EVENT.") { // the server's, of what the witness asked
				assert.Fail(t, "a refused message arrived", "%s of %s", msg.Subject, role)
			}
		}
		require.NoError(t, heard.Unsubscribe())
		for _, r := range subscribing() {
			sub, err := c.SubscribeSync(r.subject)
			require.NoError(t, err)
			assert.Equal(t, !has(r, role), c.denied(t, r.subject), "%s subscribes to %s", role, r.subject)
			if !has(r, role) {
				require.NoError(t, witness.Publish(strings.NewReplacer(">", "x", "*", "x").Replace("unheard."+r.subject), nil))
				assert.Zero(t, pending(sub))
			}
			require.NoError(t, sub.Unsubscribe())
		}
	}
	assert.Equal(t, before, contents(t, witness), "nothing was changed")
	for role, password := range map[string]string{"gateway": "g", "scaler": "s"} {
		c := enter(t, s, role, password)
		for _, r := range publishing() {
			if has(r, role) {
				require.NoError(t, c.Publish(r.subject, []byte("{}")))
				assert.False(t, c.denied(t, r.subject), "%s may publish to %s", role, r.subject)
			}
		}
	}
}

func has(r right, role string) bool { return strings.Contains(r.roles, role) }

func pending(sub *nats.Subscription) int {
	n, _, _ := sub.Pending()
	return n
}

func TestWhoIsNotKnownIsRefused(t *testing.T) {
	s := shipped(t)
	for _, who := range []string{"", "gateway@", "gateway:wrong@", "gateway:s@", "scaler:@", "scaler:g@", "root:root@", "$G:x@"} {
		_, err := nats.Connect("nats://" + who + s.Addr().String())
		require.ErrorIs(t, err, nats.ErrAuthorization, who)
	}
}

// A gateway chooses where answers to its questions go. Those of the server,
// which may publish everywhere, are no way around its rights.
func TestAnswersAreNoWayAroundTheRights(t *testing.T) {
	s := shipped(t)
	provisioned(t, s)
	scaler, err := events.Connect(t.Context(), events.Config{URL: "nats://scaler:s@" + s.Addr().String(), Name: "scaler", Role: "scaler"})
	require.NoError(t, err)
	t.Cleanup(scaler.Close)
	require.NoError(t, scaler.Provision(within(t, patience)))
	require.NoError(t, scaler.ReplaceWorkloads(t.Context(), "n", named("shop", "wiki")))
	v, got := follow(t, scaler), lists(t, scaler)
	var evil atomic.Int64
	background(t, func(ctx context.Context) error {
		return scaler.FollowStates(ctx, func(s workload.State) {
			if len(s.Replicas) > 0 {
				evil.Add(1)
			}
		}, nil)
	})
	awaitNames(t, got, "n/shop", "n/wiki")
	eventually(t, patience, func() bool { return v.of("wiki").Generation == 1 }, "the state is known")

	gateway := enter(t, s, "gateway", "g")
	forge := func(body string, h nats.Header) {
		for _, target := range []string{"$KV.ROUSE_STATE.wiki", "rouse.v1.state.wiki", "$KV.ROUSE_WORKLOADS.wiki", "rouse.v1.workload.wiki", "$KV.ROUSE_PROBLEMS.n"} {
			for _, store := range []string{"rouse.v1.event.x.released", "rouse.v1.activity.x"} {
				require.NoError(t, gateway.PublishMsg(&nats.Msg{Subject: store, Header: h, Data: []byte(body)}))
				stream := "ROUSE_EVENTS"
				if strings.Contains(store, "activity") {
					stream = "ROUSE_ACTIVITY"
				}
				ask := fmt.Sprintf(`{"last_by_subj":%q}`, store)
				require.NoError(t, gateway.PublishRequest("$JS.API.DIRECT.GET."+stream, target, []byte(ask)))
				for _, hidden := range []string{`{"last_by_subj":%q,"no_hdr":true}`, `{"seq":1,"next_by_subj":%q,"no_hdr":true}`} {
					require.NoError(t, gateway.PublishRequest("$JS.API.DIRECT.GET."+stream, target, fmt.Appendf(nil, hidden, store)))
				}
				batch := fmt.Sprintf(`{"seq":1,"next_by_subj":%q,"batch":10}`, store)
				require.NoError(t, gateway.PublishRequest("$JS.API.DIRECT.GET."+stream, target, []byte(batch)))
			}
			require.NoError(t, gateway.PublishRequest("rouse.v1.wake.n.w", target, []byte(body)))
			require.NoError(t, gateway.PublishRequest("$JS.API.INFO", target, nil))
			require.NoError(t, gateway.PublishRequest("$JS.API.STREAM.INFO.ROUSE_WAKES", target, nil))
			require.NoError(t, gateway.PublishRequest("$JS.API.DIRECT.GET.KV_ROUSE_STATE.$KV.ROUSE_STATE.other", target, nil))
		}
		require.NoError(t, gateway.Flush())
	}
	forged := `{"phase":"ready","generation":9,"replicas":[{"id":"evil","address":"192.0.2.1:80"}],"node":"evil","hosts":["evil"],"name":"wiki"}`
	forge(forged, nil)
	forge(forged, nats.Header{"ce-type": {"dev.rouse.state.v1"}})
	forge(forged, nats.Header{"ce-type": {"dev.rouse.workload.v1"}})
	forge("", nats.Header{"KV-Operation": {"DEL"}})
	quiet(t, s)

	now, err := scaler.State(t.Context(), "wiki")
	if err != nil {
		require.ErrorIs(t, err, events.ErrMalformed, "it could be disturbed, and is told from what a scaler wrote")
	}
	assert.NotEqual(t, workload.Ready, now.Phase)
	mustReplace(t, scaler, workload.State{Workload: "wiki", Phase: workload.Waking, Generation: now.Generation + 1})
	eventually(t, patience, func() bool { return v.of("wiki").Phase == workload.Waking }, "the scaler's word counts")
	assert.Zero(t, evil.Load(), "no replica was ever announced")
	require.NoError(t, scaler.ReplaceWorkloads(t.Context(), "n", named("shop", "wiki")))
	require.NoError(t, scaler.ReplaceProblems(t.Context(), "n", []workload.Problem{{Place: "here"}}))
	told := make(chan []workload.Problem, 100)
	background(t, func(ctx context.Context) error {
		return scaler.FollowProblems(ctx, func(ps []workload.Problem) { told <- ps })
	})
	await(t, told, func(ps []workload.Problem) bool { return len(ps) == 1 && ps[0].Place == "here" })
	late := lists(t, scaler)
	for _, w := range awaitNames(t, late, "n/shop", "n/wiki") {
		assert.NotContains(t, w.Hosts, "evil")
	}
	for key, twin := range twins(t, s) { // what is stored, to the letter, but as an answer
		require.NoError(t, gateway.Publish("rouse.v1.event.x.released", twin))
		require.NoError(t, gateway.PublishRequest("$JS.API.DIRECT.GET.ROUSE_EVENTS", key, []byte(`{"last_by_subj":"rouse.v1.event.x.released","no_hdr":true}`)))
		require.NoError(t, gateway.Flush())
	}
	quiet(t, s)
	require.NoError(t, scaler.ReplaceWorkloads(t.Context(), "n", named("shop", "wiki")))
	require.NoError(t, scaler.ReplaceProblems(t.Context(), "n", []workload.Problem{{Place: "here"}}))
	awaitNames(t, lists(t, scaler), "n/shop", "n/wiki")
	for len(got) > 0 {
		for _, w := range <-got {
			assert.NotContains(t, w.Hosts, "evil")
			assert.Equal(t, "n", w.Node)
		}
	}
}

// quiet waits until the server has stored nothing for half a second: it
// answers after the question's connection was flushed, and what is asked for
// as an answer may be written over what comes next.
func quiet(t *testing.T, s *server.Server) {
	t.Helper()
	var last uint64
	since := time.Now()
	eventually(t, patience, func() bool {
		stored, err := s.Jsz(&server.JSzOptions{Streams: true})
		require.NoError(t, err)
		now := uint64(0)
		for _, account := range stored.AccountDetails {
			for _, stream := range account.Streams {
				now += stream.State.LastSeq
			}
		}
		if now != last {
			last, since = now, time.Now()
		}
		return last > 0 && time.Since(since) > 500*time.Millisecond
	}, "all is answered")
}

// twins are the bodies of what is stored of one workload and one node.
func twins(t *testing.T, s *server.Server) map[string][]byte {
	t.Helper()
	bodies := map[string][]byte{}
	for key, stream := range map[string]string{"$KV.ROUSE_WORKLOADS.wiki": "KV_ROUSE_WORKLOADS", "$KV.ROUSE_PROBLEMS.n": "KV_ROUSE_PROBLEMS"} {
		msg, err := enter(t, s, "witness", "w").Request("$JS.API.DIRECT.GET."+stream+"."+key, nil, patience)
		require.NoError(t, err)
		bodies[key] = msg.Data
	}
	return bodies
}

// mustReplace writes on top of whatever is stored, readable or not.
func mustReplace(t *testing.T, b *events.Bus, s workload.State) {
	t.Helper()
	eventually(t, patience, func() bool {
		now, err := b.State(t.Context(), s.Workload)
		if err != nil && !errors.Is(err, events.ErrMalformed) {
			return false
		}
		s.Revision = now.Revision
		_, err = b.PutState(t.Context(), s)
		return err == nil
	}, "state is written")
}
