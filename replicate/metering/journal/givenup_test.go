package journal

import (
	"bytes"
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
)

// halfSynced is a disk on which the next sync of the folder fails although the disk has stored it. A file that is removed
// then is there again after a power cut, until a sync of the folder succeeds.
type halfSynced struct {
	*disk
	fails   bool
	keeps   bool // files can't be cut
	removed map[string]*bytes.Buffer
	uncut   map[string]*bytes.Buffer // files that were cut, and not synced since, as they were before
}

func (d *halfSynced) Sync() error {
	d.disk.Sync()
	d.removed = nil
	if d.fails {
		d.fails, d.removed = false, map[string]*bytes.Buffer{}
		return errFault1
	}
	return nil
}

func (d *halfSynced) Remove(name string) error {
	if d.removed != nil && d.files[name] != nil {
		d.removed[name] = cmp.Or(d.uncut[name], d.files[name])
	}
	return d.disk.Remove(name)
}

func (d *halfSynced) Append(name string) (File, error) {
	file, err := d.disk.Append(name)
	return halfSyncedFile{file, d, name}, err
}

type halfSyncedFile struct {
	File
	d    *halfSynced
	name string
}

func (f halfSyncedFile) Truncate(size int64) error {
	if f.d.keeps {
		return errFault1
	}
	f.d.uncut = map[string]*bytes.Buffer{f.name: bytes.NewBuffer(bytes.Clone(f.d.files[f.name].Bytes()))}
	return f.File.Truncate(size)
}

func (f halfSyncedFile) Sync() error {
	delete(f.d.uncut, f.name)
	return f.File.Sync()
}

func (d *halfSynced) cutPower() {
	d.disk.cutPower()
	for name, file := range d.removed {
		d.files[name] = file
	}
}

// TestASegmentThatWasGivenUpHidesNothing that was written to the old one since, whether it is there again after a power cut
// or could not be removed.
func TestASegmentThatWasGivenUpHidesNothing(t *testing.T) {
	for _, stays := range []bool{false, true} {
		d, k := &halfSynced{disk: newDisk()}, &recorder{}
		j, _, _, _ := opened(t, d, k)
		require.NoError(t, put(j, k, "before", true))
		d.fails = true
		require.Error(t, j.Rotate(func(write func([]byte)) {
			if stays {
				d.keepsOld = errFault1
			}
			write([]byte("before"))
		}))
		require.NoError(t, put(j, k, "after", true))
		require.NoError(t, j.Sync())
		d.keepsOld = nil
		d.cutPower()
		_, _, records, _ := opened(t, d, k)
		require.Contains(t, records, "after")
	}
}

// TestNothingIsWrittenBesideASegmentThatCouldNotBeEmptied, until another one has begun.
func TestNothingIsWrittenBesideASegmentThatCouldNotBeEmptied(t *testing.T) {
	d, k := &halfSynced{disk: newDisk()}, &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "before", true))
	d.fails, d.keeps = true, true
	require.Error(t, j.Rotate(snapshotOf("before")))
	require.ErrorIs(t, put(j, k, "after", true), errFault1)
	d.keeps = false
	require.NoError(t, j.Rotate(snapshotOf("before")))
	require.NoError(t, put(j, k, "later", true))
	require.NoError(t, j.Sync())
	d.cutPower()
	_, _, records, _ := opened(t, d, k)
	require.Equal(t, []string{"before", "later"}, records)
}
