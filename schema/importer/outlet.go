package importer

// batchRecords is how many records are handed on at a time, so that those who read and the
// one who writes work side by side and little is in memory.
const batchRecords = 5000

// reject is a row that can't be taken.
type reject struct {
	line   int
	reason string // one of few: the report counts by it
	detail string // what exactly, may be empty
	raw    string
}

// pending is a record on its way to the database, with what a reject would need.
type pending struct {
	record
	line int
	raw  string
}

// batch is what was read from one file since the batch before.
type batch struct {
	file     int // index in the run
	records  []pending
	rejects  []reject
	read     int // all rows or records, however they ended
	offices  int // of read: counted by pincode, not yet written
	leftOut  map[string]int64
	notes    map[string]int64
	position int64  // bytes of the file that were read, compressed
	endOf    *stage // set on an empty batch: all of it has been read
}

// outlet gathers what a reader of one file finds and sends it on in batches.
type outlet struct {
	present  *batch
	file     int
	position func() int64
	send     func(*batch) error // blocks until the batch is taken on
}

func newOutlet(file int, position func() int64, send func(*batch) error) *outlet {
	o := &outlet{file: file, position: position, send: send}
	o.present = o.fresh()
	return o
}

func (o *outlet) fresh() *batch {
	return &batch{file: o.file, leftOut: map[string]int64{}, notes: map[string]int64{}}
}

func (o *outlet) record(line int, r record, raw string) error {
	if o.present.records == nil {
		o.present.records = make([]pending, 0, batchRecords)
	}
	o.present.records = append(o.present.records, pending{r, line, raw})
	return o.count()
}

func (o *outlet) reject(r reject) error {
	o.present.rejects = append(o.present.rejects, r)
	return o.count()
}

func (o *outlet) leaveOut(reason string) error {
	o.present.leftOut[reason]++
	return o.count()
}

// office notes a post office that went to the count by pincode.
func (o *outlet) office() error {
	o.present.offices++
	return o.count()
}

// note counts an optional value that can't be read and is taken as none.
func (o *outlet) note(what string) { o.present.notes[what]++ }

func (o *outlet) count() error {
	o.present.read++
	if o.present.read < batchRecords {
		return nil
	}
	return o.flush()
}

// flush sends what was gathered, also when that is nothing.
func (o *outlet) flush() error {
	full := o.present
	full.position = o.position()
	o.present = o.fresh()
	return o.send(full)
}
