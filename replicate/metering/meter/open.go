package meter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/syncproto"
)

// Open locks the state directory and replays its journal. journal.ErrInUse when another
// process owns it.
func Open(config Config) (*Meter, error) {
	m := newMeter(config)
	if err := m.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open meter: %w", err), m.journal.Close())
	}
	return m, nil
}

// OpenLater is Open for a disk that may be full or read-only. On such a disk the meter refuses live keys,
// as when the disk fails later, and Run opens the journal once the disk is writable. It returns any other
// error of Open.
func OpenLater(config Config) (*Meter, error) {
	m := newMeter(config)
	err := m.open()
	if err != nil && !mayRecover(err) {
		return nil, errors.Join(fmt.Errorf("open meter: %w", err), m.journal.Close())
	}
	m.noteDisk(err)
	return m, nil
}

// mayRecover reports whether an error of the state directory may pass without a change of configuration.
func mayRecover(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO}, func(of error) bool { return errors.Is(err, of) })
}

// isOpen reports whether the journal is open.
func (m *Meter) isOpen() bool {
	select {
	case <-m.opened:
		return true
	default:
		return false
	}
}

// open opens the journal. Even after an error the journal may be open: the loops of Run then do the rest.
func (m *Meter) open() error {
	dir, err := m.config.openDir()
	if err != nil {
		return err
	}
	state := lease.New(stateLog{m})
	found, err := m.journal.Open(dir, state.ReplayID, state.Replay, func(found *journal.Replayed) { m.begin(state, found) })
	if err != nil {
		if m.config.Files == nil {
			err = errors.Join(err, dir.Close())
		}
		return err
	}
	m.recovered = found
	close(m.opened)
	m.logRecovered()
	// Before Rotate, which sets aside the segment that has these batches. An error with one must not stop
	// the rest.
	for _, batch := range state.TakeReplayed() {
		err = errors.Join(err, m.journal.ArchiveReplayed(batch.Epoch, batch.Batch, syncproto.Day(m.now())))
	}
	if err != nil {
		return err
	}
	if len(found.Damaged) > 0 {
		if err := m.Rotate(); err != nil {
			return err
		}
	}
	return m.journal.Commit()
}

// begin takes over the state that was replayed. The owner's lock is held.
func (m *Meter) begin(state *lease.EdgeState, found *journal.Replayed) {
	var random [16]byte
	m.config.Random(random[:])
	m.state = state
	if found.IDsLost {
		state.Forget(m.now())
	}
	if found.Lost {
		state.Damaged()
	}
	state.Boot(binary.LittleEndian.Uint64(random[:8]))
	m.lastMessage.Store(binary.LittleEndian.Uint64(random[8:]))
}

// logRecovered tells an operator about damage in the journal.
func (m *Meter) logRecovered() {
	log, found := m.config.Logger, &m.recovered
	if found.Torn > 0 {
		log.Warn("the journal's torn end was dropped", "bytes", found.Torn)
	}
	for _, name := range found.Unfinished {
		log.Warn("a segment of the journal was dropped: a crash came before it began", "file", name)
	}
	for _, name := range found.Damaged {
		log.Error("a segment of the journal is damaged: it is set aside, and what can be read of it is used", "file", name,
			"charges_may_be_lost", found.Lost)
	}
}

// Recovered tells what Open found in the journal.
func (m *Meter) Recovered() journal.Replayed { return m.recovered }
