// Package events is the wire between gateways and scalers: the messages, the
// NATS subjects, streams and buckets that carry them, and the rules by which
// nothing depends on one message arriving. DESIGN.md beside this file has
// every subject with its writer, its readers, and what its loss costs.
//
// It knows the types of package workload and nothing of what they are used
// for: it starts no workload and holds no request.
//
// Guarantees. A wake is stored once while one is pending, whatever the number
// of askers. A state is written by compare and set, and an answer that was
// lost is read back before anything is said about it. Whoever follows states,
// workloads or the history is handed every last value, over server restarts,
// cut connections and a store that was made anew. A forbidden subject, a
// missing stream and a lost connection are three errors that errors.Is tells
// apart. Nothing is sent later than asked: without a connection a write fails
// at once.
package events

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	// ErrConflict: the state was written by somebody else since it was read.
	ErrConflict = errors.New("state was changed by another writer")
	// ErrUnconfirmed: the write may or may not have been stored, and could
	// not be read back in time.
	ErrUnconfirmed = errors.New("write not confirmed")
	// ErrMalformed: what is stored or was sent cannot be read by anybody.
	ErrMalformed = errors.New("malformed")
	// ErrVersion: another version of Rouse wrote it, whose meaning this one
	// does not know.
	ErrVersion = errors.New("written by another version of rouse")
	// ErrNoStream: the stream or bucket does not exist (nobody has provisioned
	// it yet), or has no leader now.
	ErrNoStream = errors.New("stream is missing")
	// ErrDenied: the server's permissions do not let this role do that, or
	// the credentials are wrong.
	ErrDenied = errors.New("denied by the nats server")
	// ErrDisconnected: there is no connection to a server now; nothing was sent.
	ErrDisconnected = errors.New("not connected to nats")
	// ErrTimeout: the server did not answer in time.
	ErrTimeout = errors.New("nats did not answer in time")
	// ErrClosed: the Bus was closed, or the server ended its connection for good.
	ErrClosed = errors.New("nats connection is closed")
	// ErrNoScaler: no scaler of that node hears.
	ErrNoScaler = errors.New("no scaler answers for that node")
)

// Embedded is a NATS server in the same process; natsd.Server is one.
type Embedded interface {
	// InProcessConn opens a connection through memory.
	InProcessConn() (net.Conn, error)
	// Credentials admit this process; both are empty when none are needed.
	Credentials() (user, password string)
}

// Config says where the events are and who speaks.
type Config struct {
	// URL is one NATS URL or several with commas between; user:password@ or
	// token@ may stand in it. Unused when Server is set.
	URL string
	// Creds is the path of a credentials file; empty for none.
	Creds string
	// Server is an embedded server to use instead of URL.
	Server Embedded
	// Name is unique over all processes: the gateway's or the scaler's name.
	Name string
	// Role names the kind of process: "gateway", "scaler", "rouse". Answers
	// come in on _INBOX_<role>, which the server's permissions can tell apart.
	Role string
	// Replicas is how many servers keep each stream: 1, 3 or 5. 0 makes new
	// streams with 1 and leaves the number of existing ones alone.
	Replicas int
	// Reconnected, when set, is called after each reconnect, in a goroutine of
	// the connection: it has to return soon.
	Reconnected func()
	// Logger is where trouble is told; nil discards it.
	Logger *slog.Logger
	// Registerer takes the metrics; nil leaves them unregistered. Two Buses
	// may share one.
	Registerer prometheus.Registerer
}

// How long things may take. One attempt is shorter than the budget that
// several attempts share.
const (
	attemptLimit = 500 * time.Millisecond // one request to the server
	publishLimit = 500 * time.Millisecond // PublishWake, State and other single writes
	confirmLimit = 3 * time.Second        // PutState, with its reading back
	pageLimit    = 2 * time.Second        // one page of a bucket or of the history
	retryPause   = 50 * time.Millisecond  // between two attempts
)
