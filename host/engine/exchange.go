package engine

import (
	"context"
	"sync"
	"time"

	"regedge/handler"
)

// exchange is the state of the request that an instance is answering: its handles and the resources
// behind them. The ref of a slot is an index into the list of its kind. The lists keep their
// capacity across requests, but no data.
type exchange struct {
	ctx      *deadline
	request  *handler.Request
	response *handler.Response

	handles   handleTable
	fields    []fieldList
	requests  []outgoingRequest
	answers   []incomingResponse
	futures   []futureResponse
	responses []outgoingResponse
	bodies    []outgoingBody
	pollables []pollable
	databases []Database

	// sent is the index of the response that the guest has set, or none.
	sent int
	// charges are the ids of the charges that this request has made and not voided.
	charges []string
	// lowered is the number of bytes allocated for results in the guest's memory.
	lowered uint64
	// spare is allocated guest memory that no result uses yet.
	spare span
	// calls, statements and outgoing are checked against maxCalls, maxStatements and maxOutgoing.
	calls, statements, outgoing int

	parameters []handler.Value
	result     handler.Result
}

// none is an index that is not set.
const none = -1

// begin starts a request. spare is guest memory allocated in advance.
func (x *exchange) begin(ctx context.Context, limit time.Duration, spare span, req *handler.Request, resp *handler.Response) {
	x.ctx = &deadline{Context: ctx, at: time.Now().Add(limit)}
	x.spare = spare
	x.request, x.response, x.sent = req, resp, none
}

// end drops the request's state. Text is overwritten rather than just truncated, so the pool keeps
// nothing that a client sent.
func (x *exchange) end() {
	x.ctx.release()
	x.ctx, x.request, x.response = nil, nil, nil
	x.handles.reset()
	for n := range x.fields {
		clear(x.fields[n].entries)
	}
	x.fields = x.fields[:0]
	x.requests = clearAll(x.requests)
	x.answers = x.answers[:0]
	x.futures = x.futures[:0]
	x.responses = x.responses[:0]
	x.bodies = x.bodies[:0]
	x.pollables = x.pollables[:0]
	x.databases = clearAll(x.databases)
	x.charges = clearAll(x.charges)
	x.parameters = clearAll(x.parameters)
	x.result.Values = clearAll(x.result.Values)
	x.lowered, x.calls, x.statements, x.outgoing = 0, 0, 0, 0
	x.spare = span{}
}

func clearAll[T any](list []T) []T {
	clear(list)
	return list[:0]
}

// extend lengthens a list by one element without zeroing it, so that the slices in the element are
// reused.
func extend[T any](list []T) []T {
	if len(list) < cap(list) {
		return list[:len(list)+1]
	}
	var zero T
	return append(list, zero)
}

// add makes a handle for the resource ref of kind k. It traps if there are too many.
func (i *instance) add(k kind, ref int, parent int32) uint32 {
	h, ok := i.handles.add(k, ref, parent)
	if !ok {
		trap("over %d handles", maxHandles)
	}
	return h
}

// find returns the slot of a handle and its resource. It traps if the handle is not of kind k.
func (i *instance) find(h uint64, k kind) (at int32, ref int) {
	at, ok := i.handles.find(uint32(h), k)
	if !ok {
		trap("%d is not a handle of a %v", uint32(h), k)
	}
	return at, int(i.handles.slots[at].ref)
}

// ref returns the resource of a handle.
func (i *instance) ref(h uint64, k kind) int {
	_, ref := i.find(h, k)
	return ref
}

// remove invalidates a handle and returns its resource.
func (i *instance) remove(h uint32, k kind) int {
	at, ref := i.find(uint64(h), k)
	if !i.handles.remove(at) {
		trap("%v was dropped before what belongs to it", k)
	}
	return ref
}

// deadline is a context that ends at a time, or, if that is zero, limit after the first call of one
// of its methods. It starts a timer only when something waits for it, which a request answered
// from local data does not.
type deadline struct {
	context.Context
	limit time.Duration // used if at is zero

	mu     sync.Mutex
	at     time.Time // zero until count is called
	timed  context.Context
	cancel context.CancelFunc
}

func (d *deadline) Deadline() (time.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count()
	if at, ok := d.Context.Deadline(); ok && at.Before(d.at) {
		return at, true
	}
	return d.at, true
}

// count sets the time of the end, if it is not set. The caller holds mu.
func (d *deadline) count() {
	if d.at.IsZero() {
		d.at = time.Now().Add(d.limit)
	}
}

func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.start().Done()
}

// Err always agrees with Done, as package context requires of a parent: once there is a timer, the
// timer decides, even if release has stopped it early.
func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed != nil {
		return d.timed.Err()
	}
	if err := d.Context.Err(); err != nil {
		return err
	}
	if d.count(); time.Now().Before(d.at) {
		return nil
	}
	return d.start().Err()
}

// start starts the timer. The caller holds mu.
func (d *deadline) start() context.Context {
	if d.timed == nil {
		d.count()
		d.timed, d.cancel = context.WithDeadline(d.Context, d.at)
	}
	return d.timed
}

// release stops the timer, if one was started.
func (d *deadline) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}
