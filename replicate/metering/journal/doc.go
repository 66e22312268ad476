// Package journal keeps an edge's charges on disk: a write-ahead journal in segments, and an
// archive of the batches that were reported to the writer.
//
// # Files
//
// The state directory holds:
//
//	lock                          locked by the process that owns the directory
//	journal-0000000000000007.log  a segment of the journal, numbered from 1
//	batches-00020450.log          the batches reported on one UTC day (days since 1970)
//	*.corrupt                     a segment or batches that were damaged, for the operator
//
// Both kinds of log are a sequence of frames (frame.go), each with a checksum and bound to its file
// and its place there. Package lease encodes the records of a segment; a record of the archive is an
// epoch and a batch as package syncproto encodes them. A form is never changed: a new one is a record of a new
// kind, and those of before are still read.
//
// A segment begins with a snapshot of everything before it, and a frame that ends it.
// Two segments are therefore enough: the newest, and the one before it for its request ids.
// The archive keeps batches for 7 days, for a ledger that is restored from a backup.
//
// # Crashes
//
// When Write returns nil, the group is in the kernel's page cache and survives the end of the
// process. When Sync returns nil, what was written before it started is durable and survives
// a power cut. Anything written later may be lost in a power cut, in part and out of order:
// any page may hold its old content, its new content, zeros, or what its blocks had in another file,
// whatever became of the pages around it. Open cuts a segment where the first of this can't be read, so that
// no record behind such a hole comes back. Replayed.Torn says how much was cut; pages that came back as zeros
// don't count, since they look like space that was never written. A segment whose snapshot was not durable is
// dropped: the one before it still has everything.
//
// # Damage
//
// What was durable can be lost all the same: a bit flips, or a file is overwritten. After each sync a
// frame says how far the segment is durable; a record says it of the snapshot before it. So a
// hole in front of either is no power cut's, and Open tells it apart: Replayed.Damaged. The frames behind it
// are used. The segment is renamed to end in .corrupt once a new one has begun, with what could be read. A
// snapshot with a hole is not needed when the segment before is complete: its records are replayed in place
// of it, and nothing is lost. Where records of the state are lost (Replayed.Lost), package lease ends the
// epoch: see EdgeState.Damaged. Damage behind the last such frame can't be told from what a power cut leaves.
// In the archive each batch stands for itself; those that can be read are used. Its files say, too, how far
// they are durable: CheckArchive finds what was damaged, and keeps such a file with .corrupt at its end.
//
// # Locks
//
// Six locks guard the journal and its meter. A goroutine takes them in the order of this
// list, and may skip some; a build with the race detector panics where it does not (see
// Lock).
//
//  1. RankArchiving, Meter.archiving: held from the acknowledgement of a batch until the
//     batch is in the archive, and while a segment begins. A segment that holds the
//     acknowledgement is dropped only when the archive has the batch.
//  2. RankSync, Journal.syncing: held while a segment is synced or replaced. Charges are
//     written meanwhile.
//  3. RankWrite, Journal.writing: guards the segment's file and its size, and puts writes
//     into one order.
//  4. RankOwner, Meter.mu (the Owner's): guards the edge's state, and the group of records
//     that is written next.
//  5. RankArchive, reportArchive.mu: guards the archive's file.
//  6. RankDisk, syncer.mu: one sync request at a time.
package journal

// Rank is the position of a lock in the order in which locks are taken: see "Locks" above.
type Rank uint8

// The ranks, in the order of the package comment.
const (
	RankArchiving Rank = 1 + iota
	RankSync
	RankWrite
	RankOwner
	RankArchive
	RankDisk
)

var rankNames = [...]string{
	RankArchiving: "Meter.archiving", RankSync: "Journal.syncing", RankWrite: "Journal.writing",
	RankOwner: "the owner's lock", RankArchive: "reportArchive.mu", RankDisk: "syncer.mu",
}

func (r Rank) String() string { return rankNames[r] }
