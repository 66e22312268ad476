package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
)

// faulty is a disk of which one operation fails, or some one after another.
type faulty struct {
	*disk
	left   int // operations until then
	times  int // how many fail
	failed string
	size   int  // of the write that failed
	found  bool // a batch was found all the same
	open   int  // files
}

var errFault1 = errors.New("input/output error")

func (d *faulty) fail(format string, args ...any) error {
	if d.left--; d.left > 0 || d.left <= -d.times {
		return nil
	}
	if d.failed == "" {
		d.failed = fmt.Sprintf(format, args...)
	}
	return errFault1
}

func (d *faulty) List() ([]string, error) {
	if err := d.fail("list"); err != nil {
		return nil, err
	}
	return d.disk.List()
}

func (d *faulty) Open(name string) (io.ReadCloser, error) {
	if err := d.fail("open %s", name); err != nil {
		return nil, err
	}
	from, err := d.disk.Open(name)
	if err == nil {
		d.open++
	}
	return &faultyReader{from, d, name}, err
}

type faultyReader struct {
	io.ReadCloser
	d    *faulty
	name string
}

func (r *faultyReader) Read(p []byte) (int, error) {
	if err := r.d.fail("read %s", r.name); err != nil {
		return 0, err
	}
	return r.ReadCloser.Read(p)
}

func (r *faultyReader) Close() error {
	r.d.open--
	return r.ReadCloser.Close()
}

func (d *faulty) Append(name string) (File, error) {
	if err := d.fail("append %s", name); err != nil {
		return nil, err
	}
	d.open++
	file, err := d.disk.Append(name)
	return &faultyFile{file, d, name}, err
}

func (d *faulty) Remove(name string) error {
	return errors.Join(d.fail("remove %s", name), d.disk.Remove(name))
}

func (d *faulty) Rename(from, to string) error {
	if err := d.fail("rename %s", from); err != nil {
		return err
	}
	return d.disk.Rename(from, to)
}

func (d *faulty) Sync() error {
	if err := d.fail("sync the directory"); err != nil {
		return err
	}
	return d.disk.Sync()
}

func (d *faulty) Close() error { return errors.Join(d.fail("close the directory"), d.disk.Close()) }

type faultyFile struct {
	File
	d    *faulty
	name string
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.d.fail("write %s", f.name); err != nil {
		f.d.size = len(p)
		return 0, err
	}
	return f.File.Write(p)
}

func (f *faultyFile) Sync() error {
	if err := f.d.fail("sync %s", f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.d.fail("truncate %s", f.name); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Size() (int64, error) {
	if err := f.d.fail("size %s", f.name); err != nil {
		return 0, err
	}
	return f.File.Size()
}

func (f *faultyFile) Close() error {
	f.d.open--
	return errors.Join(f.d.fail("close %s", f.name), f.File.Close())
}

// life uses a journal from opening to closing, and returns the errors that it was told.
func life(d Dir) (archived []uint64, told error) {
	k := &recorder{}
	nothing := func([]byte) error { return nil }
	j, _, err := open(d, k, nothing, nothing)
	if err != nil {
		return nil, err
	}
	note := func(err error) { told = errors.Join(told, err) }
	archive := func(seq uint64, day int32) {
		err := j.Archive(1, &syncproto.Batch{Seq: seq, Of: 1}, day, day)
		if note(err); err == nil {
			archived = append(archived, seq)
		}
	}
	snapshot := func(write func([]byte)) { write([]byte("all")) }
	note(put(j, k, "first", true))
	note(j.Sync())
	archive(1, 10)
	archive(2, 11)
	note(put(j, k, "second", false))
	note(j.Commit())
	note(j.Rotate(snapshot))
	note(put(j, k, "third", true))
	archive(3, 12)
	f, _ := d.(*faulty)
	before := f != nil && f.failed == ""
	if b, err := j.Batch(1, 2); b == nil {
		note(err)
	} else if before && f.failed != "" {
		f.found = true // without what failed
	}
	note(j.Rotate(snapshot))
	_, err = j.Corrupt()
	note(err)
	note(put(j, k, "fourth", true))
	note(j.Close())
	return archived, told
}

// TestNoFailureOfTheDiskIsIgnored lets each operation fail in turn, of a journal that is begun, continued,
// found damaged, or found with a torn end. Somebody is told; only notes that the segment makes of
// itself may be missing, and the archive may try again. Every file is closed, since an edge tries again for as
// long as its disk fails.
func TestNoFailureOfTheDiskIsIgnored(t *testing.T) {
	name := segmentName(3)
	for state, prepare := range map[string]func(d *disk){
		"new":       func(d *disk) {},
		"continued": func(d *disk) { life(d) },
		"damaged": func(d *disk) {
			life(d)
			flip(d, name, where(d, name, "fourth"))
		},
		"torn": func(d *disk) {
			life(d)
			d.files[name].WriteString("torn")
			d.files[archiveName(12)].WriteString("torn")
		},
		"no segment": func(d *disk) {
			d.Append(name)
			d.files[name].WriteString(strings.Repeat("something else", 20))
		},
	} {
		t.Run(state, func(t *testing.T) {
			for n := 1; ; n++ {
				d := &faulty{disk: newDisk(), left: n, times: 1 + n%2}
				prepare(d.disk)
				archived, told := life(d)
				require.Zero(t, d.open, "files that stay open after: %s", d.failed)
				if d.failed == "" {
					require.Greater(t, n, 30)
					return
				}
				ofItself := d.size > 0 && d.size <= frameHead+8
				ofArchive := strings.Contains(d.failed, archivePrefix)
				d.times = 0
				again, _, records, _ := opened(t, d, &recorder{})
				switch {
				case strings.HasPrefix(d.failed, "sync "+segmentPrefix) && !errors.Is(told, errFault1):
					// Of a segment that ends: the snapshot of the next one has its records.
					require.Equal(t, []string{"all", "fourth"}, records, "%d: %s", n, d.failed)
				case !ofItself && !ofArchive && !d.found:
					require.ErrorIs(t, told, errFault1, "%d: %s", n, d.failed)
				}
				for _, seq := range archived {
					b, err := again.Batch(1, seq)
					require.NoError(t, err)
					require.NotNil(t, b, "batch %d, after: %s", seq, d.failed)
				}
			}
		})
	}
}

// TestAJournalIsOpenedLater: until then nothing is written, and what was appended is forgotten.
func TestAJournalIsOpenedLater(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j := New(k)
	require.ErrorIs(t, put(j, k, "too early", false), ErrNotOpen)
	_, err := j.Corrupt()
	require.ErrorIs(t, err, ErrNotOpen)
	require.NoError(t, New(k).Close())
	k.Lock()
	j.Append([]byte("too early as well"), false)
	k.Unlock()
	nothing := func([]byte) error { return nil }
	found, err := j.Open(d, nothing, nothing, func(found *Replayed) {
		require.False(t, k.TryLock(), "the owner is locked")
		require.Zero(t, found.Records)
	})
	require.NoError(t, err)
	require.Zero(t, found.Records)
	require.True(t, k.TryLock(), "and unlocked")
	k.Unlock()
	require.NoError(t, put(j, k, "in time", true))
	require.NoError(t, j.Archive(1, batchOf(1), 10, 10))
	require.NoError(t, j.Close())
	_, _, records, _ := opened(t, d, k)
	require.Equal(t, []string{"in time"}, records)
}

// slow is a disk whose next write waits.
type slow struct {
	*disk
	entered, goOn chan struct{}
}

func (d slow) Append(name string) (File, error) {
	file, err := d.disk.Append(name)
	return slowFile{file, d}, err
}

type slowFile struct {
	File
	of slow
}

func (f slowFile) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("slowly")) {
		close(f.of.entered)
		<-f.of.goOn
	}
	return f.File.Write(p)
}

// TestADiskThatHangsDoesNotHoldUpTheOwner: what is decided in memory goes on, and it can be seen from outside
// that one write goes on.
func TestADiskThatHangsDoesNotHoldUpTheOwner(t *testing.T) {
	d, k := slow{newDisk(), make(chan struct{}), make(chan struct{})}, &recorder{}
	j, _, _, _ := opened(t, d, k)
	k.Lock()
	j.Append([]byte("slowly"), false)
	group := j.Group()
	k.Unlock()
	before, called := j.Turn(), false
	require.Zero(t, before%2)
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.Barrier(func() { called = true })
	}()
	<-d.entered
	require.True(t, k.TryLock(), "the owner goes on")
	j.Append([]byte("meanwhile"), false)
	k.Unlock()
	tried, _ := j.TryWrite(group)
	require.False(t, tried)
	begun, waited := make(chan struct{}), make(chan error)
	go func() {
		close(begun)
		waited <- j.Write(group)
	}()
	<-begun
	for range 100 {
		runtime.Gosched()
		require.Equal(t, before+1, j.Turn(), "who waits for the write has no turn yet")
	}
	close(d.goOn)
	<-done
	require.NoError(t, <-waited)
	require.True(t, called)
	require.Zero(t, j.Turn()%2)
	tried, err := j.TryWrite(group)
	require.True(t, tried)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	_, _, records, _ := opened(t, d.disk, k)
	require.Equal(t, []string{"slowly", "meanwhile"}, records)
}

// missing is a disk whose file somebody else deleted.
type missing struct{ *disk }

func (d missing) Append(name string) (File, error) {
	file, err := d.disk.Append(name)
	return missingFile{file}, err
}

type missingFile struct{ File }

func (missingFile) Intact(int64) error { return ErrReplaced }

// TestASegmentThatWasDeletedIsCountedOnce, and nothing is written until another has begun.
func TestASegmentThatWasDeletedIsCountedOnce(t *testing.T) {
	d, k := missing{newDisk()}, &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "first", true))
	for range 3 {
		j.Check()
	}
	require.EqualValues(t, 1, j.Replaced())
	require.ErrorIs(t, put(j, k, "second", true), ErrReplaced)
	require.True(t, j.Full(DefaultSegment))
	require.NoError(t, j.Rotate(snapshotOf("all")))
	require.NoError(t, put(j, k, "third", true))
	corrupt, err := j.Corrupt()
	require.NoError(t, err)
	require.Equal(t, []string{segmentName(1) + corruptSuffix}, corrupt)
	require.NoError(t, put(j, k, "fourth", true))
	require.EqualValues(t, 1, j.Replaced())
	d.cutPower()
	require.Contains(t, d.files, segmentName(1)+corruptSuffix, "its name is durable")
}

// keeping is a disk on which no file can be renamed at first.
type keeping struct {
	*disk
	renames int // until that works
}

func (d *keeping) Rename(from, to string) error {
	if d.renames--; d.renames >= 0 {
		return errFault1
	}
	return d.disk.Rename(from, to)
}

// TestADamagedSegmentIsSetAsideOnceTheDiskAllowsIt: else it would be dropped with the next one, and nobody could look at it.
func TestADamagedSegmentIsSetAsideOnceTheDiskAllowsIt(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	for _, record := range []string{"first", "second", "third"} {
		require.NoError(t, put(j, k, record, true))
	}
	require.NoError(t, j.Close())
	flip(d, segmentName(1), where(d, segmentName(1), "second"))
	j, _, _, found := opened(t, &keeping{d, 1}, k)
	require.Equal(t, []string{segmentName(1)}, found.Damaged)
	require.ErrorIs(t, j.Rotate(snapshotOf("all")), errFault1)
	require.NoError(t, j.Rotate(snapshotOf("all")))
	corrupt, err := j.Corrupt()
	require.NoError(t, err)
	require.Equal(t, []string{segmentName(1) + corruptSuffix}, corrupt)
}

// TestASegmentThatWasEndedWasDurable, although nothing was synced before: damage in it is no torn end.
func TestASegmentThatWasEndedWasDurable(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	for _, record := range []string{"first", "second", "third"} {
		require.NoError(t, put(j, k, record, true))
	}
	require.NoError(t, j.Rotate(snapshotOf("all")))
	require.NoError(t, put(j, k, "fourth", true))
	flip(d, segmentName(1), where(d, segmentName(1), "second"))
	_, ids, records, found := opened(t, d, k)
	require.True(t, found.IDsLost)
	require.Equal(t, []string{segmentName(1)}, found.Damaged)
	require.Equal(t, []string{"first", "third"}, ids)
	require.Equal(t, []string{"all", "fourth"}, records)
}

// TestASnapshotBeforeARecordWasDurable: damage in it is no torn end, and the records behind it count.
func TestASnapshotBeforeARecordWasDurable(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "first", true))
	require.NoError(t, j.Rotate(snapshotOf("everything so far")))
	require.NoError(t, put(j, k, "second", true))
	flip(d, segmentName(2), where(d, segmentName(2), "everything"))
	_, _, records, found := opened(t, d, k)
	require.Equal(t, []string{"first", "second"}, records)
	require.Equal(t, []string{segmentName(2)}, found.Damaged)
	require.Zero(t, found.Torn)
	require.Equal(t, 2, found.Records)
	require.False(t, found.Lost, "the segment before has all of it")
}

func TestADirectoryThatIsGoneIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, err := OpenDir(path)
	require.NoError(t, err)
	file, err := d.Append(segmentName(1))
	require.NoError(t, err)
	require.NoError(t, file.Intact(0))
	require.NoError(t, os.RemoveAll(path))
	_, err = d.List()
	require.Error(t, err)
	_, err = d.Open("any")
	require.Error(t, err)
	_, err = d.Append("any")
	require.Error(t, err)
	require.Error(t, d.Sync())
	require.NoError(t, d.Remove("any"), "as it should be")
	require.ErrorIs(t, file.Intact(0), ErrReplaced)
	require.NoError(t, file.Close())
	require.Error(t, file.Sync())
	_, err = file.(*mappedFile).Mappable.Size()
	require.Error(t, err)
	require.Error(t, file.Intact(0))
	require.NoError(t, d.Close())
}

// TestASegmentThatNeverBeganIsDropped, whatever a crash left in it: the one before has everything.
func TestASegmentThatNeverBeganIsDropped(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "first", true))
	_, err := d.Append(segmentName(2))
	require.NoError(t, err)
	d.files[segmentName(2)].WriteString(strings.Repeat("something else", 20))
	_, _, records, found := opened(t, d, k)
	require.Equal(t, []string{"first"}, records)
	require.Equal(t, []string{segmentName(2)}, found.Unfinished)
	require.Empty(t, found.Damaged)
}

// TestAFirstSegmentThatIsNoneIsSetAside, when it has more than the power may have cut off of one that was beginning.
func TestAFirstSegmentThatIsNoneIsSetAside(t *testing.T) {
	for size, damaged := range map[int]bool{frameHead - 1: false, frameHead: false, frameHead + 1: true} {
		d := newDisk()
		d.Append(segmentName(1))
		d.files[segmentName(1)].WriteString(strings.Repeat("x", size))
		_, _, _, found := opened(t, d, &recorder{})
		require.Equal(t, damaged, len(found.Damaged) == 1, "%d bytes", size)
		require.Equal(t, !damaged, len(found.Unfinished) == 1, "%d bytes", size)
	}
}

// TestWhatIsMissingIsSaidInItsPlace: the state must not go on as if nothing had been there.
func TestWhatIsMissingIsSaidInItsPlace(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	synced(t, j, k, 0, 4)
	flip(d, segmentName(1), where(d, segmentName(1), "charge 1"))
	var replayed []string
	each := func(r []byte) error { replayed = append(replayed, string(r)); return nil }
	_, _, err := open(d, k, each, each)
	require.NoError(t, err)
	require.Equal(t, []string{"charge 0", "", "charge 2", "charge 3"}, replayed)
	refused := errors.New("refused")
	_, _, err = open(d, k, each, func(r []byte) error {
		if len(r) == 0 {
			return refused
		}
		return nil
	})
	require.ErrorIs(t, err, refused)
}

// TestARotationWritesWhatIsPending, and drops nothing of it; one that fails keeps what must not be lost.
func TestARotationWritesWhatIsPending(t *testing.T) {
	d, k := newDisk(), &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.False(t, j.Full(DefaultSegment))
	appended := func(record string, droppable bool) {
		k.Lock()
		j.Append([]byte(record), droppable)
		k.Unlock()
	}
	appended("pending", true)
	require.NoError(t, j.Rotate(snapshotOf("all")))
	require.Empty(t, k.dropped)
	appended("must stay", false)
	appended("may go", true)
	d.full = 0
	require.Error(t, j.Rotate(snapshotOf("more")))
	require.Equal(t, []string{"may go"}, k.dropped)
	d.full = -1
	require.NoError(t, put(j, k, "later", true))
	_, ids, records, _ := opened(t, d, k)
	require.Equal(t, []string{"pending"}, ids)
	require.Equal(t, []string{"all", "must stay", "later"}, records)
}

// interrupted is a disk on which something happens while it fails to write.
type interrupted struct {
	*disk
	during func()
}

func (d interrupted) Append(name string) (File, error) {
	file, err := d.disk.Append(name)
	return interruptedFile{file, d}, err
}

type interruptedFile struct {
	File
	d interrupted
}

func (f interruptedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if err != nil {
		f.d.during()
	}
	return n, err
}

// TestWhatIsAppendedMeanwhileComesLater than what could not be written.
func TestWhatIsAppendedMeanwhileComesLater(t *testing.T) {
	k := &recorder{}
	var j *Journal
	d := interrupted{newDisk(), func() {
		k.Lock()
		j.Append([]byte("meanwhile"), true)
		j.Append([]byte("and more"), false)
		k.Unlock()
	}}
	j, _, _, _ = opened(t, d, k)
	d.full = 0
	require.ErrorIs(t, put(j, k, "must stay", false), errFull)
	require.Empty(t, k.dropped)
	d.full = 0
	require.ErrorIs(t, put(j, k, "neither", true), errFull)
	require.Equal(t, []string{"neither", "meanwhile"}, k.dropped, "their clients are told that nothing was charged")
	d.full = -1
	require.NoError(t, put(j, k, "later", true))
	require.NoError(t, j.Rotate(snapshotOf("all")))
	again := New(k)
	var ids, records []string
	_, err := again.Open(d, func(r []byte) error { return collect(&ids, r) }, func(r []byte) error { return collect(&records, r) }, func(*Replayed) {})
	require.NoError(t, err)
	require.Equal(t, []string{"must stay", "and more", "meanwhile", "and more", "later"}, ids)
	require.Equal(t, []string{"all"}, records)
}

// lateFile is a segment where a record comes while another is written, and can't be written itself.
type lateFile struct {
	File
	during func()
}

func (f lateFile) Write(p []byte) (int, error) {
	switch {
	case bytes.Contains(p, []byte("late")):
		f.during()
		return 0, errFull
	case bytes.Contains(p, []byte("early")):
		f.during()
	}
	return f.File.Write(p)
}

type lateDisk struct {
	*disk
	during func()
}

func (d lateDisk) Append(name string) (File, error) {
	file, err := d.disk.Append(name)
	return lateFile{file, d.during}, err
}

// TestNoSegmentBeginsWithWhatIsDropped: a record that can't be written while the snapshot is taken is not in it.
func TestNoSegmentBeginsWithWhatIsDropped(t *testing.T) {
	k, state := &recorder{}, []string{"early"}
	var late, kept, latest *Group
	var j *Journal
	d := lateDisk{newDisk(), func() {
		k.Lock()
		defer k.Unlock()
		switch {
		case late == nil:
			state = append(state, "late", "kept")
			j.Append([]byte("late"), true)
			late = j.Group()
			j.Append([]byte("kept"), false)
			kept = j.Group()
		case latest == nil: // else the snapshot is written
			state = append(state, "latest")
			j.Append([]byte("latest"), true)
			latest = j.Group()
		}
	}}
	j, _, _, _ = opened(t, d, k)
	k.Lock()
	j.Append([]byte("early"), true)
	group := j.Group()
	k.Unlock()
	require.NoError(t, j.Rotate(func(write func([]byte)) {
		for _, s := range state {
			if !slices.Contains(k.dropped, s) {
				write([]byte(s))
			}
		}
	}))
	require.Equal(t, []string{"latest", "late"}, k.dropped)
	require.NoError(t, j.Write(group))
	for _, failed := range []*Group{late, kept, latest} {
		require.ErrorIs(t, j.Write(failed), errFull)
	}
	k.Lock()
	j.Append([]byte("next"), true)
	k.Unlock()
	require.NoError(t, j.Write(j.Group()))
	_, ids, records, _ := opened(t, d.disk, k)
	require.Equal(t, []string{"early"}, ids, "of the segment before")
	require.Equal(t, []string{"early", "kept", "next"}, records)
}

// TestWhatASnapshotHasIsNotWrittenAgain behind it, also when the rotation then fails to delete an older segment.
func TestWhatASnapshotHasIsNotWrittenAgain(t *testing.T) {
	d, k := lateDisk{newDisk(), func() {}}, &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, j.Rotate(snapshotOf("before")))
	require.ErrorIs(t, put(j, k, "late", false), errFull)
	d.keepsOld = errFault1
	require.ErrorIs(t, j.Rotate(snapshotOf("all")), errFault1)
	require.NoError(t, put(j, k, "next", true))
	_, _, records, _ := opened(t, d.disk, k)
	require.Equal(t, []string{"all", "next"}, records)
}

// TestAProbeFailsWithTheDisk at each thing that it does, and leaves nothing.
func TestAProbeFailsWithTheDisk(t *testing.T) {
	d, k := &faulty{disk: newDisk(), left: 1 << 30, times: 1}, &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, j.Probe())
	for before, what := range []string{"append", "remove", "write", "sync", "close"} {
		d.left, d.failed = before+1, ""
		require.ErrorIs(t, j.Probe(), errFault1)
		require.Equal(t, what+" "+probeName, d.failed)
		require.NotContains(t, d.disk.files, probeName)
	}
	d.left = 1 << 30
	require.NoError(t, j.Probe())
}
