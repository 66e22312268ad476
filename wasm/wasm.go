// Package wasm holds the service's component, built from package guest beside it by
// wasm/build.sh and committed, so that a host needs no Wasm toolchain.
package wasm

import _ "embed"

// Component is the component: a binary of the WebAssembly component model. Nobody
// changes it.
//
//go:embed registry.wasm
var Component []byte
