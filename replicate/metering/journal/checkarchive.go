package journal

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"regedge/replicate/metering/syncproto"
)

// CheckArchive reads the whole archive and returns the names of files in which durable batches can't be
// read any more. Such a file is kept for the operator with .corrupt at its end, and replaced by one with
// its readable batches, so that each damage is reported once. Reading blocks nothing else.
func (j *Journal) CheckArchive() (damaged []string, err error) {
	a := &j.archive
	a.mu.Lock()
	dir := a.dir
	a.mu.Unlock()
	if dir == nil {
		return nil, ErrNotOpen
	}
	days, err := a.days()
	if err != nil {
		return nil, fmt.Errorf("check the archive: %w", err)
	}
	for _, day := range days {
		found, err := a.each(day, func(uint64, *syncproto.Batch) {})
		if err == nil && found.damaged > 0 {
			err = a.mend(day, &damaged)
		}
		if names, listed := dir.List(); err != nil && (listed != nil || slices.Contains(names, archiveName(day))) {
			return damaged, fmt.Errorf("check the archive: %w", err)
		}
	}
	return damaged, nil
}

// mend sets a damaged file aside, after a second read under the lock: the first may have raced a write.
func (a *reportArchive) mend(day int32, damaged *[]string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.day == day {
		if err := errors.Join(a.syncFile(), a.closeFile()); err != nil {
			return err
		}
	}
	found, err := a.each(day, func(uint64, *syncproto.Batch) {})
	if err != nil || found.damaged == 0 {
		return err
	}
	name := archiveName(day)
	aside, err := a.freeName(name)
	if err != nil {
		return err
	}
	err = a.copyTo(aside, name)
	if err == nil {
		err = a.writeReadable(name+copySuffix, day)
	}
	if err != nil { // the disk may be full: the next attempt makes another copy
		return errors.Join(err, a.dir.Remove(aside))
	}
	if err := errors.Join(a.dir.Rename(name+copySuffix, name), a.dir.Sync()); err != nil {
		return err
	}
	*damaged = append(*damaged, name)
	return nil
}

// freeName is the name under which a damaged file is set aside. One of the same day may be there already.
func (a *reportArchive) freeName(name string) (string, error) {
	names, err := a.dir.List()
	aside := name + corruptSuffix
	for n := 2; slices.Contains(names, aside); n++ {
		aside = fmt.Sprintf("%s.%d%s", name, n, corruptSuffix)
	}
	return aside, err
}

// copyTo makes a durable copy of a file, as it is.
func (a *reportArchive) copyTo(to, from string) error {
	source, err := a.dir.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	file, err := a.create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, source)
	return errors.Join(err, file.Sync(), file.Close())
}

// writeReadable writes the readable batches of a day to a new durable file, and marks it as durable.
func (a *reportArchive) writeReadable(name string, day int32) error {
	file, err := a.create(name)
	if err != nil {
		return err
	}
	var at int64
	put := func(kind byte, record []byte) {
		frame := appendFrame(nil, kind, record)
		archiveFile(day).place(frame, at)
		at += int64(len(frame))
		if err == nil {
			_, err = file.Write(frame)
		}
	}
	_, failed := a.each(day, func(epoch uint64, b *syncproto.Batch) { put(frameRecord, batchRecord(epoch, b)) })
	put(frameSynced, positionRecord(at))
	return errors.Join(failed, err, file.Sync(), file.Close())
}

// create opens a new file, in place of an older one.
func (a *reportArchive) create(name string) (File, error) {
	if err := a.dir.Remove(name); err != nil {
		return nil, err
	}
	return a.dir.Append(name)
}
