package engine

import (
	"context"
	"sync"
	"time"

	"regedge/handler"
)

// exchange is the state of the request that an instance works on: its handles and the
// resources behind them, each list addressed by the ref of a slot. The lists keep their
// capacity from request to request and nothing else.
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

	// sent is the response that the guest has set, as an index, or none.
	sent int
	// charges are the ids of the charges that this request made and did not void.
	charges []string
	// lowered is how many bytes results have taken in the guest's memory so far.
	lowered uint64
	// spare is memory that the guest gave and no result took yet.
	spare span
	// calls, statements and outgoing count towards their limits.
	calls, statements, outgoing int

	parameters []handler.Value
	result     handler.Result
}

// none is the value of an index that is not set.
const none = -1

// begin takes up a request. spare is the memory that the guest gave before.
func (x *exchange) begin(ctx context.Context, limit time.Duration, spare span, req *handler.Request, resp *handler.Response) {
	x.ctx = &deadline{Context: ctx, at: time.Now().Add(limit)}
	x.spare = spare
	x.request, x.response, x.sent = req, resp, none
}

// end forgets the request. Text is cleared and not only cut off, so that the pool does
// not keep what a client sent.
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

// extend lengthens a list by one element and keeps what that element held in an earlier
// request, so that its own slices are used again.
func extend[T any](list []T) []T {
	if len(list) < cap(list) {
		return list[:len(list)+1]
	}
	var zero T
	return append(list, zero)
}

// add makes a handle for the resource ref of kind k.
func (i *instance) add(k kind, ref int, parent int32) uint32 {
	h, ok := i.handles.add(k, ref, parent)
	if !ok {
		trap("over %d handles", maxHandles)
	}
	return h
}

// find returns the slot of a handle and the resource it stands for.
func (i *instance) find(h uint64, k kind) (at int32, ref int) {
	at, ok := i.handles.find(uint32(h), k)
	if !ok {
		trap("%d is not a handle of a %v", uint32(h), k)
	}
	return at, int(i.handles.slots[at].ref)
}

// ref returns the resource that a handle stands for.
func (i *instance) ref(h uint64, k kind) int {
	_, ref := i.find(h, k)
	return ref
}

// remove takes a handle from the guest and returns the resource it stood for.
func (i *instance) remove(h uint32, k kind) int {
	at, ref := i.find(uint64(h), k)
	if !i.handles.remove(at) {
		trap("%v was dropped before what belongs to it", k)
	}
	return ref
}

// deadline is a context that ends at a time or, if none is given, some time after somebody
// first asked when it does, or waited for it. It starts a timer only when somebody waits for
// it, which a request that is answered from local data does not.
type deadline struct {
	context.Context
	limit time.Duration // counts where at is not given

	mu     sync.Mutex
	at     time.Time // zero before it is known
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

// count begins to count the time. The caller holds mu.
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

// Err agrees with Done at every moment, as package context demands of a parent: once
// there is a timer, that decides, also when release has ended it early.
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
