// Package conformance runs the requests of testdata/vectors against any host of the component
// and compares its answers with theirs. The same vectors test every engine: native, wazero with
// pooled and with fresh instances, and V8 as a second component runtime. -update rewrites them
// with the native engine's answers. If a vector fails because wasm/registry.wasm was not rebuilt
// after a change of the handler, the test says so. Every vector starts with the same time and an
// account of its own, so that each can be run, and rewritten, alone.
//
// A vector file is text:
//
//	# A comment.
//	=== a company with every field
//	given plan=scale credits=10
//	> GET /v1/companies/U74999SK2016PTC013232
//	> Authorization: Bearer {key}
//	< 200
//	< X-Credits-Remaining: 9
//	{
//	  "data": …
//	}
//
// "given" makes an account for this vector alone; {key} and {second} are two of its live keys,
// {revoked} a revoked one. Its options are plan=ID, credits=N, suspended, and for {key} alone allowed=NETWORK,
// per_minute=N and spent, of its month's credits. "client ADDRESS" sets the client's address; without it
// every vector has its own. "times N" sends the next request N times: the last answer is compared, the
// others must have the same status. "advance DURATION" moves the meter's clock, on a host for this vector
// alone. "outage NAME" sends the vector to a host of which a part has failed: registry (it cannot be read),
// record (one of its companies is too large), writer (it was never reached) or room (the host already
// serves as many requests as it may).
//
// The body is compared byte by byte with the vector's, ignoring the latter's indentation. {id}
// stands for the request id, which must be the same everywhere in an answer, and {release} for
// the registry's release. The headers of every answer are checked on every answer and left
// out of the files.
package conformance
