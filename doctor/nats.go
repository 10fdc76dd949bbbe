package doctor

import (
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// NATS is what a NATS server tells of itself and of Rouse's streams.
type NATS struct {
	// Place is its URL, without passwords.
	Place string
	// Err says why it did not answer; the rest is then empty.
	Err string
	// Offset is its clock's lead over ours; Told says that it is known.
	Offset time.Duration
	Told   bool
	// Store is what its streams take on the disk, of StoreMost bytes; 0 is no
	// bound.
	Store, StoreMost uint64
	Streams          []Stream
	// Peers are those who were heard of.
	Peers []Peer
	// Nodes tells of each that has workloads how many scalers ask for its wakes.
	Nodes map[string]int
	// LostGatewayAfter is how long a silent gateway keeps all awake.
	LostGatewayAfter time.Duration
	// Dir is where the embedded server keeps its store, Free how much room its
	// disk has; an empty Dir is not known.
	Dir  string
	Free uint64
	// Open is the address beyond this machine at which the embedded server
	// listens; empty: there is none.
	Open string
}

// A Stream is one of those that Rouse keeps there.
type Stream struct {
	Name    string
	Missing bool
	// Messages and Bytes it has, and may have; 0 is no bound.
	Messages, MostMessages uint64
	Bytes, MostBytes       uint64
	// Full: it refuses what is new when it has all that it may.
	Refuses bool
	// Headless says that no server of the cluster leads it, Behind how many
	// of its copies are not up to date or away.
	Headless bool
	Behind   int
}

// A Peer is a gateway or a scaler, by its last message.
type Peer struct {
	Role, Name string
	// Age is how long ago that was, Offset its clock's lead over the server's.
	Age, Offset time.Duration
	// Left says that it said goodbye.
	Left bool
}

// fresh is how old a message may be to tell of its sender's clock.
const fresh = 10 * time.Minute

// Shares of a store that is filling up.
const (
	storeHigh = 0.80
	storeFull = 0.95
)

func (n *NATS) findings() []Finding {
	all := n.place()
	if n.Err != "" {
		return append(all, Finding{Error, "nats", n.Place, n.Err,
			"awake workloads go on, but nothing wakes and nothing is put to sleep",
			"start the server, or correct nats.url and nats.creds"})
	}
	if n.Told {
		all = append(all, clock("nats at "+n.Place, n.Offset)...)
	}
	if f, ok := n.filling("the store", n.Store, n.StoreMost); ok {
		all = append(all, f)
	}
	for _, s := range n.Streams {
		all = append(all, n.stream(s)...)
	}
	for _, p := range n.Peers {
		all = append(all, n.peer(p)...)
	}
	return append(all, n.scalers()...)
}

// Room on the disk of a store that is too little.
const (
	diskLow   = 1 << 30
	diskEmpty = 100 << 20
)

// place finds what is wrong with an embedded server before it is asked.
func (n *NATS) place() []Finding {
	var all []Finding
	if n.Open != "" {
		all = append(all, Finding{Warning, "nats_open", n.Open, "the embedded NATS server listens beyond this machine, and asks for no password",
			"whoever reaches it can wake and stop every workload", "keep it inside a private network, or use a server with accounts (deploy/nats/accounts.conf)"})
	}
	if n.Dir != "" && n.Free < diskLow {
		f := Finding{Warning, "nats_disk", n.Dir, fmt.Sprintf("its disk has %d MiB of room", n.Free>>20),
			"without room no wake and no state can be written: nothing wakes and nothing sleeps",
			"make room, or move nats.store_dir to another disk"}
		if n.Free < diskEmpty {
			f.Severity = Error
		}
		all = append(all, f)
	}
	return all
}

// filling finds what nears its bound.
func (n *NATS) filling(what string, has, most uint64) (Finding, bool) {
	if most == 0 || float64(has) < storeHigh*float64(most) {
		return Finding{}, false
	}
	f := Finding{Warning, "nats_store", n.Place, fmt.Sprintf("%s is %d %% full", what, has*100/most),
		"when it is full no wake and no state can be written: nothing wakes and nothing sleeps",
		"give it more room, or find out who else writes there"}
	if float64(has) >= storeFull*float64(most) {
		f.Severity = Error
	}
	return f, true
}

func (n *NATS) stream(s Stream) []Finding {
	switch {
	case s.Missing:
		return []Finding{{Error, "nats_stream", n.Place, "the stream " + s.Name + " is missing",
			"without it nothing wakes and nothing sleeps", "start a scaler: it makes what is missing"}}
	case s.Headless:
		return []Finding{{Error, "nats_stream", n.Place, "the stream " + s.Name + " has no leader",
			"nothing can be written to it", "start the servers of the cluster that are away: more than half are needed"}}
	}
	var all []Finding
	if s.Behind > 0 {
		all = append(all, Finding{Warning, "nats_stream", n.Place, fmt.Sprintf("%d copies of the stream %s are away or behind", s.Behind, s.Name),
			"one more server that ends may stop everything", "start the servers of the cluster that are away"})
	}
	if !s.Refuses {
		return all // what is old makes room
	}
	for _, bound := range [...][2]uint64{{s.Messages, s.MostMessages}, {s.Bytes, s.MostBytes}} {
		if f, ok := n.filling("the stream "+s.Name, bound[0], bound[1]); ok {
			all = append(all, f)
		}
	}
	return all
}

func (n *NATS) peer(p Peer) []Finding {
	who := p.Role + " " + p.Name
	silent := p.Role == "gateway" && !p.Left && p.Age > workload.Gone
	switch {
	case silent && p.Age < n.LostGatewayAfter:
		return []Finding{{Warning, "gateway_silent", who, fmt.Sprintf("it was last heard of %s ago, and did not say goodbye", p.Age.Truncate(time.Second)),
			fmt.Sprintf("it may be cut off and be serving, so that nothing is put to sleep for another %s", (n.LostGatewayAfter - p.Age).Truncate(time.Second)),
			"start it again at its address, or mend its way to NATS"}}
	case p.Left || p.Age > fresh:
		return nil // its clock is of the past
	}
	return clock(who, p.Offset)
}

// scalers finds nodes that nobody looks after.
func (n *NATS) scalers() []Finding {
	why, fix := "wakes wait in the stream for up to two minutes, and the requests behind them for their hold_timeout", "start rouse scaler there, or look why it cannot reach NATS"
	var all []Finding
	for node, asking := range n.Nodes {
		if asking == 0 {
			all = append(all, Finding{Error, "no_scaler", "node " + node, "its scaler does not ask for wakes", why, fix})
		}
	}
	return all
}
