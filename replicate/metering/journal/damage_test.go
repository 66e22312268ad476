package journal

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

// synced writes records, each made durable before the next.
func synced(t *testing.T, j *Journal, k *recorder, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		require.NoError(t, put(j, k, fmt.Sprint("charge ", i), true))
		require.NoError(t, j.Sync())
	}
}

func charges(from, to int) (list []string) {
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprint("charge ", i))
	}
	return list
}

func flip(d *disk, name string, at int) { d.files[name].Bytes()[at] ^= 0x10 }

// where returns the offset of a record in a segment.
func where(d *disk, name, record string) int { return strings.Index(d.files[name].String(), record) }

// TestADamagedRecordIsNotATornTail flips one bit at a time in durable records and in their heads: the
// records behind are still used, the segment is set aside, and nothing is written until a new one has
// begun.
func TestADamagedRecordIsNotATornTail(t *testing.T) {
	k := &recorder{}
	for at := -frameHead; at < len("charge 5"); at++ {
		d := newDisk()
		j, _, _, _ := opened(t, d, k)
		synced(t, j, k, 0, 40)
		name := segmentName(1)
		flip(d, name, where(d, name, "charge 5")+at)
		again, _, records, found := opened(t, d, k)
		require.Equal(t, append(charges(0, 5), charges(6, 40)...), records, "at %d", at)
		require.True(t, found.Lost)
		require.True(t, found.IDsLost, "its request id too")
		require.Equal(t, []string{name}, found.Damaged)
		require.Zero(t, found.Torn)
		require.ErrorIs(t, put(again, k, "charge", true), errDamaged)
		require.True(t, again.Full(DefaultSegment))

		require.NoError(t, again.Rotate(func(write func([]byte)) { write([]byte("what could be read")) }))
		require.NoError(t, put(again, k, "after", true))
		corrupt, err := again.Corrupt()
		require.NoError(t, err)
		require.Equal(t, []string{name + corruptSuffix}, corrupt)
		_, ids, records, found := opened(t, d, k)
		require.Equal(t, []string{"what could be read", "after"}, records)
		require.Len(t, ids, 39, "it is still read for request ids")
		require.True(t, found.IDsLost)
		require.False(t, found.Lost)
		require.Empty(t, found.Damaged, "it is reported once")
	}
}

// TestDamageOfTheLastRecordIsSeenAfterAnOrderlyEnd, which made it durable: no power cut took it.
func TestDamageOfTheLastRecordIsSeenAfterAnOrderlyEnd(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	synced(t, j, k, 0, 3)
	require.NoError(t, put(j, k, "the last", true))
	require.NoError(t, j.Close())
	name := segmentName(1)
	flip(d, name, where(d, name, "the last"))
	_, _, records, found := opened(t, d, k)
	require.Equal(t, charges(0, 3), records)
	require.Equal(t, []string{name}, found.Damaged)
	require.True(t, found.Lost)
	require.Zero(t, found.Torn)
}

// TestWhatWasNotDurableMayBeTorn flips a bit behind what was last synced, where a power cut may have left
// a hole: it is the end, whatever follows.
func TestWhatWasNotDurableMayBeTorn(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	synced(t, j, k, 0, 10)
	for i := 10; i < 20; i++ {
		require.NoError(t, put(j, k, fmt.Sprint("charge ", i), true))
	}
	name := segmentName(1)
	flip(d, name, where(d, name, "charge 12"))
	_, _, records, found := opened(t, d, k)
	require.Equal(t, charges(0, 12), records)
	require.Empty(t, found.Damaged)
	require.Positive(t, found.Torn)
}

// TestWhatWasWrittenDuringASyncMayBeTorn: the mark that follows says how far the sync went.
func TestWhatWasWrittenDuringASyncMayBeTorn(t *testing.T) {
	s := surveyor{survey: survey{begin: -1}}
	s.add(&frame{at: 0, kind: frameEnd})
	s.add(&frame{at: 8, kind: frameRecord, record: make([]byte, 10)})
	s.add(&frame{at: 56, gap: 30, kind: frameSynced, record: positionRecord(26)})
	found := s.finish(72, 72)
	require.EqualValues(t, 26, found.synced)
	require.EqualValues(t, 26, found.end)
	require.False(t, found.damaged())
}

// TestASyncMarksNothingThatWasWrittenMeanwhile: a power cut may have taken that, and it is no damage then.
func TestASyncMarksNothingThatWasWrittenMeanwhile(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "charge 0", true))
	d.syncing = func() {
		d.syncing = nil
		require.NoError(t, put(j, k, "charge 1", true))
	}
	require.NoError(t, j.Sync())
	require.NoError(t, put(j, k, "charge 2", true))
	name := segmentName(1)
	flip(d, name, where(d, name, "charge 1"))
	_, _, records, found := opened(t, d, k)
	require.Equal(t, charges(0, 1), records)
	require.Empty(t, found.Damaged)
	require.Positive(t, found.Torn)
}

// TestASegmentIsCompleteOnceItWasClosed, unless the journal went on in it, since no other could begin.
func TestASegmentIsCompleteOnceItWasClosed(t *testing.T) {
	for written, complete := range map[int64]bool{16: true, 17: false} {
		s := surveyor{survey: survey{begin: -1}}
		s.add(&frame{at: 0, kind: frameEnd})
		s.add(&frame{at: 8, kind: frameClosed})
		require.Equal(t, complete, s.finish(16, written).complete(), "%d bytes", written)
	}
}

// TestADamagedSnapshotIsRebuilt flips each bit of a snapshot: the segment before, whose end says that it
// is complete, has the same.
func TestADamagedSnapshotIsRebuilt(t *testing.T) {
	k := &recorder{}
	make := func() (*disk, string, int) {
		d := newDisk()
		j, _, _, _ := opened(t, d, k)
		synced(t, j, k, 0, 5)
		require.NoError(t, j.Rotate(func(write func([]byte)) { write([]byte("first half")); write([]byte("second half")) }))
		size := d.files[segmentName(2)].Len()
		synced(t, j, k, 5, 8)
		return d, segmentName(2), size
	}
	_, _, size := make()
	for at := range size {
		d, name, _ := make()
		flip(d, name, at)
		again, _, records, found := opened(t, d, k)
		require.Equal(t, charges(0, 8), records, "at %d", at)
		require.False(t, found.Lost)
		require.Equal(t, []string{name}, found.Damaged)
		require.NoError(t, again.Rotate(func(write func([]byte)) { write([]byte("all")) }))
		require.Contains(t, d.files, name+corruptSuffix)
		require.Contains(t, d.files, segmentName(3))
	}
	t.Run("not from one that is damaged too", func(t *testing.T) {
		d, name, _ := make()
		flip(d, name, frameHead)
		flip(d, segmentName(1), where(d, segmentName(1), "charge 2"))
		_, _, records, found := opened(t, d, k)
		require.Equal(t, append(charges(0, 2), charges(3, 8)...), records)
		require.True(t, found.Lost)
		require.Equal(t, []string{segmentName(1), name}, found.Damaged)
	})
	t.Run("not from one that may lack its end", func(t *testing.T) {
		d, name, _ := make()
		flip(d, name, frameHead)
		before := d.files[segmentName(1)]
		before.Truncate(before.Len() - frameHead)
		var records []string
		_, found, err := open(d, k, func([]byte) error { return nil }, func(r []byte) error { records = append(records, string(r)); return nil })
		require.NoError(t, err)
		require.Equal(t, slices.Insert(charges(0, 8), 5, ""), records, "it is said where some may be missing")
		require.True(t, found.Lost)
	})
	t.Run("nor if there is none before", func(t *testing.T) {
		d, name, _ := make()
		flip(d, name, frameHead)
		require.NoError(t, d.Remove(segmentName(1)))
		_, _, records, found := opened(t, d, k)
		require.Equal(t, append([]string{"second half"}, charges(5, 8)...), records)
		require.True(t, found.Lost)
	})
}

// TestADamagedSegmentOfIDsIsSetAside leaves the newest segment in use.
func TestADamagedSegmentOfIDsIsSetAside(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	synced(t, j, k, 0, 5)
	require.NoError(t, j.Rotate(func(write func([]byte)) { write([]byte("all")) }))
	flip(d, segmentName(1), where(d, segmentName(1), "charge 2"))
	again, ids, records, found := opened(t, d, k)
	require.Equal(t, []string{"charge 0", "charge 1", "charge 3", "charge 4"}, ids)
	require.Equal(t, []string{"all"}, records)
	require.Equal(t, []string{segmentName(1)}, found.Damaged)
	require.True(t, found.IDsLost)
	require.False(t, found.Lost)
	require.Contains(t, d.files, segmentName(1)+corruptSuffix)
	require.NoError(t, put(again, k, "after", true))
	require.NoError(t, again.Rotate(func(write func([]byte)) { write([]byte("all")) }))
	require.Contains(t, d.files, segmentName(1)+corruptSuffix, "no rotation deletes it")
}

// TestWhatIsNoSegmentIsSetAside has a file that holds no frame, such as of another format.
func TestWhatIsNoSegmentIsSetAside(t *testing.T) {
	d, k := newDisk(), &recorder{}
	_, err := d.Append(segmentName(4))
	require.NoError(t, err)
	d.files[segmentName(4)].WriteString("a journal of another program")
	_, _, records, found := opened(t, d, k)
	require.Empty(t, records)
	require.True(t, found.Lost)
	require.Equal(t, []string{segmentName(4)}, found.Damaged)
	require.ElementsMatch(t, []string{segmentName(4) + corruptSuffix, segmentName(5)}, slices.Collect(maps.Keys(d.files)))

	d = newDisk() // both segments
	for _, name := range []string{segmentName(3), segmentName(4)} {
		_, err := d.Append(name)
		require.NoError(t, err)
		d.files[name].WriteString("a journal of another program")
	}
	opened(t, d, k)
	require.ElementsMatch(t, []string{segmentName(3) + corruptSuffix, segmentName(4) + corruptSuffix, segmentName(5)}, slices.Collect(maps.Keys(d.files)))
}

// TestAFrameIsBoundToItsPlace copies whole frames to another offset and to another segment.
func TestAFrameIsBoundToItsPlace(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	synced(t, j, k, 0, 9)
	name := segmentName(1)
	content := d.files[name].Bytes()
	size := frameHead + len("charge 0")
	third, fifth := where(d, name, "charge 3")-frameHead, where(d, name, "charge 5")-frameHead
	copy(content[fifth:fifth+size], content[third:third+size])
	_, _, records, found := opened(t, d, k)
	require.Equal(t, append(charges(0, 5), charges(6, 9)...), records)
	require.True(t, found.Lost)

	other := newDisk()
	_, err := other.Append(segmentName(2))
	require.NoError(t, err)
	other.files[segmentName(2)].Write(content)
	_, _, records, _ = opened(t, other, k)
	require.Empty(t, records)
}

// TestRecordsThatFailedToBeWrittenAreBoundToWhereTheyGo has a record that stays be written to another
// segment than it was first meant for.
func TestRecordsThatFailedToBeWrittenAreBoundToWhereTheyGo(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	k.Lock()
	j.Append([]byte("stays"), false)
	k.Unlock()
	d.full = 3
	require.Error(t, put(j, k, "charge", true))
	d.full = -1
	synced(t, j, k, 0, 1)
	_, _, records, found := opened(t, d, k)
	require.Equal(t, []string{"stays", "charge 0"}, records)
	require.Empty(t, found.Damaged)
}

func batchOf(seq uint64) *syncproto.Batch { return &syncproto.Batch{Seq: seq, Of: 1} }

// TestDamageInTheArchiveLosesOneBatch flips a bit in the second of three batches.
func TestDamageInTheArchiveLosesOneBatch(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	for seq := uint64(1); seq <= 3; seq++ {
		require.NoError(t, j.Archive(1, batchOf(seq), archiveDay, archiveDay))
	}
	require.NoError(t, j.Close())
	flip(d, archiveName(archiveDay), len(archived(1, batchOf(1)))+frameHead+1)
	again, _, _, _ := opened(t, d, k)
	require.NoError(t, again.Archive(1, batchOf(4), archiveDay, archiveDay))
	for seq, there := range map[uint64]bool{1: true, 2: false, 3: true, 4: true} {
		require.Equal(t, there, archivedBatch(t, again, 1, seq) != nil, "batch %d", seq)
	}
}

// TestDamageInTheArchiveIsTold flips a bit in each byte of a batch that was durable: while the day's file is
// in use, after a restart, and once another day has begun.
func TestDamageInTheArchiveIsTold(t *testing.T) {
	name := archiveName(archiveDay)
	first, both := len(archived(1, batchOf(1))), len(archived(1, batchOf(1), batchOf(2)))
	for when, then := range map[string]func(*testing.T, *disk, *Journal) *Journal{
		"in use": func(t *testing.T, d *disk, j *Journal) *Journal { return j },
		"restarted": func(t *testing.T, d *disk, j *Journal) *Journal {
			require.NoError(t, j.Close())
			again, _, _, _ := opened(t, d, &recorder{})
			return again
		},
		"another day": func(t *testing.T, d *disk, j *Journal) *Journal {
			require.NoError(t, j.Archive(1, batchOf(9), archiveDay+1, archiveDay+1))
			return j
		},
	} {
		t.Run(when, func(t *testing.T) {
			for at := first; at < both; at++ {
				d := newDisk()
				j, _, _, _ := opened(t, d, &recorder{})
				require.NoError(t, j.Archive(1, batchOf(1), archiveDay, archiveDay))
				require.NoError(t, j.Archive(1, batchOf(2), archiveDay, archiveDay))
				require.NoError(t, j.archive.sync())
				require.NoError(t, j.Archive(1, batchOf(3), archiveDay, archiveDay))
				j = then(t, d, j)
				damaged, err := j.CheckArchive()
				require.NoError(t, err)
				require.Empty(t, damaged, "nothing is damaged yet")
				flip(d, name, at)
				was := d.files[name].String()

				damaged, err = j.CheckArchive()
				require.NoError(t, err)
				require.Equal(t, []string{name}, damaged, "at %d", at)
				corrupt, err := j.Corrupt()
				require.NoError(t, err)
				require.Equal(t, []string{name + corruptSuffix}, corrupt)
				require.Equal(t, was, d.files[name+corruptSuffix].String())
				damaged, err = j.CheckArchive()
				require.NoError(t, err)
				require.Empty(t, damaged, "it is told once")
				require.NoError(t, j.Archive(1, batchOf(4), archiveDay, archiveDay))
				require.NoError(t, j.Close())
				again, _, _, _ := opened(t, d, &recorder{})
				for seq, there := range map[uint64]bool{1: true, 2: false, 3: true, 4: true} {
					require.Equal(t, there, archivedBatch(t, again, 1, seq) != nil, "batch %d, at %d", seq, at)
				}
			}
		})
	}
}

// TestDamageInAMendedArchiveIsTold: its file says anew how far it was durable. What was set aside before stays.
func TestDamageInAMendedArchiveIsTold(t *testing.T) {
	name, d := archiveName(archiveDay), newDisk()
	j, _, _, _ := opened(t, d, &recorder{})
	for seq := uint64(1); seq <= 3; seq++ {
		require.NoError(t, j.Archive(1, batchOf(seq), archiveDay, archiveDay))
		if seq == 2 {
			require.NoError(t, j.archive.sync())
		}
	}
	aside := map[string]string{}
	for i, at := range []int{len(archived(1, batchOf(1))), 0} { // the second batch, then the first
		flip(d, name, at+frameHead+1)
		aside[name+[]string{".corrupt", ".2.corrupt"}[i]] = d.files[name].String()
		damaged, err := j.CheckArchive()
		require.NoError(t, err)
		require.Equal(t, []string{name}, damaged)
	}
	names, err := j.Corrupt()
	require.NoError(t, err)
	require.Len(t, names, len(aside))
	for name, was := range aside {
		require.Equal(t, was, d.files[name].String(), name)
	}
	require.Nil(t, archivedBatch(t, j, 1, 1))
	require.Nil(t, archivedBatch(t, j, 1, 2))
	require.NotNil(t, archivedBatch(t, j, 1, 3))
}

// TestADamagedFileIsSetAsideDurably, with what can be read of it: the power may be cut next.
func TestADamagedFileIsSetAsideDurably(t *testing.T) {
	name, d := archiveName(archiveDay), newDisk()
	j, _, _, _ := opened(t, d, &recorder{})
	for seq := uint64(1); seq <= 2; seq++ {
		require.NoError(t, j.Archive(1, batchOf(seq), archiveDay, archiveDay))
	}
	require.NoError(t, j.Close())
	flip(d, name, frameHead+1) // in the first batch
	was := d.files[name].String()
	j, _, _, _ = opened(t, d, &recorder{})
	damaged, err := j.CheckArchive()
	require.NoError(t, err)
	require.Equal(t, []string{name}, damaged)
	d.cutPower()
	require.Contains(t, d.files, name+corruptSuffix)
	require.Equal(t, was, d.files[name+corruptSuffix].String())
	again, _, _, _ := opened(t, d, &recorder{})
	require.NotNil(t, archivedBatch(t, again, 1, 2))
}

// TestADamagedFileOnAFullDiskLeavesNoCopy: each check would make another one.
func TestADamagedFileOnAFullDiskLeavesNoCopy(t *testing.T) {
	name, d := archiveName(archiveDay), newDisk()
	j, _, _, _ := opened(t, d, &recorder{})
	for seq := uint64(1); seq <= 2; seq++ {
		require.NoError(t, j.Archive(1, batchOf(seq), archiveDay, archiveDay))
	}
	require.NoError(t, j.Close())
	flip(d, name, frameHead+1)
	j, _, _, _ = opened(t, d, &recorder{})
	for _, d.full = range []int{10, d.files[name].Len() + 10} { // enough for a part of the copy, and for nothing else
		_, err := j.CheckArchive()
		require.Error(t, err)
		require.NotContains(t, d.files, name+corruptSuffix)
	}
	d.full = -1
	damaged, err := j.CheckArchive()
	require.NoError(t, err)
	require.Equal(t, []string{name}, damaged)
}

// TestWhatWasNotDurableInTheArchiveMayBeTorn: a power cut may leave holes behind the last sync.
func TestWhatWasNotDurableInTheArchiveMayBeTorn(t *testing.T) {
	d := newDisk()
	j, _, _, _ := opened(t, d, &recorder{})
	for seq := uint64(1); seq <= 3; seq++ {
		require.NoError(t, j.Archive(1, batchOf(seq), archiveDay, archiveDay))
	}
	flip(d, archiveName(archiveDay), len(archived(1, batchOf(1)))+frameHead+1)
	damaged, err := j.CheckArchive()
	require.NoError(t, err)
	require.Empty(t, damaged)
	require.NotContains(t, d.files, archiveName(archiveDay)+corruptSuffix)
}

// TestBatchesThatGoToAnotherDaySayNothingOfIt: after a failed sync they are written to the next file, with
// no word of how far the one before was durable.
func TestBatchesThatGoToAnotherDaySayNothingOfIt(t *testing.T) {
	d := &faulty{disk: newDisk(), left: 1 << 30}
	j, _, _, _ := opened(t, d, &recorder{})
	require.NoError(t, j.Archive(1, batchOf(1), archiveDay, archiveDay))
	require.NoError(t, j.archive.sync())
	require.NoError(t, j.Archive(1, batchOf(2), archiveDay, archiveDay))
	require.NotEqual(t, len(appendFrame(nil, frameRecord, batchRecord(1, batchOf(2)))), len(j.archive.unsaved), "with a mark")
	d.left, d.times = 1, 1
	require.NoError(t, j.Archive(1, batchOf(3), archiveDay+1, archiveDay+1))
	require.Equal(t, "sync "+archiveName(archiveDay), d.failed)
	r := newReader(archiveFile(archiveDay+1), bytes.NewReader(d.files[archiveName(archiveDay+1)].Bytes()))
	for range 2 {
		f, err := r.next()
		require.NoError(t, err)
		require.Equal(t, frameRecord, f.kind)
	}
	_, err := r.next()
	require.ErrorIs(t, err, io.EOF)
}

// TestDamageIsFoundInASegmentThatIsSmallerThanTheOneBefore: it says itself how far it is durable.
func TestDamageIsFoundInASegmentThatIsSmallerThanTheOneBefore(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	synced(t, j, k, 0, 50)
	require.NoError(t, j.Rotate(snapshotOf("all")))
	synced(t, j, k, 50, 60)
	name := segmentName(2)
	flip(d, name, where(d, name, "charge 52"))
	_, _, records, found := opened(t, d, k)
	require.Equal(t, []string{name}, found.Damaged)
	require.True(t, found.Lost)
	require.Equal(t, slices.Concat([]string{"all"}, charges(50, 52), charges(53, 60)), records)
}
