package journal

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

// TestAFailedReadIsNoTornTail: what follows would be cut off.
func TestAFailedReadIsNoTornTail(t *testing.T) {
	frame := appendFrame(nil, frameRecord, []byte("record"))
	half := newReader(0, io.MultiReader(bytes.NewReader(frame[:frameHead+2]), iotest.ErrReader(errFault1)))
	_, err := half.next()
	require.ErrorIs(t, err, errFault1)
	r := newReader(0, io.MultiReader(bytes.NewReader(append(frame, "no frame at all"...)), iotest.ErrReader(errFault1)))
	_, err = r.next()
	require.NoError(t, err)
	_, err = r.next()
	require.ErrorIs(t, err, errFault1)
}

// TestNoBatchIsLostToAReadThatFails while a file that failed to sync is copied, wherever that is.
func TestNoBatchIsLostToAReadThatFails(t *testing.T) {
	for at := 1; ; at++ {
		d, k := &faulty{disk: newDisk(), left: 1 << 30, times: 1}, &recorder{}
		j, _, _, _ := opened(t, d, k)
		require.NoError(t, j.Archive(1, batchOf(1), archiveDay, archiveDay))
		again, _, _, _ := opened(t, d, k)
		d.syncErr = errors.New("input/output error")
		require.ErrorIs(t, again.Archive(1, batchOf(2), archiveDay, archiveDay), d.syncErr)
		d.syncErr, d.left = nil, at
		err := again.Archive(1, batchOf(3), archiveDay, archiveDay)
		if d.failed == "" {
			require.NoError(t, err)
			require.Greater(t, at, 5)
			return
		}
		d.left = 1 << 30
		require.NoError(t, again.Archive(1, batchOf(4), archiveDay, archiveDay), d.failed)
		require.NoError(t, again.Close(), d.failed)
		last, _, _, _ := opened(t, d, k)
		for seq := uint64(1); seq <= 4; seq++ {
			require.NotNil(t, archivedBatch(t, last, 1, seq), "batch %d, %s", seq, d.failed)
		}
	}
}

// TestAnArchiveThatCannotBeReadIsAnError: an operator would else take it for whole.
func TestAnArchiveThatCannotBeReadIsAnError(t *testing.T) {
	d := newDisk()
	j, _, _, _ := opened(t, d, &recorder{})
	require.NoError(t, j.Archive(1, batchOf(1), archiveDay, archiveDay))
	d.openErr = errFault1
	_, err := j.CheckArchive()
	require.ErrorIs(t, err, errFault1)
	_, err = eachBatch(archiveFile(archiveDay), iotest.ErrReader(errFault1), func(uint64, *syncproto.Batch) {})
	require.ErrorIs(t, err, errFault1, "from the first byte on")
}

// counting is a disk that counts the files that are open for reading.
type counting struct {
	*disk
	open int
}

func (d *counting) Open(name string) (io.ReadCloser, error) {
	file, err := d.disk.Open(name)
	if err == nil {
		d.open++
	}
	return &counted{file, d}, err
}

type counted struct {
	io.ReadCloser
	of *counting
}

func (c *counted) Close() error {
	c.of.open--
	return c.ReadCloser.Close()
}

// TestFilesThatAreReadAreClosed: an edge runs for months, and may have so many open.
func TestFilesThatAreReadAreClosed(t *testing.T) {
	d := &counting{disk: newDisk()}
	j, _, _, _ := opened(t, d, &recorder{})
	for seq := uint64(1); seq <= 3; seq++ {
		require.NoError(t, j.Archive(1, batchOf(seq), archiveDay+int32(seq), archiveDay))
	}
	require.NoError(t, j.archive.sync())
	flip(d.disk, archiveName(archiveDay+2), 12)
	_, err := j.CheckArchive()
	require.NoError(t, err)
	require.NotNil(t, archivedBatch(t, j, 1, 1))
	require.NoError(t, j.Close())
	opened(t, d, &recorder{})
	require.Zero(t, d.open)
}
