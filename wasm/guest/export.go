//go:build tinygo

package main

import incominghandler "regedge/wasm/bindings/wasi/http/incoming-handler"

// The export is bound under TinyGo alone: nothing else can link the imports behind it,
// and without it the rest of the package builds and is tested natively.
func init() { incominghandler.Exports.Handle = handle }
