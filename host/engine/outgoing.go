package engine

// The cases of error-code that the engine returns.
const (
	errorLimitReached = 11 // connection-limit-reached
	errorDenied       = 15 // HTTP-request-denied
	errorInternal     = 38 // internal-error
)

// maxOutgoing bounds the outgoing requests of one request. The handler sends one, or three if the
// meter's verdict is lost.
const maxOutgoing = 8

// outgoingRequest is the resource outgoing-request. As in wasi:http, the method is GET by default and
// everything else is empty.
type outgoingRequest struct {
	fields                            int
	method, target, scheme, authority string
}

// incomingResponse is the resource incoming-response; its body is always empty.
type incomingResponse struct{ status, fields int }

// futureResponse is the resource future-incoming-response. It is always ready, because the meter is
// called before handle returns.
type futureResponse struct {
	answer incomingResponse
	taken  bool
}

// schemeNames are the cases of the variant scheme that carry no text.
var schemeNames = [...]string{"http", "https"}

// outgoingImports are the functions of requests to other servers.
func outgoingImports() []function {
	return []function{
		define(httpTypes, "[constructor]outgoing-request", "i:i", newRequest),
		define(httpTypes, "[method]outgoing-request.set-method", "iiii:i", setMethod),
		define(httpTypes, "[method]outgoing-request.set-path-with-query", "iiii:i", setTarget),
		define(httpTypes, "[method]outgoing-request.set-scheme", "iiiii:i", setScheme),
		define(httpTypes, "[method]outgoing-request.set-authority", "iiii:i", setAuthority),
		drop(httpTypes, kindOutgoingRequest),
		drop(httpTypes, kindRequestOptions),
		define(httpTypes, "[method]incoming-response.status", "i:i", responseStatus),
		define(httpTypes, "[method]incoming-response.headers", "i:i", responseHeaders),
		drop(httpTypes, kindIncomingResponse),
		define(httpTypes, "[method]future-incoming-response.subscribe", "i:i", futureSubscribe),
		define(httpTypes, "[method]future-incoming-response.get", "ii:", futureGet),
		drop(httpTypes, kindFutureResponse),
		define(httpOutgoing, "handle", "iiii:", handleOutgoing),
	}
}

// newRequest is the constructor of outgoing-request: (fields).
func newRequest(i *instance, stack []uint64) {
	fields := i.remove(uint32(stack[0]), kindFields)
	i.requests = append(i.requests, outgoingRequest{fields: fields, method: "GET"})
	stack[0] = uint64(i.add(kindOutgoingRequest, len(i.requests)-1, noParent))
}

// variant reads a variant whose first cases are the names and whose last is text.
func (i *instance) variant(names []string, flat []uint64) (string, bool) {
	which, ptr, size := uint32(flat[0]), flat[1], flat[2]
	switch {
	case which < uint32(len(names)):
		return names[which], true
	case which == uint32(len(names)):
		return string(i.text(uint32(ptr), uint32(size))), false
	}
	trap("%d is not a case of the variant", which)
	return "", false
}

// setMethod is outgoing-request.set-method: (method) -> result. It refuses methods that have no name
// in wasi:http.
func setMethod(i *instance, stack []uint64) {
	request := &i.requests[i.ref(stack[0], kindOutgoingRequest)]
	method, known := i.variant(methodCases[:], stack[1:4])
	request.set(&request.method, method, known, stack)
}

// setScheme is outgoing-request.set-scheme: (option<scheme>) -> result.
func setScheme(i *instance, stack []uint64) {
	request := &i.requests[i.ref(stack[0], kindOutgoingRequest)]
	scheme, known := "", true
	if uint32(stack[1]) != 0 {
		scheme, known = i.variant(schemeNames[:], stack[2:5])
	}
	request.set(&request.scheme, scheme, known, stack)
}

// setTarget is outgoing-request.set-path-with-query: (option<string>) -> result.
func setTarget(i *instance, stack []uint64) {
	request := &i.requests[i.ref(stack[0], kindOutgoingRequest)]
	request.set(&request.target, i.optionalText(stack[1:]), true, stack)
}

// setAuthority is outgoing-request.set-authority: (option<string>) -> result.
func setAuthority(i *instance, stack []uint64) {
	request := &i.requests[i.ref(stack[0], kindOutgoingRequest)]
	request.set(&request.authority, i.optionalText(stack[1:]), true, stack)
}

// set changes one field if ok, and returns the result to the guest.
func (r *outgoingRequest) set(field *string, value string, ok bool, stack []uint64) {
	stack[0] = 1
	if ok {
		*field = value
		stack[0] = 0
	}
}

// optionalText reads an option<string>, with "" for none.
func (i *instance) optionalText(flat []uint64) string {
	if uint32(flat[0]) == 0 {
		return ""
	}
	return string(i.text(uint32(flat[1]), uint32(flat[2])))
}

// handleOutgoing is outgoing-handler.handle: (outgoing-request, option<request-options>)
// -> result<future-incoming-response, error-code>.
func handleOutgoing(i *instance, stack []uint64) {
	request := i.requests[i.remove(uint32(stack[0]), kindOutgoingRequest)]
	if uint32(stack[1]) != 0 {
		i.remove(uint32(stack[2]), kindRequestOptions)
	}
	i.outgoing++
	answer, failure := incomingResponse{}, uint64(errorLimitReached)
	if i.outgoing <= maxOutgoing {
		answer, failure = i.callMeter(&request)
	}
	out := i.out(uint32(stack[3]), 40, 8)
	if failure != 0 {
		put32(out, 0, 1)
		put64(out, 8, failure)
		return
	}
	i.futures = append(i.futures, futureResponse{answer: answer})
	put32(out, 0, 0)
	put32(out, 8, i.add(kindFutureResponse, len(i.futures)-1, noParent))
}

// futureSubscribe is future-incoming-response.subscribe: () -> pollable.
func futureSubscribe(i *instance, stack []uint64) {
	at, _ := i.find(stack[0], kindFutureResponse)
	stack[0] = uint64(i.addPollable(alwaysReady, at))
}

// futureGet is future-incoming-response.get: () ->
// option<result<result<incoming-response, error-code>>>.
func futureGet(i *instance, stack []uint64) {
	future := &i.futures[i.ref(stack[0], kindFutureResponse)]
	out := i.out(uint32(stack[1]), 56, 8)
	put32(out, 0, 1)
	if future.taken {
		put32(out, 8, 1)
		return
	}
	future.taken = true
	i.answers = append(i.answers, future.answer)
	put32(out, 8, 0)
	put32(out, 16, 0)
	put32(out, 24, i.add(kindIncomingResponse, len(i.answers)-1, noParent))
}

// responseStatus is incoming-response.status: () -> u16.
func responseStatus(i *instance, stack []uint64) {
	stack[0] = uint64(i.answers[i.ref(stack[0], kindIncomingResponse)].status)
}

// responseHeaders is incoming-response.headers: () -> fields.
func responseHeaders(i *instance, stack []uint64) {
	at, ref := i.find(stack[0], kindIncomingResponse)
	stack[0] = uint64(i.add(kindFields, i.answers[ref].fields, at))
}
