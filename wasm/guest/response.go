package main

import (
	"strconv"

	"go.bytecodealliance.org/cm"

	"regedge/handler"
	"regedge/wasm/bindings/wasi/http/types"
)

type (
	field          = cm.Tuple[types.FieldKey, types.FieldValue]
	responseResult = cm.Result[types.ErrorCodeShape, types.OutgoingResponse, types.ErrorCode]
)

// defaultStatus is the status of a response for which none is set (wasi:http).
const defaultStatus = 200

// send hands the answer to the host. It traps if the host refuses a header or a status, since
// there is no other way to end the request.
func send(out types.ResponseOutparam, r *handler.Response) {
	response := types.NewOutgoingResponse(responseFields(r))
	if r.Status != defaultStatus && response.SetStatusCode(types.StatusCode(r.Status)) == cm.ResultErr {
		panic("status refused")
	}
	body := *must(response.Body()).OK()
	types.ResponseOutparamSet(out, cm.OK[responseResult](response))
	if len(r.Body) > 0 && !write(body, r.Body) {
		// The client is gone. Without a finish the host closes the connection.
		return
	}
	types.OutgoingBodyFinish(body, cm.None[types.Trailers]())
}

// responseFields returns the handler's headers and, if there is a body, Content-Length, without
// which a host would send it in chunks.
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

// must returns r, and traps if it is an error.
func must[Shape, OK, Err any](r cm.Result[Shape, OK, Err]) *cm.Result[Shape, OK, Err] {
	if r.IsErr() {
		panic("refused by the host")
	}
	return &r
}

// maxWriteBytes bounds one blocking write (wasi:io/streams).
const maxWriteBytes = 4096

// write writes p to the body, as fast as the host takes it, and reports whether it took all but perhaps the end.
func write(body types.OutgoingBody, p []byte) bool {
	stream := *must(body.Write()).OK()
	for len(p) > 0 {
		n := min(len(p), maxWriteBytes)
		written := stream.BlockingWriteAndFlush(cm.ToList(p[:n]))
		p = p[n:]
		if written.IsErr() && len(p) > 0 { // a host may close the stream with the last byte that Content-Length says
			return false
		}
	}
	stream.ResourceDrop() // required before the body can be finished
	return true
}
