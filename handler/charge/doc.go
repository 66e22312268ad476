// Package charge is the contract between a component and its meter: the description of a
// request, the verdict on it, and the HTTP form of both (docs/design.md, "The meter's
// contract"). The component sends it through wasi:http, so that the same registry.wasm works
// with any meter; the host answers these calls within its process. The writer and the edge
// import this package for its types.
//
//	POST /v1/charge?id=…&account=7&key=12&endpoint=companies&outcome=found&rate=60
//	POST /v1/charge?id=…&account=7&key=12&…&idempotency=HASH&target=HASH
//	POST /v1/charge?id=…&sandbox=1&client=192.0.2.1&endpoint=…&outcome=…&rate=30
//	POST /v1/void?id=…
//
// The answer to a charge has the status that the client gets if the request is refused (402,
// 422, 429, 503), else 200, and the headers named in http.go. A void is answered with 204. Both
// calls carry "Authorization: Bearer <meter token>".
package charge
