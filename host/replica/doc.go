// Package replica reads the database that a libSQL replica (sqld) keeps on this machine:
// from its file, which costs microseconds, or, while the file is not well, from the
// replica's HTTP endpoint, which costs half a millisecond.
//
// Invariants:
//   - What is read never goes back in time. The centre writes a heartbeat into each
//     database; a file that took the place of another (a replica that was rebuilt), or
//     the endpoint, is read only once its heartbeat is as new as the one read before.
//     Until then the old file is read on, deleted as it may be.
//   - A file whose log has got another index (-shm) is another file: what is committed is
//     not seen through the old one.
//   - The file is never written, recovered or checkpointed.
//   - A statement that the file can't answer is asked of the endpoint at once.
//
// A replica makes its file, and follows its primary after a restart, only once it was
// asked something: Refresh asks, and is to be called every second.
package replica
