// Package conformance runs the request and response vectors of testdata/vectors against
// any host of the component. The same vectors judge every engine: native, wazero with
// pooled and with fresh instances, and a second component runtime.
//
// A vector file is text, made for reading:
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
// "given" makes an account for this vector alone; {key} and {second} are two of its live
// keys, {revoked} one that no longer works. Its words: plan=ID, credits=N, suspended.
// "client ADDRESS" sets the client's address, else every vector has one of its own.
// "times N" sends the next request N times, of which the last is compared and the others
// must have its status. "advance DURATION" moves the meter's clock. "outage NAME" sends the
// vector to a host of which a part has failed: registry (it can't be read), record (a
// company of it is too large), writer (it was never reached) or room (the host answers as many
// requests as it may).
//
// The body is compared byte by byte with the vector's, whose layout does not count.
// {id} stands for the request id, which must be the same wherever it occurs, and
// {release} for the registry's release. The headers that every answer carries are
// checked on every answer and left out of the files.
package conformance
