// Package journal keeps an edge's records on disk: append-only segments of framed
// records, and the batches that were reported, kept for a ledger that comes back from a
// backup.
//
// A segment begins with a snapshot of everything before it, so that two segments are
// enough: the newest, and the one before for the request ids in it. Each record has its
// length and a checksum in front. A crash can leave the newest segment with a torn end,
// or a new one without its whole snapshot: Replay drops both. Nothing that Write
// returned for is lost by the end of the process, nothing that Sync returned for by a
// power cut.
package journal
