// Package wasm holds the service's component, registry.wasm, for embedding. wasm/build.sh
// builds it from package guest; it is committed, so that a host needs no Wasm toolchain.
// docs/design.md, "Component", describes what it expects of a host.
package wasm

import _ "embed"

// Component is the component, a binary of the WebAssembly component model. It must not be
// changed.
//
//go:embed registry.wasm
var Component []byte
