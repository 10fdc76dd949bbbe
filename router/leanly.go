package router

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"

	"golang.org/x/net/http/httpguts"

	"github.com/rouse-dev/rouse/router/lean"
)

// leanly is the way of plain requests, see lean. Nothing of it allocates, but
// for what is not plain in the answer.
type leanly struct{ *exchange }

// prepare changes the client's header to the one that goes out; the values
// that Rouse sets are part of the exchange, which lasts for as long.
func (x leanly) prepare() error {
	ctx, limits := limitsOf(x.req.Context(), x.route.workload)
	if x.limits = limits; limits != nil {
		context.AfterFunc(ctx, x.plain.Breaker())
	}
	x.hints.to = x.w
	if x.plain.Rest() > 0 {
		x.body = &retryBody{Reader: x.plain.Body(), limits: limits, patience: newPatience(x.router.bodyTimeout, x.plain.BodyBreaker())}
	}
	if err := x.setHeaders(&x.values); err != nil {
		return err
	}
	return x.checkGranted()
}

// checkGranted refuses what no field may hold. A transport looks at all of
// them; of a plain request they have been looked at, but for those that the
// authentication service said.
func (x leanly) checkGranted() error {
	for name := range x.granted {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("%w: %q", errBadField, name)
		}
		for _, value := range x.req.Header[name] {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("%w: %s", errBadField, name)
			}
		}
	}
	return nil
}

var errBadField = errors.New("the authentication service said what no field may hold")

func (x leanly) carry(up *upstream, _ string) error {
	order := lean.Order{Again: x.repeatable(), Parsed: x.limits != nil, Caller: x}
	if x.limits != nil {
		order.Sent = x.limits.sent
	}
	if x.body != nil {
		order.Body = x.body
	}
	return x.plain.Send(&up.plain, order)
}

// Inform hands an informational answer to the client.
func (x leanly) Inform(status int, header textproto.MIMEHeader) error {
	return x.hints.pass(status, header)
}

func (x leanly) status() int { return x.plain.Status() }

func (x leanly) deliver() {
	switch res := x.plain.Response(); {
	case res == nil:
		x.relayPlain()
	case res.StatusCode == http.StatusSwitchingProtocols:
		x.refuse(fmt.Errorf("%w: %q", errSwitch, res.Header.Get("Upgrade")))
	default:
		x.relay(res)
	}
}

// relayPlain is relay without a header of its own: what is passed on of the
// answer is copied as it came.
func (x leanly) relayPlain() {
	x.tell(x.w.Header())
	x.WriteHeader(x.plain.Status())
	n, err := x.plain.Relay()
	x.bytes += n
	if err != nil {
		x.writeError = x.plain.ClientFailed()
		x.breakOff(err)
	}
}

func (x leanly) tried() { x.hints.end() }
