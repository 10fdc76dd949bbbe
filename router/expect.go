package router

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
)

// continueTimeout is how long a workload may leave Expect: 100-continue
// unanswered before the body is sent all the same.
const continueTimeout = time.Second

// An expectation is that of a client which keeps its body back until it is
// told to go on. The word is the workload's: net/http tells the client as soon
// as the body is read, so the reading waits here. A transport would not wait
// when a refusal leaves the connection open, to use it again.
type expectation struct {
	once    sync.Once
	goOn    chan struct{} // closed: the body is wanted
	refused atomic.Bool   // an answer came without the body
	over    chan struct{} // closed: the request has ended
}

// expectationOf gives that of a request, nil for most. One of HTTP/1.0 is to
// be ignored.
func expectationOf(r *http.Request) *expectation {
	if len(r.Header["Expect"]) == 0 || !r.ProtoAtLeast(1, 1) ||
		!httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue") {
		return nil
	}
	return &expectation{goOn: make(chan struct{}), over: make(chan struct{})}
}

// proceed says that the body is wanted; it may be called again.
func (e *expectation) proceed() { e.once.Do(func() { close(e.goOn) }) }

// answered takes in the status of the final answer. A success is an answer
// that begins before its body has come.
func (e *expectation) answered(status int) {
	if status < http.StatusMultipleChoices {
		e.proceed()
		return
	}
	e.refused.Store(true)
}

// wait blocks until the body is wanted, and reports that it is.
func (e *expectation) wait() bool {
	timer := time.NewTimer(continueTimeout)
	defer timer.Stop()
	select {
	case <-e.goOn:
		return true
	case <-e.over:
		return false
	case <-timer.C:
	}
	if !e.refused.Load() {
		e.proceed()
		return true
	}
	<-e.over
	return false
}
