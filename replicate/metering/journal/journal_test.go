package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regedge/internal/testkit"
	"regedge/replicate/metering/syncproto"
)

// opened opens a disk's journal and returns what it replayed.
func opened(t *testing.T, d Dir, k *recorder) (j *Journal, ids, records []string, found Replayed) {
	t.Helper()
	j, found, err := open(d, k,
		func(r []byte) error { return collect(&ids, r) }, func(r []byte) error { return collect(&records, r) })
	require.NoError(t, err)
	return j, ids, records, found
}

// collect appends a record, but for those that say that some were lost.
func collect(to *[]string, record []byte) error {
	if len(record) > 0 {
		*to = append(*to, string(record))
	}
	return nil
}

func put(j *Journal, k *recorder, record string, droppable bool) error {
	k.Lock()
	j.Append([]byte(record), droppable)
	g := j.Group()
	k.Unlock()
	return j.Write(g)
}

func TestWhatWasAppendedIsReplayed(t *testing.T) {
	for name, dir := range map[string]func(t *testing.T) Dir{
		"memory": func(*testing.T) Dir { return newDisk() },
		"file system": func(t *testing.T) Dir {
			d, err := OpenDir(t.TempDir())
			require.NoError(t, err)
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, k := dir(t), &recorder{}
			j, _, records, _ := opened(t, d, k)
			require.Empty(t, records)
			for i := range 100 {
				require.NoError(t, put(j, k, fmt.Sprint("record ", i), true))
			}
			require.NoError(t, j.Sync())
			_, _, records, found := opened(t, d, k)
			require.Len(t, records, 100)
			require.Equal(t, "record 99", records[99])
			require.Zero(t, found.Torn)
		})
	}
}

func TestTornEndIsDropped(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "whole", true))
	require.NoError(t, put(j, k, "torn", true))
	file := d.files[segmentName(1)]
	whole := file.Len()
	for cut := 1; cut < frameHead+len("torn"); cut++ {
		kept := append([]byte(nil), file.Bytes()[:whole-cut]...)
		other := newDisk()
		_, err := other.Append(segmentName(1))
		require.NoError(t, err)
		other.files[segmentName(1)].Write(kept)
		again, _, records, found := opened(t, other, k)
		require.Equal(t, []string{"whole"}, records)
		end := kept[whole-frameHead-len("torn"):]
		require.EqualValues(t, len(bytes.TrimRight(end, "\x00")), found.Torn)
		require.NoError(t, put(again, k, "after", true))
		_, _, records, _ = opened(t, other, k)
		require.Equal(t, []string{"whole", "after"}, records)
	}
	t.Run("and so is a record that was damaged", func(t *testing.T) {
		file.Bytes()[whole-1] ^= 1
		_, _, records, _ := opened(t, d, k)
		require.Equal(t, []string{"whole"}, records)
	})
}

// TestWhatIsReplayedIsMadeDurable: clients may have seen what a killed process wrote and did not
// sync. Without a sync, a power cut after the restart would take it from under later records.
func TestWhatIsReplayedIsMadeDurable(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "written, not synced", true))
	d.syncs, d.dirSyncs = 0, 0
	_, _, records, _ := opened(t, d, k)
	require.Equal(t, []string{"written, not synced"}, records)
	require.NotZero(t, d.syncs)
	require.NotZero(t, d.dirSyncs, "the file may not be in the directory yet")

	d.syncErr = errors.New("the disk is gone")
	_, _, err := open(d, k, func([]byte) error { return nil }, func([]byte) error { return nil })
	require.ErrorIs(t, err, d.syncErr)
}

func TestRotate(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	for i := range 3 {
		require.NoError(t, put(j, k, fmt.Sprint("old ", i), true))
		require.NoError(t, j.Rotate(func(write func([]byte)) { write([]byte(fmt.Sprint("snapshot ", i))) }))
	}
	require.NoError(t, put(j, k, "new", true))

	t.Run("leaves the newest segment and the one before for ids", func(t *testing.T) {
		require.Len(t, d.files, 2)
		_, ids, records, _ := opened(t, d, k)
		require.Equal(t, []string{"snapshot 1", "old 2"}, ids)
		require.Equal(t, []string{"snapshot 2", "new"}, records)
	})
	t.Run("that was cut off leaves everything in the segment before", func(t *testing.T) {
		_, err := d.Append(segmentName(5))
		require.NoError(t, err)
		half := appendFrame(nil, frameSnapshot, []byte("half a snapshot"))
		segmentFile(5).place(half, 0)
		d.files[segmentName(5)].Write(half)
		_, _, records, _ := opened(t, d, k)
		require.Equal(t, []string{"snapshot 2", "new"}, records)
		require.Nil(t, d.files[segmentName(5)])
	})
	t.Run("that fails goes on in the old segment", func(t *testing.T) {
		j, _, _, _ := opened(t, d, k)
		d.full = 20
		require.Error(t, j.Rotate(func(write func([]byte)) { write(make([]byte, 100)) }))
		d.full = -1
		require.NoError(t, put(j, k, "newer", true))
		_, _, records, _ := opened(t, d, k)
		require.Equal(t, []string{"snapshot 2", "new", "newer"}, records)
	})
}

func TestFullDisk(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "before", true))
	k.Lock()
	j.Append([]byte("must stay"), false)
	k.Unlock()
	d.full = 10
	require.ErrorIs(t, put(j, k, "charge", true), errFull)
	require.Equal(t, []string{"charge"}, k.dropped)

	t.Run("that stays full drops nothing twice", func(t *testing.T) {
		require.ErrorIs(t, put(j, k, "another", true), errFull)
		require.Equal(t, []string{"charge", "another"}, k.dropped)
	})
	t.Run("and is emptied takes what must not be dropped", func(t *testing.T) {
		d.full = -1
		require.NoError(t, put(j, k, "after", true))
		_, _, records, found := opened(t, d, k)
		require.Equal(t, []string{"before", "must stay", "after"}, records)
		require.Zero(t, found.Torn)
	})
	t.Run("that can't be cleaned takes nothing more", func(t *testing.T) {
		d.full = 3
		d.truncErr = errors.New("input/output error")
		require.Error(t, put(j, k, "torn", true))
		d.full = -1
		require.ErrorContains(t, put(j, k, "late", true), "clean journal")
		d.truncErr = nil
		require.NoError(t, put(j, k, "clean", true))
	})
}

func TestFailedSyncNeedsNewSegment(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "written", true))
	d.syncErr = errors.New("input/output error")
	require.Error(t, j.Sync())
	d.syncErr = nil
	require.Error(t, put(j, k, "charge", true), "nothing is written after a failed sync")
	require.True(t, j.Full(DefaultSegment))
	require.NoError(t, j.Rotate(func(write func([]byte)) { write([]byte("all")) }))
	require.NoError(t, put(j, k, "charge", true))
	require.NoError(t, j.Sync())
	_, _, records, _ := opened(t, d, k)
	require.Equal(t, []string{"all", "charge"}, records)
}

// TestASnapshotThatCantBeSyncedReplacesNothing: were the new segment taken all the same, the next
// rotation would delete the last one that is whole.
func TestASnapshotThatCantBeSyncedReplacesNothing(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "written", true))
	require.NoError(t, j.Sync())
	d.syncErr = errors.New("input/output error")
	snapshot := func(write func([]byte)) { write([]byte("all")) }
	for range 3 {
		require.ErrorIs(t, j.Rotate(snapshot), d.syncErr)
		names, err := d.List()
		require.NoError(t, err)
		require.Len(t, names, 1)
	}
	d.syncErr = nil
	require.ErrorContains(t, put(j, k, "charge", true), "sync journal", "what follows a failed sync may be lost")
	_, _, records, _ := opened(t, d, k)
	require.Equal(t, []string{"written"}, records)
}

func TestMissingDirectoriesAreMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "above", "state")
	for range 2 { // missing, then present
		d, err := OpenDir(path)
		require.NoError(t, err)
		require.NoError(t, d.Close())
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.ModeDir|0o700, info.Mode())
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := OpenDir(filepath.Join(file, "state"))
	require.Error(t, err, "a file is in the way")
}

func TestDirectoryHasOneOwner(t *testing.T) {
	path := t.TempDir()
	first, err := OpenDir(path)
	require.NoError(t, err)
	_, err = OpenDir(path)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, os.Remove(filepath.Join(path, lockName)))
	_, err = OpenDir(path)
	require.ErrorIs(t, err, ErrInUse, "a lock file that is deleted lets nobody in")
	require.NoError(t, first.Close())
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	_, err = OpenDir(path)
	require.ErrorIs(t, err, ErrInUse, "on a file system that locks files only, the file alone is locked")
	require.NoError(t, lock.Close())
	second, err := OpenDir(path)
	require.NoError(t, err)
	require.NoError(t, second.Close())
	require.Empty(t, testkit.OpenFiles(t, path), "who was refused keeps nothing open")
}

func TestBatchesAreArchivedForAWeek(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	for day := int32(100); day < 110; day++ {
		require.NoError(t, j.Archive(1, &syncproto.Batch{Seq: uint64(day), Of: 1}, day, day))
	}
	require.Nil(t, archivedBatch(t, j, 1, 101), "older than a week")
	require.EqualValues(t, 102, archivedBatch(t, j, 1, 102).Seq)
	require.EqualValues(t, 109, archivedBatch(t, j, 1, 109).Seq)
	require.Nil(t, archivedBatch(t, j, 2, 109), "of another epoch")
	require.Nil(t, archivedBatch(t, j, 1, 110))

	t.Run("a torn one is not found, and the next can be", func(t *testing.T) {
		file := d.files[archiveName(109)]
		file.Truncate(file.Len() - 1)
		again, _, _, _ := opened(t, d, k)
		require.Nil(t, archivedBatch(t, again, 1, 109))
		require.NoError(t, again.Archive(1, &syncproto.Batch{Seq: 111, Of: 1}, 109, 109))
		require.EqualValues(t, 111, archivedBatch(t, again, 1, 111).Seq)
	})
}

func TestPartOfAFailedWriteIsNotReplayed(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	j.Append([]byte("first"), true)
	j.Append([]byte("second"), true)
	d.full = frameHead + len("first") + 3
	require.ErrorIs(t, j.Write(j.Group()), errFull)
	require.Equal(t, []string{"second", "first"}, k.dropped)
	syncs := d.syncs
	require.NoError(t, j.Sync())
	require.Equal(t, syncs+1, d.syncs, "the cut is made durable")
	_, _, records, _ := opened(t, d, k) // the process was killed
	require.Empty(t, records)
}

func TestBatchIsArchivedDespiteDiskErrors(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	keep := func(seq uint64) error { return j.Archive(1, &syncproto.Batch{Seq: seq, Of: 1}, 100, 100) }
	stored := func() (all []uint64) {
		eachBatch(archiveFile(100), bytes.NewReader(d.files[archiveName(100)].Bytes()), func(_ uint64, b *syncproto.Batch) { all = append(all, b.Seq) })
		return all
	}
	require.NoError(t, keep(1))
	d.full = 5
	require.ErrorIs(t, keep(2), errFull)
	require.EqualValues(t, 2, archivedBatch(t, j, 1, 2).Seq)
	d.full = -1
	d.truncErr = errors.New("input/output error")
	require.ErrorIs(t, keep(3), d.truncErr, "behind a part of a batch nothing is written")
	d.truncErr = nil
	require.NoError(t, j.archive.sync())
	require.Equal(t, []uint64{1, 2, 3}, stored())

	t.Run("and is written again after a sync that failed", func(t *testing.T) {
		require.NoError(t, keep(4))
		d.syncErr = errors.New("input/output error")
		require.ErrorIs(t, j.Rotate(func(func([]byte)) {}), d.syncErr, "the segment that sealed it stays")
		d.files[archiveName(100)].Truncate(len(d.files[archiveName(100)].Bytes()) - 1) // what was not synced may be lost
		d.syncErr = nil
		require.NoError(t, j.Rotate(func(func([]byte)) {}))
		require.Equal(t, []uint64{1, 2, 3, 4}, stored())
	})

	t.Run("and goes to the next day's file when the sync at the turn of the day failed", func(t *testing.T) {
		file := d.files[archiveName(100)]
		durable := file.Len()
		require.NoError(t, keep(5))
		d.syncErr = errors.New("input/output error")
		require.ErrorIs(t, j.Archive(1, &syncproto.Batch{Seq: 6, Of: 1}, 101, 101), d.syncErr)
		d.syncErr = nil
		require.NoError(t, j.Rotate(func(func([]byte)) {}))
		file.Truncate(durable) // the disk lost what it failed to sync, whatever later syncs returned
		again, _, _, _ := opened(t, d, k)
		for seq := uint64(1); seq <= 6; seq++ {
			require.NotNil(t, archivedBatch(t, again, 1, seq), "batch %d", seq)
		}
	})
}

// archiveFailedToSync is a journal that could not sync the file of a former process, in which it
// went on, and which has batch 1.
func archiveFailedToSync(t *testing.T) (d *disk, k *recorder, again *Journal, failed *bytes.Buffer) {
	t.Helper()
	d, k = newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, j.Archive(1, batchOf(1), 100, 100))
	again, _, _, _ = opened(t, d, k)
	failed = d.files[archiveName(100)]
	d.syncErr = errors.New("input/output error")
	require.ErrorIs(t, again.Archive(1, batchOf(2), 100, 100), d.syncErr)
	d.syncErr = nil
	return d, k, again, failed
}

// TestAnArchiveThatFailedToSyncIsCopied opens the file of a former process, whose end was not synced. A
// sync that failed once says nothing of what was written before, even if the next one succeeds.
func TestAnArchiveThatFailedToSyncIsCopied(t *testing.T) {
	d, k, again, failed := archiveFailedToSync(t)
	require.NoError(t, again.Archive(1, batchOf(3), 100, 100))
	require.NotSame(t, failed, d.files[archiveName(100)])
	require.NotContains(t, d.files, archiveName(100)+copySuffix)
	last, _, _, _ := opened(t, d, k)
	for seq := uint64(1); seq <= 3; seq++ {
		require.NotNil(t, archivedBatch(t, last, 1, seq), "batch %d", seq)
	}
}

// TestADayBeginsAfterASyncThatFailed: the file of the new day is not there yet to be copied, nor is one that
// was deleted, and that of the day before is still to be distrusted.
func TestADayBeginsAfterASyncThatFailed(t *testing.T) {
	d, k, again, failed := archiveFailedToSync(t)
	d.syncErr = errors.New("input/output error")
	require.ErrorIs(t, again.Archive(1, batchOf(3), 101, 100), d.syncErr)
	d.syncErr = nil
	require.NoError(t, again.Rotate(snapshotOf("all")))
	require.Same(t, failed, d.files[archiveName(100)])
	require.NoError(t, again.Archive(1, batchOf(4), 100, 100), "the clock was set back")
	require.NotSame(t, failed, d.files[archiveName(100)])

	third, _, _, _ := opened(t, d, k)
	d.syncErr = errors.New("input/output error")
	require.ErrorIs(t, third.Archive(1, batchOf(5), 100, 100), d.syncErr)
	d.syncErr = nil
	require.NoError(t, d.Remove(archiveName(100)))
	require.NoError(t, third.Archive(1, batchOf(6), 100, 100))
	require.NotNil(t, archivedBatch(t, third, 1, 5))
}

// TestAFileThatFailedToSyncIsCopiedWhenItsDayComesAgain, since a clock was set back.
func TestAFileThatFailedToSyncIsCopiedWhenItsDayComesAgain(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, j.Archive(1, batchOf(1), 100, 100))
	failed := d.files[archiveName(100)]
	d.syncErr = errors.New("input/output error")
	require.ErrorIs(t, j.Archive(1, batchOf(2), 200, 100), d.syncErr, "the day turns after a sync that fails")
	d.syncErr = nil
	require.NoError(t, j.Archive(1, batchOf(3), 200, 100))
	require.NoError(t, j.Archive(1, batchOf(4), 100, 100))
	require.NotSame(t, failed, d.files[archiveName(100)], "nothing in it becomes durable any more")

	kept := d.files[archiveName(100)]
	require.NoError(t, j.Rotate(snapshotOf("all")))
	d.syncErr = errors.New("input/output error")
	require.NoError(t, j.Archive(1, batchOf(5), 100, 100))
	require.ErrorIs(t, j.Rotate(snapshotOf("all")), d.syncErr)
	d.syncErr = nil
	require.NoError(t, j.Rotate(snapshotOf("all")))
	require.NoError(t, j.Archive(1, batchOf(6), 200, 100))
	require.NoError(t, j.Archive(1, batchOf(7), 100, 100))
	require.Same(t, kept, d.files[archiveName(100)], "it was cut behind what was durable, and synced since")
	again, _, _, _ := opened(t, d, k)
	for seq := uint64(1); seq <= 7; seq++ {
		require.NotNil(t, archivedBatch(t, again, 1, seq), "batch %d", seq)
	}
}

func FuzzReplay(f *testing.F) {
	d, k := newDisk(), &recorder{}
	j, _, err := open(d, k, func([]byte) error { return nil }, func([]byte) error { return nil })
	require.NoError(f, err)
	require.NoError(f, put(j, k, "record", true))
	f.Add(d.files[segmentName(1)].Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		d := newDisk()
		_, err := d.Append(segmentName(1))
		require.NoError(t, err)
		d.files[segmentName(1)].Write(content)
		k := &recorder{}
		j, _, before, found := opened(t, d, k)
		err = put(j, k, "more", false)
		if err != nil && len(found.Damaged) > 0 { // a new segment has to begin
			require.NoError(t, j.Rotate(func(write func([]byte)) {
				for _, record := range before {
					write([]byte(record))
				}
			}))
			err = put(j, k, "more", false)
		}
		require.NoError(t, err)
		_, _, after, found := opened(t, d, &recorder{})
		require.Equal(t, append(before, "more"), after)
		require.Zero(t, found.Torn)
	})
}

// archivedBatch reads a batch of the archive without an error.
func archivedBatch(t *testing.T, j *Journal, epoch, seq uint64) *syncproto.Batch {
	t.Helper()
	batch, err := j.Batch(epoch, seq)
	require.NoError(t, err)
	return batch
}

// TestRecordsOfASnapshotAreNotWrittenAgain has a write to the old segment fail, and then the
// rotation too, after the new segment was begun.
func TestRecordsOfASnapshotAreNotWrittenAgain(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, j.Rotate(func(write func([]byte)) { write([]byte("first")) }))
	d.full = 0
	require.Error(t, put(j, k, "sealed", false))
	d.keepsOld = errors.New("input/output error")
	require.Error(t, j.Rotate(func(write func([]byte)) {
		d.full = -1
		write([]byte("snapshot with sealed"))
	}))
	d.keepsOld = nil
	require.NoError(t, j.Sync())
	_, _, records, _ := opened(t, d, k)
	require.Equal(t, []string{"snapshot with sealed"}, records)
}

func TestUnreadableBatchIsAnError(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, j.Archive(1, &syncproto.Batch{Seq: 7, Of: 1}, 100, 100))
	require.NoError(t, j.Close())
	again, _, _, _ := opened(t, d, k)
	d.openErr = errors.New("too many open files")
	_, err := again.Batch(1, 7)
	require.ErrorIs(t, err, d.openErr)
	d.openErr = nil
	require.EqualValues(t, 7, archivedBatch(t, again, 1, 7).Seq)
	require.Nil(t, archivedBatch(t, again, 1, 8), "there is none")
}

// TestBarrierComesAfterTheWrites checks that every record is written or dropped when Barrier
// calls its function.
func TestBarrierComesAfterTheWrites(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	k.Lock()
	j.Append([]byte("a"), true)
	j.Append([]byte("b"), false)
	g := j.Group()
	k.Unlock()
	d.full = 0
	j.Barrier(func() {
		require.Equal(t, []string{"a"}, k.dropped)
		j.Append([]byte("c"), false)
	})
	require.Error(t, j.Write(g))
	d.full = -1
	require.NoError(t, j.Commit())
	_, _, records, _ := opened(t, d, k)
	require.Equal(t, []string{"b", "c"}, records)
}

// TestACommitSaysThatAnothersWriteFailed: a void that was dropped must not count as one that was written,
// whoever tried to write it.
func TestACommitSaysThatAnothersWriteFailed(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	k.Lock()
	j.Append([]byte("void"), true)
	g := j.Group()
	k.Unlock()
	d.full = 0
	j.Barrier(func() {})
	require.Equal(t, []string{"void"}, k.dropped)
	d.full = -1
	require.Error(t, j.CommitGroup(g))
	require.NoError(t, j.Commit())
}

// TestWritesDuringClose are written, or fail.
func TestWritesDuringClose(t *testing.T) {
	for range 30 {
		root := t.TempDir()
		d, err := OpenDir(root)
		require.NoError(t, err)
		k := &recorder{}
		j, _, _, _ := opened(t, d, k)
		var callers sync.WaitGroup
		var written [2][]string
		for caller := range written {
			callers.Go(func() {
				for n := 0; n < 1_000_000; n++ {
					record := fmt.Sprintf("%d of caller %d", n, caller)
					if err := put(j, k, record, true); err != nil {
						assert.ErrorIs(t, err, os.ErrClosed)
						return
					}
					written[caller] = append(written[caller], record)
				}
			})
		}
		require.Eventually(t, func() bool { return j.Full(10_000) }, 10*time.Second, time.Millisecond)
		require.NoError(t, j.Close())
		callers.Wait()
		d, err = OpenDir(root)
		require.NoError(t, err)
		again, _, records, found := opened(t, d, k)
		slices.Sort(records)
		require.Equal(t, slices.Sorted(slices.Values(slices.Concat(written[0], written[1]))), records)
		require.Zero(t, found.Torn)
		require.NoError(t, again.Close())
	}
}
