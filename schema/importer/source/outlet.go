package source

import "regedge/schema/importer/record"

// Batch is what was read from one file since the batch before.
type Batch struct {
	File     int // index in the run
	Records  []record.Entry
	Rejects  []record.Reject
	Read     int // all rows or records, however they ended
	Offices  int // of read: counted by pincode, not yet written
	LeftOut  map[string]int64
	Notes    map[string]int64
	Position int64 // bytes of the file that were read, compressed
}

// outlet gathers what a reader of one file finds and sends it on in batches.
type outlet struct {
	present  *Batch
	file     int
	position func() int64
	send     func(*Batch) error // blocks until the batch is taken on
}

func newOutlet(file int, position func() int64, send func(*Batch) error) *outlet {
	o := &outlet{file: file, position: position, send: send}
	o.present = o.fresh()
	return o
}

func (o *outlet) fresh() *Batch {
	return &Batch{File: o.file, LeftOut: map[string]int64{}, Notes: map[string]int64{}}
}

func (o *outlet) record(line int, r record.Record, raw string) error {
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

// office notes a post office that went to the count by pincode.
func (o *outlet) office() error {
	o.present.Offices++
	return o.count()
}

// note counts an optional value that can't be read and is taken as none.
func (o *outlet) note(what string) { o.present.Notes[what]++ }

func (o *outlet) count() error {
	o.present.Read++
	if o.present.Read < record.BatchRecords {
		return nil
	}
	return o.flush()
}

// flush sends what was gathered, also when that is nothing.
func (o *outlet) flush() error {
	full := o.present
	full.Position = o.position()
	o.present = o.fresh()
	return o.send(full)
}

// rejection is the error by which a parser refuses a row.
type rejection struct{ reason, detail string }

func (r *rejection) Error() string {
	if r.detail == "" {
		return r.reason
	}
	return r.reason + ": " + r.detail
}

// omission is the error by which a parser leaves out a row that is none of the service's.
type omission struct{ reason string }

func (o *omission) Error() string { return o.reason }
