//go:build linux

package openloop

import "fmt"

// An Outcome is how a request ended.
type Outcome int

// The outcomes. Those up to WrongBody are complete answers.
const (
	OK          Outcome = iota
	WrongStatus         // not the status that was wanted
	WrongLength         // a complete body, but shorter or longer than wanted
	WrongID             // not the id of this request
	WrongBody           // the id came back, but not the body
	Malformed           // not HTTP as it should be, or bytes after its end
	Cut                 // the connection ended before the answer did
	Refused             // nobody listened
	Unreachable         // no connection, for another reason
	TimedOut            // no complete answer within Timeout
	Unfinished          // in flight when the run was ended
	outcomes
)

// String is the name in reports.
func (o Outcome) String() string {
	names := [outcomes]string{
		"ok", "wrong_status", "wrong_length", "wrong_id", "wrong_body", "malformed",
		"cut", "refused", "unreachable", "timeout", "unfinished",
	}
	if o < 0 || o >= outcomes {
		return fmt.Sprintf("outcome(%d)", int(o))
	}
	return names[o]
}

// Answered tells whether a complete answer came, right or wrong.
func (o Outcome) Answered() bool { return o <= WrongBody }

// Sent tells whether the request was sent, as far as one can know: what came
// of it at the other end is another question.
func (o Outcome) Sent() bool { return o != Refused && o != Unreachable }
