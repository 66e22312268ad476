package importer

import (
	"fmt"
	"strings"
	"sync"

	"regedge/schema/importer/load"
	"regedge/schema/importer/record"
	"regedge/schema/importer/source"
)

// tally keeps the report, the rejects file and the progress of a run. The reading and the
// writing goroutines both add to it.
type tally struct {
	lock      sync.Mutex
	files     []FileReport
	rejects   *rejectsFile
	progress  func(Progress) // may be nil
	present   Progress       // Bytes read so far
	positions []int64        // bytes read of each file
	gathered  int64          // records that were read
	shown     int64          // the greatest Bytes reported so far
}

// read counts a batch, except its records, which are counted when they are merged.
func (t *tally) read(b *source.Batch) {
	t.lock.Lock()
	defer t.lock.Unlock()
	f := &t.files[b.File]
	f.Read += int64(b.Read - b.Offices - len(b.Records)) // offices count when their pincodes are written
	add(f.LeftOut, b.LeftOut)
	add(f.Unread, b.Notes)
	t.reject(b.File, b.Rejects)
	p := &t.present
	p.Bytes += b.Position - t.positions[b.File]
	t.positions[b.File] = b.Position
	p.Rows, p.File = p.Rows+int64(b.Read), f.Name
	t.gathered += int64(len(b.Records))
}

// written counts records that were merged into the database.
func (t *tally) written(w *load.Written) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	for file := range w.Counts {
		c := &w.Counts[file]
		f := &t.files[file]
		f.New += c[load.New]
		f.Changed += c[load.Changed]
		f.Unchanged += c[load.Unchanged]
		f.Read += c[load.New] + c[load.Changed] + c[load.Unchanged] + int64(len(w.Missing[file]))
		t.reject(file, w.Missing[file])
		f.Contradictions.Add(w.Contradictions[file])
		f.WithOthers.Add(w.WithOthers[file])
	}
	return t.rejects.flush()
}

func (t *tally) reject(file int, list []record.Reject) {
	f := &t.files[file]
	for i := range list {
		j := &list[i]
		if f.Rejected[j.Reason]++; f.First[j.Reason] == "" {
			f.First[j.Reason] = strings.TrimSuffix(fmt.Sprintf("line %d: %s", j.Line, j.Detail), ": ")
		}
		t.rejects.add(f.Name, &list[i])
	}
}

// settled counts merged records for the progress, whether or not they were written.
func (t *tally) settled(records int) {
	t.lock.Lock()
	t.present.Written += int64(records)
	t.lock.Unlock()
	t.tell()
}

// tell calls the progress callback. Reading counts as half of the work and writing as the
// other half; how much there is to write is estimated from what was read. Progress never goes
// back.
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
