package importer

import "sync"

// tally keeps the report, the rejects file and the progress of a run, to which those who
// read and the one who writes both add.
type tally struct {
	lock      sync.Mutex
	files     []FileReport
	rejects   *rejectsFile
	progress  func(Progress) // may be nil
	present   Progress       // Bytes are those that were read
	positions []int64        // of the files, as last told
	gathered  int64          // records that were read
	shown     int64          // the most bytes that were told
}

// read counts a batch: all of it but its records, which are counted when they are written.
func (t *tally) read(b *batch) {
	t.lock.Lock()
	defer t.lock.Unlock()
	f := &t.files[b.file]
	f.Read += int64(b.read - b.offices - len(b.records)) // offices count when their pincodes are written
	add(f.LeftOut, b.leftOut)
	add(f.Unread, b.notes)
	t.reject(b.file, b.rejects)
	p := &t.present
	p.Bytes += b.position - t.positions[b.file]
	t.positions[b.file] = b.position
	p.Rows, p.File = p.Rows+int64(b.read), f.Name
	t.gathered += int64(len(b.records))
}

// written counts records that are committed.
func (t *tally) written(w *written) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	for file := range w.counts {
		c := &w.counts[file]
		f := &t.files[file]
		f.New += c[outcomeNew]
		f.Changed += c[outcomeChanged]
		f.Unchanged += c[outcomeUnchanged]
		f.Read += c[outcomeNew] + c[outcomeChanged] + c[outcomeUnchanged] + int64(len(w.missing[file]))
		t.reject(file, w.missing[file])
	}
	return t.rejects.flush()
}

func (t *tally) reject(file int, list []reject) {
	f := &t.files[file]
	for i := range list {
		f.Rejected[list[i].reason]++
		t.rejects.add(f.Name, &list[i])
	}
}

// settled notes records that were merged, whether or not that wrote anything.
func (t *tally) settled(records int) {
	t.lock.Lock()
	t.present.Written += int64(records)
	t.lock.Unlock()
	t.tell()
}

// tell reports the progress to whom it concerns. Reading is taken for one half of the
// work, and writing for the other; how much there is to write is estimated from what was
// read. What was told is never taken back.
func (t *tally) tell() {
	if t.progress == nil {
		return
	}
	t.lock.Lock()
	p := t.present
	if p.Total > 0 {
		done := p.Bytes / 2
		if t.gathered > 0 {
			done += int64(float64(p.Bytes) / 2 * float64(p.Written) / float64(t.gathered))
		}
		t.shown = min(max(t.shown, done), p.Total)
		p.Bytes = t.shown
	}
	t.lock.Unlock()
	t.progress(p)
}
