package importer

import (
	"encoding/json"
	"fmt"
)

// outcomes counts what became of records.
type outcomes [outcomeMissing + 1]int64

// begin opens the transaction that the next batches are applied in.
func (s *store) begin() error {
	tx, err := s.conn.BeginImmediate()
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	s.tx, s.open = tx, true
	return nil
}

// applyBatch merges records in the open transaction, those of one key side by side, and
// counts what became of them. After an error the transaction must be rolled back.
func (s *store) applyBatch(records []filed, asOf string, w *written) error {
	for len(records) > 0 {
		n := sameKey(records)
		if err := s.apply(records[:n], asOf, w); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// commit ends the open transaction, if there is one. On an error it is rolled back.
func (s *store) commit() error {
	if !s.open {
		return nil
	}
	s.rest()
	err := s.settle()
	if err == nil {
		if err = s.tx.Commit(); err != nil {
			err = fmt.Errorf("commit: %w", err)
		}
	}
	if err != nil {
		s.rollback()
	}
	s.open = false
	return err
}

// rollback undoes the open transaction, if there is one.
func (s *store) rollback() {
	s.rest()
	if s.open && !s.conn.GetAutocommit() {
		s.tx.Rollback() // fails only when SQLite has rolled back by itself
	}
	s.open, s.changed = false, false
	clear(s.touched)
	s.forgetBoards()
}

// lack is the reason to reject a record that could not be made.
func (r *record) lack() string {
	if r.table == companyTable {
		return notHeld
	}
	return noName
}

// writePlaces makes the pincode table that of the directories of this run, if there
// were any, and counts their offices.
func (r *run) writePlaces() error {
	if len(r.offices.total) == 0 {
		return nil
	}
	became, err := r.store.replacePlaces(r.offices.places())
	if err != nil {
		return fmt.Errorf("write the pincodes: %w", err)
	}
	r.tally.lock.Lock()
	defer r.tally.lock.Unlock()
	for from, n := range r.offices.total {
		f := &r.tally.files[from.file]
		f.Read += n
		switch became[from.pincode] {
		case outcomeNew:
			f.New += n
		case outcomeChanged:
			f.Changed += n
		case outcomeUnchanged:
			f.Unchanged += n
		}
	}
	return nil
}

// replacePlaces makes the pincode table hold the given places and no others, writing
// only differences, in one transaction. The companies there get the districts.
func (s *store) replacePlaces(list map[string]place) (became map[string]outcome, err error) {
	tx, err := s.conn.BeginImmediate()
	if err != nil {
		return nil, err
	}
	defer tx.End(&err)
	held, err := s.places()
	if err != nil {
		return nil, err
	}
	write, _, err := s.conn.Prepare(`INSERT OR REPLACE INTO pincode (pincode, district, state) VALUES (?1, ?2, ?3)`)
	if err != nil {
		return nil, err
	}
	defer write.Close()
	became = make(map[string]outcome, len(list))
	var moved []string
	for pincode, now := range list {
		was, ok := held[pincode]
		switch {
		case !ok:
			became[pincode] = outcomeNew
		case was == now:
			became[pincode] = outcomeUnchanged
			continue
		default:
			became[pincode] = outcomeChanged
		}
		s.changed = true
		moved = append(moved, pincode)
		err := firstError(write.BindText(1, pincode), write.BindText(2, now.district),
			bindValue(write, 3, textValue(now.state)), finish(write))
		if err != nil {
			return nil, err
		}
	}
	for pincode := range held {
		if _, ok := list[pincode]; !ok {
			s.changed = true
			moved = append(moved, pincode)
			if err := s.exec(`DELETE FROM pincode WHERE pincode = ?1`, textValue(pincode)); err != nil {
				return nil, err
			}
		}
	}
	return became, firstError(s.moveCompanies(moved), s.settle())
}

// places reads the pincode table.
func (s *store) places() (map[string]place, error) {
	read, _, err := s.conn.Prepare(`SELECT pincode, district, state FROM pincode`)
	if err != nil {
		return nil, err
	}
	defer read.Close()
	held := map[string]place{}
	for read.Step() {
		held[read.ColumnText(0)] = place{read.ColumnText(1), read.ColumnText(2)}
	}
	return held, read.Err()
}

// moveCompanies brings the districts of the companies in pincodes up to date.
func (s *store) moveCompanies(pincodes []string) error {
	if len(pincodes) == 0 {
		return nil
	}
	list, err := json.Marshal(pincodes)
	if err == nil {
		err = s.exec(putDistricts, textValue(string(list)))
	}
	if err != nil {
		return fmt.Errorf("bring the districts of companies up to date: %w", err)
	}
	return nil
}
