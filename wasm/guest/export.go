//go:build tinygo

package main

import incominghandler "regedge/wasm/bindings/wasi/http/incoming-handler"

// The export is set only under TinyGo, which alone can link the imports that it uses. Without it
// the package builds natively, for its tests.
func init() { incominghandler.Exports.Handle = handle }
