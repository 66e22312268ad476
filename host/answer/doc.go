// Package answer gives the server its two ways to answer a lookup: the component in its
// engine, and the same handler without Wasm, for a debugger and as the yardstick of what
// Wasm costs. Both speak to the same databases and the same meter and give the same
// bytes.
package answer
