package journal

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestABatchThatADiskRefusedTwiceIsKept in memory until it is durable.
func TestABatchThatADiskRefusedTwiceIsKept(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, j.Archive(1, batchOf(1), 10, 10))
	require.NoError(t, j.Rotate(snapshotOf("all")))
	d.full = 0
	require.ErrorIs(t, j.Archive(1, batchOf(2), 10, 10), errFull)
	require.ErrorIs(t, j.Rotate(snapshotOf("all")), errFull)
	d.full = -1
	require.NoError(t, j.Rotate(snapshotOf("all")))
	d.cutPower()
	again, _, _, _ := opened(t, d, k)
	for seq := uint64(1); seq <= 2; seq++ {
		require.NotNil(t, archivedBatch(t, again, 1, seq), seq)
	}
}

// TestABatchThatIsNotThereIsLookedForOnce, until it is archived: a second look could take seconds, and charges wait for it.
func TestABatchThatIsNotThereIsLookedForOnce(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, j.Archive(1, batchOf(1), archiveDay, archiveDay))
	require.Nil(t, archivedBatch(t, j, 1, 2))
	d.openErr = errors.New("a second look")
	require.Nil(t, archivedBatch(t, j, 1, 2))
	d.openErr = nil
	require.NoError(t, j.Archive(1, batchOf(2), archiveDay, archiveDay))
	require.Equal(t, batchOf(2), archivedBatch(t, j, 1, 2))
}

// meanwhile calls a function once while a file is opened for reading.
type meanwhile struct {
	*disk
	do func()
}

func (d *meanwhile) Open(name string) (io.ReadCloser, error) {
	if do := d.do; do != nil {
		d.do = nil
		defer do()
	}
	return d.disk.Open(name)
}

// TestABatchThatIsArchivedDuringASearchIsFoundByTheNext: to the writer it would be lost.
func TestABatchThatIsArchivedDuringASearchIsFoundByTheNext(t *testing.T) {
	d := &meanwhile{disk: newDisk()}
	j, _, _, _ := opened(t, d, &recorder{})
	require.NoError(t, j.Archive(1, batchOf(1), archiveDay, archiveDay))
	d.do = func() { require.NoError(t, j.Archive(1, batchOf(2), archiveDay, archiveDay)) }
	_, err := j.Batch(1, 2)
	require.NoError(t, err)
	require.Equal(t, batchOf(2), archivedBatch(t, j, 1, 2))
}

// TestABatchUnderADayLongPastIsKept for a week of reports: it was replayed with a
// clock that was a month behind.
func TestABatchUnderADayLongPastIsKept(t *testing.T) {
	for after, kept := range map[int32]bool{1: true, archiveDays: true, archiveDays + 1: false} {
		d, k := newDisk(), &recorder{}
		j, _, _, _ := opened(t, d, k)
		require.NoError(t, j.ArchiveReplayed(1, batchOf(1), archiveDay-31))
		for n := range after {
			require.NoError(t, j.Archive(1, batchOf(uint64(n)+2), archiveDay+n, archiveDay+n))
		}
		require.NoError(t, j.Close())
		again, _, _, _ := opened(t, d, k)
		require.Equal(t, kept, archivedBatch(t, again, 1, 1) != nil, "after %d days", after)
	}
}

// TestAWeekEndsByTheEarlierClock, which is a day behind the later one.
func TestAWeekEndsByTheEarlierClock(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	for n := range int32(archiveDays + 3) {
		require.NoError(t, j.Archive(1, batchOf(uint64(n)+1), archiveDay+n, archiveDay+n-1))
		require.Equal(t, n <= archiveDays+1, archivedBatch(t, j, 1, 1) != nil, "after %d days", n)
		require.NoError(t, j.Close())
		j, _, _, _ = opened(t, d, k)
	}
}

// TestOldBatchesThatADiskKeptGoLater, on the same day.
func TestOldBatchesThatADiskKeptGoLater(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	const last = archiveDay + archiveDays + 1
	for day := int32(archiveDay); day < last; day++ {
		require.NoError(t, j.Archive(1, batchOf(uint64(day)), day, day))
	}
	d.keepsOld = errors.New("input/output error")
	require.ErrorIs(t, j.Archive(1, batchOf(last), last, last), d.keepsOld)
	d.keepsOld = nil
	require.NoError(t, j.Archive(1, batchOf(last+1), last, last))
	require.Nil(t, archivedBatch(t, j, 1, archiveDay))
}

// TestAnArchiveGoesOnBehindItsLastBatch: what another process wrote that day stays.
func TestAnArchiveGoesOnBehindItsLastBatch(t *testing.T) {
	d, k := newDisk(), &recorder{}
	for seq := uint64(1); seq <= 3; seq++ {
		j, _, _, _ := opened(t, d, k)
		require.NoError(t, j.Archive(1, batchOf(seq), 10, 10))
		require.NoError(t, j.Close())
	}
	j, _, _, _ := opened(t, d, k)
	for seq := uint64(1); seq <= 3; seq++ {
		require.NotNil(t, archivedBatch(t, j, 1, seq), seq)
	}
}

// TestRecordsOfEveryLengthAreToldFromNotes of what is durable, which have eight bytes.
func TestRecordsOfEveryLengthAreToldFromNotes(t *testing.T) {
	for _, record := range []string{"1234567", "12345678", "123456789"} {
		d, k := newDisk(), &recorder{}
		j, _, _, _ := opened(t, d, k)
		require.NoError(t, put(j, k, "first "+record, true))
		require.NoError(t, put(j, k, record, true))
		require.NoError(t, j.Sync())
		require.NoError(t, put(j, k, "not durable", true))
		for _, c := range []struct {
			of   string
			lost bool
		}{{"first " + record, true}, {"not durable", false}} {
			at := where(d, segmentName(1), c.of)
			flip(d, segmentName(1), at)
			_, found, err := open(d, k, func([]byte) error { return nil }, func([]byte) error { return nil })
			require.NoError(t, err)
			require.Equal(t, c.lost, found.Lost, "%s of records such as %s", c.of, record)
			flip(d, segmentName(1), at)
			if !c.lost {
				require.NotZero(t, found.Torn)
			}
		}
	}
}
