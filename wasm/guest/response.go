package main

import (
	"strconv"

	"go.bytecodealliance.org/cm"

	"regedge/handler"
	"regedge/wasm/bindings/wasi/http/types"
	"regedge/wasm/bindings/wasi/io/poll"
	"regedge/wasm/bindings/wasi/io/streams"
)

type (
	field          = cm.Tuple[types.FieldKey, types.FieldValue]
	responseResult = cm.Result[types.ErrorCodeShape, types.OutgoingResponse, types.ErrorCode]
)

// defaultStatus is that of a response whose status is not set (wasi:http).
const defaultStatus = 200

// send hands the whole answer to the host. A host that refuses a header or a status that
// the handler made is not one that the request can be answered on, so it traps.
func send(out types.ResponseOutparam, r *handler.Response) {
	response := types.NewOutgoingResponse(responseFields(r))
	if r.Status != defaultStatus && response.SetStatusCode(types.StatusCode(r.Status)) == cm.ResultErr {
		panic("status refused")
	}
	body := *must(response.Body()).OK()
	types.ResponseOutparamSet(out, cm.OK[responseResult](response))
	if len(r.Body) > 0 && !write(body, r.Body) {
		// The client went away. Without a finish the host ends the connection as broken.
		return
	}
	types.OutgoingBodyFinish(body, cm.None[types.Trailers]())
}

// responseFields are the handler's headers and, for an answer with a body, its length:
// without it a host would send the body in chunks.
func responseFields(r *handler.Response) types.Fields {
	list := make([]field, 0, len(r.Headers)+1)
	for _, h := range r.Headers {
		list = append(list, newField(h.Name, h.Value))
	}
	if len(r.Body) > 0 {
		list = append(list, newField("Content-Length", strconv.Itoa(len(r.Body))))
	}
	return newFields(list)
}

func newFields(list []field) types.Fields {
	return *must(types.FieldsFromList(cm.ToList(list))).OK()
}

// must returns r if it is ok, and traps if it is an error.
func must[Shape, OK, Err any](r cm.Result[Shape, OK, Err]) *cm.Result[Shape, OK, Err] {
	if r.IsErr() {
		panic("refused by the host")
	}
	return &r
}

// write sends p as fast as the body takes it, and reports whether it took it all.
func write(body types.OutgoingBody, p []byte) bool {
	stream := *must(body.Write()).OK()
	for len(p) > 0 {
		permit := stream.CheckWrite()
		if permit.IsErr() {
			return false
		}
		n := min(uint64(len(p)), *permit.OK())
		if n == 0 {
			wait(stream)
			continue
		}
		if written := stream.Write(cm.ToList(p[:n])); written.IsErr() {
			return false
		}
		p = p[n:]
	}
	stream.ResourceDrop() // a body ends only after its stream
	return true
}

func wait(stream streams.OutputStream) {
	ready := stream.Subscribe()
	poll.Poll(cm.ToList([]poll.Pollable{ready}))
	ready.ResourceDrop()
}
