package main

import (
	"regedge/handler"
	"regedge/wasm/bindings/wasi/http/types"
	"regedge/wasm/labels"
)

// main is never called: the component is a library with one export.
func main() {}

// handle serves one request.
func handle(request types.IncomingRequest, out types.ResponseOutparam) {
	h := handler.Handler{
		Access:   store(labels.AccessDatabase),
		Registry: store(labels.RegistryDatabase),
		Meter:    meter{},
		Clock:    clock{},
		Random:   random{},
		DocsURL:  func() string { return variable(labels.DocsURL) },
	}
	send(out, h.Serve(receive(request)))
}
