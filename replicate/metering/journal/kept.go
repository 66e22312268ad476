package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"regedge/replicate/metering/syncproto"
)

const (
	keptPrefix = "batches-"
	// keptDays is how long reported batches are kept: as long as a backup of the ledger
	// may be old.
	keptDays = 7
	// keptRead is how many batches one pass over the files brings to memory.
	keptRead = 256
)

// maxUnsaved is how many bytes of batches wait for their sync at most.
const maxUnsaved = 1 << 20

// kept holds the reported batches, a file for each UTC day. What is not durable is held
// in memory as well: after a write or a sync that failed it is written again, because a
// disk may forget what it failed to sync.
type kept struct {
	mu      sync.Mutex
	dir     Dir
	file    File
	day     int32
	saved   int64                          // durable bytes of the file
	unsaved []byte                         // frames after them
	broken  bool                           // the file beyond saved is not what unsaved is
	swept   int32                          // the day on which old files were last dropped
	read    map[[2]uint64]*syncproto.Batch // by epoch and sequence
}

// Keep stores a batch that the writer acknowledged, under the day of its report, and once
// a day drops those that are too old. It is durable when the segment that sealed it is
// dropped. After an error it is still stored when the disk is well again.
func (j *Journal) Keep(epoch uint64, batch *syncproto.Batch, day int32) error {
	if err := j.KeepAgain(epoch, batch, day); err != nil {
		return err
	}
	j.kept.mu.Lock()
	defer j.kept.mu.Unlock()
	if err := j.kept.dropOld(day); err != nil {
		return fmt.Errorf("drop old batches: %w", err)
	}
	return nil
}

// KeepAgain stores a batch whose acknowledgement was replayed. It drops none: the ledger
// may have come back from a backup while this edge was away, and lack the old ones.
func (j *Journal) KeepAgain(epoch uint64, batch *syncproto.Batch, day int32) error {
	j.kept.mu.Lock()
	defer j.kept.mu.Unlock()
	if err := j.kept.keep(epoch, batch, day); err != nil {
		return fmt.Errorf("keep batch %d: %w", batch.Seq, err)
	}
	return nil
}

func (k *kept) keep(epoch uint64, batch *syncproto.Batch, day int32) error {
	var turned error
	if k.day != day {
		turned = k.turn(day)
	}
	var e syncproto.Encoder
	e.Uint(epoch)
	batch.Encode(&e)
	at := len(k.unsaved)
	k.unsaved = appendFrame(k.unsaved, e.Bytes)
	switch {
	case turned != nil:
		k.broken = true
		return turned
	case k.file == nil || k.broken || len(k.unsaved) > maxUnsaved:
		return k.syncFile()
	}
	_, err := k.file.Write(k.unsaved[at:])
	k.broken = err != nil
	return err
}

// turn goes on in the file of day. What could not be made durable in the one before is
// still in unsaved, and is written to the new one: the old one may have forgotten it.
func (k *kept) turn(day int32) error {
	if k.day != 0 {
		_, _ = k.syncFile(), k.closeFile()
	}
	k.day = day
	return k.open()
}

// open opens the file of the day, cut behind its last whole batch. What a former process
// wrote there and did not sync is made durable: a later sync that fails may forget it.
func (k *kept) open() error {
	good, err := k.each(k.day, func(uint64, *syncproto.Batch) {})
	if err != nil {
		return err
	}
	file, err := k.dir.Append(keptName(k.day))
	if err != nil {
		return err
	}
	if err := errors.Join(file.Truncate(good), file.Sync(), k.dir.Sync()); err != nil {
		return errors.Join(err, file.Close())
	}
	k.file, k.saved, k.broken = file, good, len(k.unsaved) > 0
	return nil
}

func (k *kept) dropOld(today int32) error {
	if k.swept == today {
		return nil
	}
	days, err := k.days()
	for _, d := range days {
		if d < today-keptDays {
			err = errors.Join(err, k.dir.Remove(keptName(d)))
		}
	}
	if err == nil {
		k.swept = today
	}
	return err
}

func (k *kept) sync() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.syncFile()
}

func (k *kept) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return errors.Join(k.syncFile(), k.closeFile())
}

// syncFile makes every batch durable that was to be kept.
func (k *kept) syncFile() error {
	if len(k.unsaved) == 0 {
		return nil
	}
	if k.file == nil {
		if err := k.open(); err != nil {
			return err
		}
	}
	if k.broken {
		if err := k.file.Truncate(k.saved); err != nil {
			return err
		}
		if _, err := k.file.Write(k.unsaved); err != nil {
			return err
		}
	}
	err := k.file.Sync()
	if k.broken = err != nil; k.broken {
		return err
	}
	k.saved += int64(len(k.unsaved))
	k.unsaved = k.unsaved[:0]
	return nil
}

func (k *kept) closeFile() error {
	if k.file == nil {
		return nil
	}
	err := k.file.Close()
	k.file = nil
	return err
}

func keptName(day int32) string { return fmt.Sprintf("%s%08d%s", keptPrefix, day, suffix) }

// days lists the days of which there are batches, ascending.
func (k *kept) days() ([]int32, error) {
	names, err := k.dir.List()
	if err != nil {
		return nil, err
	}
	var days []int32
	for _, name := range names {
		middle, ok := strings.CutPrefix(name, keptPrefix)
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

// Batch finds a kept batch; nil when there is none. An error says that it may be there, and
// can't be read now.
func (j *Journal) Batch(epoch, seq uint64) (*syncproto.Batch, error) {
	j.kept.mu.Lock()
	defer j.kept.mu.Unlock()
	k := &j.kept
	if b := k.read[[2]uint64{epoch, seq}]; b != nil {
		return b, nil
	}
	k.read = map[[2]uint64]*syncproto.Batch{}
	days, failed := k.days()
	found := func(of uint64, b *syncproto.Batch) {
		if of == epoch && b.Seq >= seq && b.Seq < seq+keptRead {
			k.read[[2]uint64{of, b.Seq}] = b
		}
	}
	for _, day := range days {
		_, err := k.each(day, found)
		failed = errors.Join(failed, err)
	}
	eachBatch(bytes.NewReader(k.unsaved), found)
	if b := k.read[[2]uint64{epoch, seq}]; b != nil || failed == nil {
		return b, nil
	}
	return nil, fmt.Errorf("look for batch %d of epoch %d: %w", seq, epoch, failed)
}

// each reads the batches of one day as far as they can be read, and returns the bytes
// that they take.
func (k *kept) each(day int32, found func(epoch uint64, b *syncproto.Batch)) (int64, error) {
	names, err := k.dir.List()
	if err != nil || !slices.Contains(names, keptName(day)) {
		return 0, err
	}
	file, err := k.dir.Open(keptName(day))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return eachBatch(file, found)
}

func eachBatch(from io.Reader, found func(epoch uint64, b *syncproto.Batch)) (int64, error) {
	r := newReader(from)
	for {
		good := r.good
		record, err := r.next()
		if err == io.EOF || err == errTorn {
			return r.good, nil
		}
		if err != nil {
			return 0, err
		}
		d := syncproto.NewDecoder(record)
		epoch, batch := d.Uint(), syncproto.DecodeBatch(d)
		if d.Err() != nil {
			return good, nil
		}
		found(epoch, batch)
	}
}
