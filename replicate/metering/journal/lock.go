package journal

// Rank is the position of a lock in the order in which locks are taken: see "Locks" in the
// package comment.
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
