package router

import (
	"errors"
	"net/http"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// forward sends the request to the replica of the lease and the answer to
// the client.
func (x *exchange) forward() {
	x.http2 = grpc(x.req)
	by := x.carrier()
	if err := by.prepare(); err != nil {
		x.refuse(err)
		return
	}
	err := x.send(by)
	by.tried()
	if err != nil {
		x.refuse(err)
		return
	}
	x.answered(by.status())
	by.deliver()
}

// A carrier is one of the two ways in which a request goes to its replica and
// the answer to its client: by net/http, or leanly. What a request and its
// answer say, and whether and where it is sent, is the same for both.
type carrier interface {
	// prepare makes the request that goes out, before the first try.
	prepare() error
	// carry sends it, and blocks until the head of the answer is there.
	carry(up *upstream, address string) error
	// status is that of the answer.
	status() int
	// deliver passes the answer on. It panics where that breaks off.
	deliver()
	// tried is the end of all tries.
	tried()
}

func (x *exchange) carrier() carrier {
	if x.plain != nil {
		return leanly{x}
	}
	return byTransport{x}
}

// byTransport is the way of all that is not plain: net/http's.
type byTransport struct{ *exchange }

func (x byTransport) prepare() (err error) {
	x.out, err = x.outgoing()
	return err
}

func (x byTransport) carry(up *upstream, address string) (err error) {
	x.out.url.Host = address
	x.res, err = up.transport(x.http2).RoundTrip(&x.out.req)
	return err
}

func (x byTransport) status() int { return x.res.StatusCode }

func (x byTransport) deliver() {
	if x.res.StatusCode == http.StatusSwitchingProtocols {
		x.tunnel(x.out, x.res)
		return
	}
	x.relay(x.res)
}

func (x byTransport) tried() { x.out.hints.end() }

// send sends the request to the replica of the lease, and again where that is
// safe, until its time is over. The request stays as it is from one try to the
// next, but for the address.
func (x *exchange) send(by carrier) error {
	for again := false; ; {
		replica := x.lease.Replica()
		x.trace.Sent, x.calling = time.Now(), true
		err := by.carry(x.router.upstreams.get(x.route.workload.Name, replica), replica.Address)
		refused := ""
		switch {
		case err == nil:
			return nil
		case refusedBy(err): // it has seen nothing of the request
			refused = replica.ID
		case x.brokenBy(err) && x.repeatable() && !again:
			again = true
		default:
			return err
		}
		x.recordTry(replica, err)
		x.router.logger.Debug("request is sent again", "workload", x.route.workload.Name,
			"replica", replica.ID, "request_id", x.requestID, "error", err)
		x.turn.end()
		x.lease.Release()
		x.limits.pause()
		if err := x.acquire(refused); err != nil {
			return err
		}
		x.limits.resume()
	}
}

// brokenBy reports that the replica ended the connection before any answer,
// and counts it against the replica.
func (x *exchange) brokenBy(err error) bool {
	if !broken(err) || x.clientLeft() {
		return false
	}
	x.lease.Failed()
	return true
}

// repeatable reports a request that may reach the workload twice: by RFC 9110,
// section 9.2.2, to ask twice means no more than to ask once. When its replica
// died under it, it is sent a second time, but not a third: should it be what
// the replicas die of, it must not go through all of them.
func (x *exchange) repeatable() bool {
	switch x.req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return x.req.ContentLength == 0 && x.req.Header["Upgrade"] == nil
	}
	return false
}

// answered notes that the head of the workload's answer is there. A proxy in
// front of the workload says with 502 and 504 that it got none.
func (x *exchange) answered(status int) {
	x.trace.Answered = time.Now()
	x.limits.headCame()
	if x.body != nil && x.body.expects != nil {
		x.body.expects.answered(status)
	}
	if status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
		x.lease.Failed()
	}
	x.turn.end()
	x.lease.Answered()
	x.outcome = outcomeWarm
	if x.cold {
		x.outcome = outcomeHeld
	}
}

// tell adds to the workload's answer what others have to say: the cookies of
// the authentication service, and that the request was held, and for what.
func (x *exchange) tell(answer http.Header) {
	x.addCookies(answer)
	x.setSticky(answer)
	if x.cold {
		answer.Set("Rouse-Cold-Start", "?1")
		answer.Add("Server-Timing", serverTiming(&x.trace, x.wake))
	}
}

// refuse answers in the workload's place, because of err.
func (x *exchange) refuse(err error) {
	if x.req.ProtoMajor == 1 && x.body != nil && x.body.malformed.Load() {
		x.say(badBody)
		return
	}
	if x.body != nil && x.body.patience.tooSlow() {
		x.say(slowBody)
		return
	}
	if over := x.limits.overrun(); over != nil {
		x.say(answerToOverrun(x.workloadName(), over))
		return
	}
	if x.clientLeft() || errors.Is(err, errLeft) {
		x.outcome = outcomeCanceled
		x.WriteHeader(statusClientGone) // one that only closed its sending side sees it
		return
	}
	x.router.logger.Debug("request got no answer from its workload", "workload", x.workloadName(),
		"request_id", x.requestID, "error", err)
	a := x.answerTo(err)
	switch {
	case x.kind == kindNavigation && errors.Is(err, activator.ErrHoldTimeout) && x.route.workload.Wait != workload.WaitHold:
		x.sayPage()
	default:
		x.say(a)
	}
}
