package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

func snapshotOf(record string) func(write func([]byte)) {
	return func(write func([]byte)) { write([]byte(record)) }
}

// TestAPowerCutLosesNothingThatWasSynced, of a new segment and of the one before, whose request ids are
// needed on.
func TestAPowerCutLosesNothingThatWasSynced(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "first", true))
	require.NoError(t, j.Sync())
	d.cutPower()
	j, _, records, _ := opened(t, d, k)
	require.Equal(t, []string{"first"}, records)

	require.NoError(t, put(j, k, "not synced before the rotation", true))
	require.NoError(t, j.Rotate(snapshotOf("all")))
	require.NoError(t, put(j, k, "after", true))
	require.NoError(t, j.Sync())
	d.cutPower()
	_, ids, records, _ := opened(t, d, k)
	require.Equal(t, []string{"first", "not synced before the rotation"}, ids)
	require.Equal(t, []string{"all", "after"}, records)
}

// TestWhatIsWrittenDuringASyncIsSyncedByTheNext, though nothing is written after it: else a power cut takes a
// charge for as long as no other one comes.
func TestWhatIsWrittenDuringASyncIsSyncedByTheNext(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "before", true))
	d.syncing = func() {
		d.syncing = nil
		require.NoError(t, put(j, k, "meanwhile", true))
	}
	require.NoError(t, j.Sync())
	require.NoError(t, j.Sync())
	d.cutPower()
	_, _, records, _ := opened(t, d, k)
	require.Equal(t, []string{"before", "meanwhile"}, records)
}

func TestCloseMakesEverythingDurable(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "written", true))
	k.Lock()
	j.Append([]byte("pending"), true)
	k.Unlock()
	require.NoError(t, j.Archive(1, &syncproto.Batch{Seq: 1, Of: 1}, 100, 100))
	require.NoError(t, j.Close())
	d.cutPower()
	again, _, records, _ := opened(t, d, k)
	require.Equal(t, []string{"written", "pending"}, records)
	require.NotNil(t, archivedBatch(t, again, 1, 1))

	require.NoError(t, put(again, k, "more", true))
	d.syncErr = errors.New("input/output error")
	require.ErrorIs(t, again.Close(), d.syncErr)
}

// TestASyncOfNothingLeavesTheDiskAlone: an idle edge would else keep it busy a hundred times a second.
func TestASyncOfNothingLeavesTheDiskAlone(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "a", true))
	require.NoError(t, j.Sync())
	before := d.syncs
	for range 5 {
		require.NoError(t, j.Sync())
	}
	require.Equal(t, before, d.syncs)
	require.NoError(t, put(j, k, "b", true))
	require.NoError(t, j.Sync())
	require.Equal(t, before+1, d.syncs)
}

// TestWhatIsLeftOfASegmentIsRemovedFirst: a rotation failed on a full disk, and so did the removal of
// what it had written.
func TestWhatIsLeftOfASegmentIsRemovedFirst(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "a", true))
	d.full, d.keepsOld = 12, errors.New("input/output error")
	require.Error(t, j.Rotate(snapshotOf("a long snapshot")))
	d.full, d.keepsOld = -1, nil
	require.NotEmpty(t, d.files[segmentName(2)])
	require.NoError(t, j.Rotate(snapshotOf("a long snapshot")))
	_, _, records, found := opened(t, d, k)
	require.Equal(t, []string{"a long snapshot"}, records)
	require.Zero(t, found.Torn)
}

// TestBatchesOfAFormerProcessAreMadeDurable: the sync of a later batch may fail, and lose them.
func TestBatchesOfAFormerProcessAreMadeDurable(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, j.Archive(1, &syncproto.Batch{Seq: 1, Of: 1}, 100, 100))
	again, _, _, _ := opened(t, d, k) // the process was killed
	require.NoError(t, again.Archive(1, &syncproto.Batch{Seq: 2, Of: 1}, 100, 100))
	d.cutPower()
	third, _, _, _ := opened(t, d, k)
	require.NotNil(t, archivedBatch(t, third, 1, 1))

	d.syncErr = errors.New("input/output error")
	require.ErrorIs(t, third.Archive(1, &syncproto.Batch{Seq: 3, Of: 1}, 100, 100), d.syncErr)
}

// TestTheMemoryOfTheArchiveIsBounded: of what waits for its sync, and of what is read again.
func TestTheMemoryOfTheArchiveIsBounded(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	usage := make([]syncproto.Usage, 1000)
	for i := range usage {
		usage[i] = syncproto.Usage{Account: 1, Key: int64(i + 1), Hour: 1, Endpoint: 1, Outcome: 1, Count: 1}
	}
	const batches = 2 * archiveRead
	for seq := uint64(1); seq <= batches; seq++ {
		require.NoError(t, j.Archive(1, &syncproto.Batch{Seq: seq, Of: 1, Usage: usage}, 100, 100))
		require.LessOrEqual(t, len(j.archive.unsaved), maxUnsaved+20*len(usage))
	}
	for seq := uint64(1); seq <= batches; seq++ {
		got := archivedBatch(t, j, 1, seq)
		require.NotNil(t, got, "batch %d", seq)
		require.Equal(t, seq, got.Seq)
		require.LessOrEqual(t, len(j.archive.read), archiveRead)
	}
}

// TestADamagedLengthTakesNoMemory: it could be anything up to 4 GB.
func TestADamagedLengthTakesNoMemory(t *testing.T) {
	damaged := appendFrame(nil, frameRecord, []byte("record"))
	binary.LittleEndian.PutUint32(damaged, (maxRecord+1)|uint32(frameRecord)<<24)
	r := newReader(0, bytes.NewReader(damaged))
	_, err := r.next()
	require.Equal(t, io.EOF, err)
	require.Len(t, r.buffer, readAhead)

	largest := appendFrame(nil, frameRecord, make([]byte, maxRecord))
	f, err := newReader(0, bytes.NewReader(largest)).next()
	require.NoError(t, err)
	require.Len(t, f.record, maxRecord)
}

// TestFilesAreForTheirOwnerAlone: a journal tells which account asked when.
func TestFilesAreForTheirOwnerAlone(t *testing.T) {
	path := t.TempDir()
	d, err := OpenDir(path)
	require.NoError(t, err)
	j, _, _, _ := opened(t, d, &recorder{})
	require.NoError(t, j.Archive(1, &syncproto.Batch{Seq: 1, Of: 1}, 100, 100))
	require.NoError(t, j.Close())
	entries, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, entries, 3, "lock, segment and archive")
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), e.Name())
	}
}

// TestOtherFilesAreNotTakenForSegments: an operator's copy beside the journal.
func TestOtherFilesAreNotTakenForSegments(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "right", true))
	for _, name := range []string{"journal-9.log", "journal-0000000000000009.log.bak", "journal-old.log", "batches-old.log"} {
		_, err := d.Append(name)
		require.NoError(t, err)
		d.files[name].Write(appendFrame(nil, frameRecord, []byte("wrong")))
	}
	again, _, records, _ := opened(t, d, k)
	require.Equal(t, []string{"right"}, records)
	for range 3 {
		require.NoError(t, again.Rotate(snapshotOf("all")))
	}
	require.Len(t, d.files, 4+2, "none of them is removed")
}

// TestSegmentsRotateWhenTheyAreFull, or when a sync failed.
func TestSegmentsRotateWhenTheyAreFull(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	limit := j.size + 2*(frameHead+int64(len("record")))
	for n := range 2 {
		require.False(t, j.Full(limit), "%d records", n)
		require.NoError(t, put(j, k, "record", true))
	}
	require.True(t, j.Full(limit))
	require.NoError(t, j.Rotate(func(func([]byte)) {}))
	require.False(t, j.Full(limit))
	_, _, records, _ := opened(t, d, k)
	require.Empty(t, records)
}

// TestALargeSnapshotIsWrittenInParts, and read as one.
func TestALargeSnapshotIsWrittenInParts(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	const count = 3000
	require.NoError(t, j.Rotate(func(write func([]byte)) {
		record := make([]byte, 1000) // used again
		for n := range count {
			copy(record, fmt.Sprintf("%06d", n))
			write(record)
		}
	}))
	require.NoError(t, put(j, k, "after", true))
	require.Greater(t, d.writes, 3, "1 MiB at a time")
	require.Less(t, d.writes, 20)
	_, _, records, found := opened(t, d, k)
	require.Equal(t, count+1, found.Records)
	require.Equal(t, "002999", records[count-1][:6])
	require.Equal(t, "after", records[count])
}
