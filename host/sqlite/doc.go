// Package sqlite answers read-only statements on an SQLite file: the file of a local
// database, or the one that a libSQL replica keeps. It has a small pool of connections,
// each with its prepared statements. It never writes, checkpoints or creates the file, so
// it can read beside the process that owns it.
//
// A statement can only read: the file is opened read-only, and an authorizer refuses
// everything but SELECT, so a component with access to a Store cannot attach another file
// or change a setting. Every statement is limited in time, rows and bytes.
//
// # Replicas
//
// A Replica reads the database that a libSQL replica (sqld) keeps on this machine: from its
// file, which costs microseconds, or, while the file is not usable, from the replica's HTTP
// endpoint, which costs half a millisecond. Its invariants:
//
//   - Reads never go back in time. The centre writes a heartbeat into each database; a
//     file that took the place of another (a rebuilt replica), the endpoint, or the file
//     after the endpoint, is read only once its heartbeat is as new as the newest one read
//     before. Until then the old file stays open, even if it was deleted.
//   - A file whose log got another index (-shm) counts as another file: commits are not
//     visible through the old one.
//   - While a push is under way, all connections stay in the release before it (hold), and clients of the
//     endpoint are answered from that release too (Beside).
//   - The file is never written, recovered or checkpointed.
//   - A statement that fails on the file is sent to the endpoint at once.
//
// A replica creates its file, and follows its primary after a restart, only once it was
// sent a query: Refresh sends one, and is to be called every second; so does regedge replica itself.
package sqlite
