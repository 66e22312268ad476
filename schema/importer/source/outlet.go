package source

import "regedge/schema/importer/record"

// Batch holds the records read from one file since the last batch.
type Batch struct {
	File     int // index in the run
	Records  []record.Entry
	Rejects  []record.Reject
	Read     int // all rows or parts of documents, whatever their outcome
	Offices  int // post offices among Read: counted by pincode, written later
	LeftOut  map[string]int64
	Notes    map[string]int64
	Position int64 // bytes read of the stored file
}

// outlet collects what a reader finds in one file and sends it on in batches.
type outlet struct {
	present  *Batch
	file     int
	position func() int64
	send     func(*Batch) error // blocks while the receiver is busy
	texts    int                // bytes of the rows and documents of present
}

// maxBatchBytes is how much text the records and rejects of a batch may come from: they keep it in memory. It is more than
// a batch of usual rows has.
const maxBatchBytes = 8 << 20

func newOutlet(file int, position func() int64, send func(*Batch) error) *outlet {
	o := &outlet{file: file, position: position, send: send}
	o.present = o.fresh()
	return o
}

func (o *outlet) fresh() *Batch {
	return &Batch{File: o.file, LeftOut: map[string]int64{}, Notes: map[string]int64{}}
}

func (o *outlet) record(line int, r record.Record, raw string) error {
	if isMadeUp(r.Key[0]) {
		return o.reject(record.Reject{Line: line, Reason: madeUpCIN, Detail: r.Key[0], Raw: raw})
	}
	if o.present.Records == nil {
		o.present.Records = make([]record.Entry, 0, record.BatchRecords)
	}
	o.present.Records = append(o.present.Records, record.Entry{Record: r, File: o.file, Line: line, Raw: raw})
	return o.count()
}

func (o *outlet) reject(r record.Reject) error {
	o.present.Rejects = append(o.present.Rejects, r)
	return o.count()
}

func (o *outlet) leaveOut(reason string) error {
	o.present.LeftOut[reason]++
	return o.count()
}

// office counts a post office; its data is in Offices.
func (o *outlet) office() error {
	o.present.Offices++
	return o.count()
}

// note counts an optional value that is invalid and dropped.
func (o *outlet) note(what string) { o.present.Notes[what]++ }

func (o *outlet) count() error {
	o.present.Read++
	if o.present.Read < record.BatchRecords {
		return nil
	}
	return o.flush()
}

// ended counts the text of a row or document that was taken apart, and sends the batch if that has much.
func (o *outlet) ended(text int) error {
	if o.texts += text; o.texts < maxBatchBytes {
		return nil
	}
	return o.flush()
}

// flush sends the current batch, even if it is empty.
func (o *outlet) flush() error {
	o.texts = 0
	full := o.present
	full.Position = o.position()
	o.present = o.fresh()
	return o.send(full)
}

// rejection is the error of a parser that rejects a row.
type rejection struct{ reason, detail string }

func (r *rejection) Error() string {
	if r.detail == "" {
		return r.reason
	}
	return r.reason + ": " + r.detail
}

// omission is the error of a parser that leaves out a valid row, which is not data of this
// service.
type omission struct{ reason string }

func (o *omission) Error() string { return o.reason }
