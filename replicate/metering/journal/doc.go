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
//
// Both kinds of log are a sequence of frames. A frame is 4 bytes of length, 4 bytes of
// CRC-32C over length and record, both little-endian, and the record. Package lease encodes
// the records of a segment; a record of the archive is an epoch and a batch as package
// syncproto encodes them. There is one version of each.
//
// A segment begins with a snapshot of everything before it, which ends with an empty record.
// Two segments are therefore enough: the newest, and the one before it for its request ids.
// The archive keeps batches for 7 days, for a ledger that is restored from a backup.
//
// # Crashes
//
// When Write returns nil, the group is in the kernel's page cache and survives the end of the
// process. When Sync returns nil, what was written before it started is durable and survives
// a power cut. Anything written later may be lost in a power cut, in part and out of order:
// any page may hold its old content, its new content or zeros, whatever became of
// the pages around it. Open reads a segment up to the first frame whose checksum does not
// match and cuts the file there, so that no record behind a gap comes back. Replayed.Torn says
// how much was cut; pages that came back as zeros don't count, since they look like space that
// was never written. A segment whose
// snapshot is not whole is dropped: the one before it still has everything.
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
