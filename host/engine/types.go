package engine

import (
	"strconv"
	"unicode/utf8"

	"regedge/handler"
	"regedge/handler/fastbytes"
	"regedge/wasm/labels"
)

// maxBodyBytes bounds a response's body. The largest answer of the contract, a company with 50
// directors, has about 8 KB.
const maxBodyBytes = 1 << 20

// outgoingResponse is the resource outgoing-response.
type outgoingResponse struct {
	status int
	fields int
	body   int // none until the guest takes it
}

// outgoingBody is the resource outgoing-body.
type outgoingBody struct {
	data     []byte
	streamed bool // its stream was taken
	finished bool
}

// methodCases are the cases of the variant method that carry no text.
var methodCases = [...]string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

const methodOther = len(methodCases)

// typesImports are the functions of wasi:http/types, except those for outgoing requests.
func typesImports() []function {
	return append(fieldImports(),
		define(httpTypes, "[method]incoming-request.method", "ii:", requestMethod),
		define(httpTypes, "[method]incoming-request.path-with-query", "ii:", requestTarget),
		define(httpTypes, "[method]incoming-request.headers", "i:i", requestHeaders),
		drop(httpTypes, kindIncomingRequest),
		define(httpTypes, "[constructor]outgoing-response", "i:i", newResponse),
		define(httpTypes, "[method]outgoing-response.set-status-code", "ii:i", setStatus),
		define(httpTypes, "[method]outgoing-response.body", "ii:", responseBody),
		drop(httpTypes, kindOutgoingResponse),
		define(httpTypes, "[method]outgoing-body.write", "ii:", bodyWrite),
		define(httpTypes, "[static]outgoing-body.finish", "iiii:", bodyFinish),
		drop(httpTypes, kindOutgoingBody),
		define(httpTypes, "[static]response-outparam.set", "iiiiIiiii:", setOutparam),
		drop(httpTypes, kindResponseOutparam),
	)
}

// requestMethod is incoming-request.method: () -> method.
func requestMethod(i *instance, stack []uint64) {
	i.find(stack[0], kindIncomingRequest)
	method := methodOther
	for n, name := range methodCases {
		if i.request.Method == name {
			method = n
			break
		}
	}
	var ptr, size uint32
	if method == methodOther {
		ptr, size = i.lowerText(i.request.Method)
	}
	out := i.out(uint32(stack[1]), 12, 4)
	put32(out, 0, uint32(method))
	put32(out, 4, ptr)
	put32(out, 8, size)
}

// requestTarget is incoming-request.path-with-query: () -> option<string>. Bytes that are not UTF-8
// are percent-encoded, which means the same (RFC 3986, section 2.1).
func requestTarget(i *instance, stack []uint64) {
	i.find(stack[0], kindIncomingRequest)
	ptr, size := i.lower(escapeInvalid(i.request.Target))
	out := i.out(uint32(stack[1]), 12, 4)
	put32(out, 0, 1)
	put32(out, 4, ptr)
	put32(out, 8, size)
}

// escapeInvalid percent-encodes the bytes of s that are not UTF-8.
func escapeInvalid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	const digits = "0123456789ABCDEF"
	escaped := make([]byte, 0, len(s)+16)
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			escaped = append(escaped, '%', digits[s[0]>>4], digits[s[0]&15])
		} else {
			escaped = append(escaped, s[:size]...)
		}
		s = s[size:]
	}
	return string(escaped)
}

// requestHeaders is incoming-request.headers: () -> fields. The client's address, as the
// server vouches for it, replaces what the client may have sent in that field.
func requestHeaders(i *instance, stack []uint64) {
	at, _ := i.find(stack[0], kindIncomingRequest)
	list, ref := i.newFields()
	for _, field := range i.request.Headers {
		if !fastbytes.EqualFold(field.Name, labels.ClientAddrHeader) {
			list.entries = append(list.entries, field)
		}
	}
	if i.request.ClientAddr != nil {
		client := handler.Header{Name: labels.ClientAddrHeader, Value: i.request.ClientAddr()}
		list.entries = append(list.entries, client)
	}
	stack[0] = uint64(i.add(kindFields, ref, at))
}

// newResponse is the constructor of outgoing-response: (fields).
func newResponse(i *instance, stack []uint64) {
	fields := i.remove(uint32(stack[0]), kindFields)
	i.responses = append(i.responses, outgoingResponse{status: 200, fields: fields, body: none})
	stack[0] = uint64(i.add(kindOutgoingResponse, len(i.responses)-1, noParent))
}

// setStatus is outgoing-response.set-status-code: (u16) -> result. It refuses a status that a final
// response cannot have.
func setStatus(i *instance, stack []uint64) {
	response := &i.responses[i.ref(stack[0], kindOutgoingResponse)]
	status := uint32(stack[1])
	if status < 200 || status > 599 {
		stack[0] = 1
		return
	}
	response.status = int(status)
	stack[0] = 0
}

// responseBody is outgoing-response.body: () -> result<outgoing-body>, an error the
// second time.
func responseBody(i *instance, stack []uint64) {
	response := &i.responses[i.ref(stack[0], kindOutgoingResponse)]
	out := i.out(uint32(stack[1]), 8, 4)
	if response.body != none {
		put32(out, 0, 1)
		return
	}
	i.bodies = extend(i.bodies)
	response.body = len(i.bodies) - 1
	body := &i.bodies[response.body]
	body.data, body.streamed, body.finished = body.data[:0], false, false
	put32(out, 0, 0)
	put32(out, 4, i.add(kindOutgoingBody, response.body, noParent))
}

// bodyWrite is outgoing-body.write: () -> result<output-stream>, an error the second time.
func bodyWrite(i *instance, stack []uint64) {
	at, ref := i.find(stack[0], kindOutgoingBody)
	body := &i.bodies[ref]
	out := i.out(uint32(stack[1]), 8, 4)
	if body.streamed {
		put32(out, 0, 1)
		return
	}
	body.streamed = true
	put32(out, 0, 0)
	put32(out, 4, i.add(kindOutputStream, ref, at))
}

// bodyFinish is static outgoing-body.finish: (outgoing-body, option<fields>) ->
// result<_, error-code>. Trailers are refused: no answer of the service has any.
func bodyFinish(i *instance, stack []uint64) {
	ref := i.remove(uint32(stack[0]), kindOutgoingBody)
	out := i.out(uint32(stack[3]), 40, 8)
	if uint32(stack[1]) != 0 {
		i.remove(uint32(stack[2]), kindFields)
		put32(out, 0, 1)
		put64(out, 8, errorInternal)
		put32(out, 16, 0)
		return
	}
	i.bodies[ref].finished = true
	put32(out, 0, 0)
}

// setOutparam is static response-outparam.set: (response-outparam,
// result<outgoing-response, error-code>).
func setOutparam(i *instance, stack []uint64) {
	i.remove(uint32(stack[0]), kindResponseOutparam)
	if uint32(stack[1]) != 0 {
		trap("guest answered with error-code %d", uint32(stack[2]))
	}
	i.sent = i.remove(uint32(stack[2]), kindOutgoingResponse)
}

// takeResponse moves the guest's response into the caller's.
func (i *instance) takeResponse() error {
	if i.sent == none {
		return &fault{"guest returned without a response"}
	}
	sent := &i.responses[i.sent]
	to := i.response
	to.Status = sent.status
	to.Headers = append(to.Headers[:0], i.fields[sent.fields].entries...)
	to.Body = to.Body[:0]
	if sent.body != none {
		body := &i.bodies[sent.body]
		if !body.finished {
			return &fault{"guest returned before it finished the body"}
		}
		// Swapping the buffers saves a copy and an allocation.
		to.Body, body.data = body.data, to.Body
	}
	return checkLength(to)
}

// checkLength returns an error if a Content-Length is not the body's length.
func checkLength(r *handler.Response) error {
	for _, h := range r.Headers {
		if !fastbytes.EqualFold("content-length", h.Name) {
			continue
		}
		if n, err := strconv.Atoi(h.Value); err != nil || n != len(r.Body) {
			return &fault{"guest sent a wrong content-length"}
		}
	}
	return nil
}
