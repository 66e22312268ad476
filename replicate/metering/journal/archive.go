package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"regedge/replicate/metering/syncproto"
)

const (
	archivePrefix = "batches-"
	copySuffix    = ".new" // of a temporary copy that is to replace a file
	// archiveDays is how long reported batches are kept, at least: as long as a backup of the ledger
	// may be old.
	archiveDays = 7
	// archiveRead is how many batches one pass over the files reads into memory.
	archiveRead = 256
	// copyPiece is how many bytes are copied at once.
	copyPiece = 1 << 20
	// maxUnsaved bounds the bytes of batches that wait for their sync.
	maxUnsaved = 1 << 20
)

// reportArchive holds the reported batches in a file for each UTC day. Batches that are not durable yet
// are kept in memory as well and rewritten after a failed write or sync: a disk may lose what it failed
// to sync.
type reportArchive struct {
	mu      Lock
	dir     Dir
	file    File
	day     int32
	saved   int64                          // durable bytes of the file
	marked  int64                          // the durable length that a frame in the file records
	unsaved []byte                         // the frames after saved, without masks
	broken  bool                           // the file behind saved may differ from unsaved
	suspect map[int32]bool                 // the days whose files had a failed sync
	swept   int32                          // the day on which old files were last deleted
	read    map[[2]uint64]*syncproto.Batch // by epoch and sequence, nil for one that is not there
	added   uint64                         // batches so far, in this run
}

// Archive stores a batch that the writer acknowledged, under the day of its report, and once a day
// deletes batches that are too old. With a wrong clock the days by the clocks of edge and writer differ:
// day is the later one, today the earlier one. The batch is durable before the segment that sealed it is
// deleted. After an error it is stored once the disk works again.
func (j *Journal) Archive(epoch uint64, batch *syncproto.Batch, day, today int32) error {
	if err := j.ArchiveReplayed(epoch, batch, day); err != nil {
		return err
	}
	j.archive.mu.Lock()
	defer j.archive.mu.Unlock()
	if err := j.archive.dropOld(today); err != nil {
		return fmt.Errorf("drop old batches: %w", err)
	}
	return nil
}

// ArchiveReplayed stores a batch whose acknowledgement was replayed. It deletes no old ones: a ledger
// that was restored from a backup while this edge was down may need them.
func (j *Journal) ArchiveReplayed(epoch uint64, batch *syncproto.Batch, day int32) error {
	j.archive.mu.Lock()
	defer j.archive.mu.Unlock()
	if err := j.archive.add(epoch, batch, day); err != nil {
		return fmt.Errorf("archive batch %d: %w", batch.Seq, err)
	}
	return nil
}

func (a *reportArchive) add(epoch uint64, batch *syncproto.Batch, day int32) error {
	delete(a.read, [2]uint64{epoch, batch.Seq})
	a.added++
	var started error
	if a.day != day {
		started = a.startDay(day)
	}
	at := len(a.unsaved)
	a.mark()
	a.unsaved = appendFrame(a.unsaved, frameRecord, batchRecord(epoch, batch))
	switch {
	case started != nil:
		a.broken = true
		return started
	case a.file == nil || a.broken:
		return a.syncFile()
	}
	_, err := a.file.Write(a.placed(at))
	if a.broken = err != nil; !a.broken && len(a.unsaved) > maxUnsaved {
		return a.syncFile()
	}
	return err
}

func batchRecord(epoch uint64, b *syncproto.Batch) []byte {
	var e syncproto.Encoder
	e.Uint(epoch)
	b.Encode(&e)
	return e.Bytes
}

// positionRecord is the record of a frameSynced frame.
func positionRecord(at int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(at)) }

// mark appends a frame with the file's durable length, unless one records it already.
func (a *reportArchive) mark() {
	if a.file != nil && a.marked < a.saved {
		a.marked = a.saved
		a.unsaved = appendFrame(a.unsaved, frameSynced, positionRecord(a.saved))
	}
}

// unmark removes such frames from what is written to another file.
func (a *reportArchive) unmark() {
	kept := a.unsaved[:0]
	for rest := a.unsaved; len(rest) > 0; {
		h := head(binary.LittleEndian.Uint64(rest))
		end := frameHead + h.size()
		if h.kind() != frameSynced {
			kept = append(kept, rest[:end]...)
		}
		rest = rest[end:]
	}
	a.unsaved = kept
}

// placed copies the frames of unsaved from an index on, masked for their place in the file.
func (a *reportArchive) placed(from int) []byte {
	frames := slices.Clone(a.unsaved[from:])
	for at := 0; at < len(frames); {
		size := head(binary.LittleEndian.Uint64(frames[at:])).size()
		archiveFile(a.day).place(frames[at:], a.saved+int64(from+at))
		at += frameHead + size
	}
	return frames
}

// startDay switches to the file of day. Batches that did not become durable in the previous file are
// still in unsaved and are written to the new one.
func (a *reportArchive) startDay(day int32) error {
	if a.day != 0 {
		_, _ = a.finish(), a.closeFile()
		a.unmark()
	}
	a.day = day
	return a.open()
}

// open opens the file of the day and cuts it behind its last whole batch. It syncs what a
// former process wrote there, since a later sync that fails may lose it.
func (a *reportArchive) open() error {
	found, err := a.each(a.day, func(uint64, *syncproto.Batch) {})
	good := found.end
	if err == nil && a.suspect[a.day] && good > 0 { // else the file is gone
		err = a.copy(good)
	}
	if err != nil {
		return err
	}
	file, err := a.dir.Append(archiveName(a.day))
	if err != nil {
		return err
	}
	if err := errors.Join(file.Truncate(good), file.Sync(), a.dir.Sync()); err != nil {
		if good > 0 {
			a.suspect[a.day] = true
		}
		return errors.Join(err, file.Close())
	}
	delete(a.suspect, a.day)
	a.file, a.saved, a.marked, a.broken = file, good, 0, len(a.unsaved) > 0
	return nil
}

// copy replaces the file by a copy up to its last batch. After one failed sync the disk may never make
// the rest durable, whatever later syncs return.
func (a *reportArchive) copy(good int64) error {
	name := archiveName(a.day)
	from, err := a.dir.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := a.create(name + copySuffix)
	if err != nil {
		return err
	}
	// Hide all methods but Write: a file system that shares blocks between files would share those that
	// it failed to write.
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, io.LimitReader(from, good), make([]byte, copyPiece))
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return err
	}
	return a.dir.Rename(name+copySuffix, name)
}

func (a *reportArchive) dropOld(today int32) error {
	if a.swept == today {
		return nil
	}
	days, err := a.days()
	// The newest days with batches are always kept: if a clock was behind, a replayed batch may be stored
	// under a day long past.
	for _, d := range days[:max(len(days)-archiveDays-1, 0)] {
		if d < today-archiveDays {
			err = errors.Join(err, a.dir.Remove(archiveName(d)))
		}
	}
	if err == nil {
		a.swept = today
	}
	return err
}

func (a *reportArchive) sync() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.syncFile()
}

func (a *reportArchive) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.finish(), a.closeFile())
}

// finish makes every batch durable, and marks the file so.
func (a *reportArchive) finish() error {
	if err := a.syncFile(); err != nil {
		return err
	}
	a.mark()
	if len(a.unsaved) == 0 {
		return nil
	}
	a.broken = true // the frame is not written yet
	return a.syncFile()
}

// syncFile makes every batch of the archive durable.
func (a *reportArchive) syncFile() error {
	if len(a.unsaved) == 0 {
		return nil
	}
	if a.file == nil {
		if err := a.open(); err != nil {
			return err
		}
	}
	if a.broken {
		if err := a.file.Truncate(a.saved); err != nil {
			return err
		}
		if _, err := a.file.Write(a.placed(0)); err != nil {
			return err
		}
	}
	err := a.file.Sync()
	if a.broken = err != nil; a.broken {
		a.suspect[a.day] = true
		return err
	}
	delete(a.suspect, a.day)
	a.saved += int64(len(a.unsaved))
	a.unsaved = a.unsaved[:0]
	return nil
}

func (a *reportArchive) closeFile() error {
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	a.file = nil
	return err
}

func archiveName(day int32) string { return fmt.Sprintf("%s%08d%s", archivePrefix, day, suffix) }

// days lists the days of which there are batches, ascending.
func (a *reportArchive) days() ([]int32, error) {
	names, err := a.dir.List()
	if err != nil {
		return nil, err
	}
	var days []int32
	for _, name := range names {
		middle, ok := strings.CutPrefix(name, archivePrefix)
		if !ok {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSuffix(middle, suffix), 10, 32); err == nil {
			days = append(days, int32(n))
		}
	}
	slices.Sort(days)
	return days, nil
}

// Batch finds a batch in the archive; nil when there is none. On an error it may exist, but can't be
// read now. It may read gigabytes, and holds no lock meanwhile: a new segment, for which charges wait, syncs the archive.
func (j *Journal) Batch(epoch, seq uint64) (*syncproto.Batch, error) {
	a := &j.archive
	wanted := [2]uint64{epoch, seq}
	a.mu.Lock()
	b, known := a.read[wanted]
	unsaved, added := bytes.Clone(a.unsaved), a.added
	days, failed := a.days() // with the lock: a file that is being replaced might be missing
	a.mu.Unlock()
	if known {
		return b, nil
	}
	read := map[[2]uint64]*syncproto.Batch{}
	found := func(of uint64, b *syncproto.Batch) {
		if of == epoch && b.Seq >= seq && b.Seq < seq+archiveRead {
			read[[2]uint64{of, b.Seq}] = b
		}
	}
	eachBatch(0, bytes.NewReader(unsaved), found)
	// The newest first: most restored ledgers lack the last batches alone.
	for _, day := range slices.Backward(days) {
		if read[wanted] != nil {
			break // the batches after it are of this day and later ones
		}
		failed = errors.Join(failed, a.readDay(day, found))
	}
	a.mu.Lock()
	if read[wanted] == nil && failed == nil && a.added == added {
		read[wanted] = nil // it is known that there is none
	}
	a.read = read
	a.mu.Unlock()
	if b := read[wanted]; b != nil || failed == nil {
		return b, nil
	}
	return nil, fmt.Errorf("look for batch %d of epoch %d: %w", seq, epoch, failed)
}

// readDay passes the readable batches of a day that was listed to found.
func (a *reportArchive) readDay(day int32, found func(epoch uint64, b *syncproto.Batch)) error {
	file, err := a.dir.Open(archiveName(day))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = eachBatch(archiveFile(day), file, found)
	return err
}

// each passes the readable batches of one day to found. Damage between frames is skipped: every batch
// was acknowledged on its own.
func (a *reportArchive) each(day int32, found func(epoch uint64, b *syncproto.Batch)) (kept, error) {
	names, err := a.dir.List()
	if err != nil || !slices.Contains(names, archiveName(day)) {
		return kept{}, err
	}
	file, err := a.dir.Open(archiveName(day))
	if err != nil {
		return kept{}, err
	}
	defer file.Close()
	return eachBatch(archiveFile(day), file, found)
}

// kept describes the readable content of an archive file.
type kept struct {
	end     int64 // of the last frame
	damaged int   // unreadable places that were durable: a later frame proves it
}

func eachBatch(of fileOf, from io.Reader, found func(epoch uint64, b *syncproto.Batch)) (kept, error) {
	r := newReader(of, from)
	var k kept
	var gaps []gap
	var synced int64
	for {
		f, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return kept{}, err
		}
		//mutant:archive-ends-at-its-damage
		if f.gap > 0 {
			gaps = append(gaps, gap{f.at - f.gap, f.at})
		}
		if f.kind == frameSynced {
			if len(f.record) == 8 {
				synced = max(synced, min(int64(binary.LittleEndian.Uint64(f.record)), f.at))
			}
			k.end = f.end()
			continue
		}
		d := syncproto.NewDecoder(f.record)
		if epoch, batch := d.Uint(), syncproto.DecodeBatch(d); d.Err() == nil {
			found(epoch, batch)
			k.end = f.end()
		}
	}
	for _, g := range gaps {
		if g.from < synced {
			k.damaged++
		}
	}
	return k, nil
}
