package meter

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"regedge/handler/charge"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/lease"
)

const (
	// writeLimit is how long a charge waits for the disk: longer than a busy disk takes for a write into the
	// page cache, and shorter than most clients wait for an answer.
	writeLimit = 2 * time.Second
	// hangPause is the time between two checks whether the same write still goes on, and between two attempts to take a
	// charge back.
	hangPause = 250 * time.Millisecond
	// takeBackLimit is how long a disk may fail after it hung, before the charges that were given up stand.
	takeBackLimit = time.Minute
	// listLimit is how long a scrape of the metrics waits for a list of the state directory.
	listLimit = time.Second
)

// writeCharge writes the group with a charge. While another caller writes, it waits for at most writeLimit: then the
// disk hangs, and the charge is given up. If it does the write itself, it waits without a limit.
func (m *Meter) writeCharge(r *charge.Request, g *journal.Group) error {
	if tried, err := m.journal.TryWrite(g); tried {
		m.noteDisk(err)
		return err
	}
	written := make(chan error, 1)
	go func() { written <- m.write(g) }()
	limit := time.NewTimer(writeLimit)
	defer limit.Stop()
	select {
	case err := <-written:
		return err
	case <-limit.C:
		m.hung.Add(1)
		m.givenUp.Add(1)
		m.noteDisk(ErrDiskHangs)
		go m.takeBack(strings.Clone(r.ID), written)
		return ErrDiskHangs
	}
}

// takeBack voids a charge that was given up, once the disk has answered: its client was told that nothing was charged.
// Until then no other request is charged, and a request that repeats a charge is not answered from it.
func (m *Meter) takeBack(id string, written <-chan error) {
	defer m.hung.Add(-1)
	if <-written != nil {
		return // the charge was dropped
	}
	err := m.Void(context.Background(), id)
	if err != nil && !isFinal(err) { // after it hung, the disk may fail for a while
		m.config.Logger.Warn("a charge whose client was answered 503 while the disk hung is not taken back yet", "request_id", id, "error", err)
		for began := time.Now(); err != nil && !isFinal(err) && time.Since(began) < takeBackLimit; {
			time.Sleep(hangPause)
			err = m.Void(context.Background(), id)
		}
	}
	if err != nil {
		m.config.Logger.Error("a charge stands, although its client was answered 503 while the disk hung", "request_id", id, "error", err)
	}
}

// isFinal reports whether a charge that could not be voided never can be: the journal is closed, or the id is gone.
func isFinal(err error) bool {
	return errors.Is(err, lease.ErrForgotten) || errors.Is(err, lease.ErrReported) || errors.Is(err, os.ErrClosed)
}

// hangLoop checks whether one write to the journal lasts for writeLimit. If so, the edge is not ready, and charges are
// refused at once, before they wait for a lock that the write may hold.
func (m *Meter) hangLoop(ctx context.Context) {
	if !m.awaitOpen(ctx) {
		return
	}
	tick := time.NewTicker(hangPause)
	defer tick.Stop()
	turn, since, hangs := uint64(0), time.Now(), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := m.journal.Turn()
		if now != turn || now%2 == 0 {
			turn, since = now, time.Now()
		}
		switch long := time.Since(since) >= writeLimit; {
		case long && !hangs:
			hangs = true
			m.hung.Add(1)
			m.noteDisk(ErrDiskHangs)
		case !long && hangs:
			hangs = false
			m.hung.Add(-1)
		}
	}
}

// Corrupt is the number of damaged files that were set aside and are still in the state directory; -1 if it can't be
// listed within listLimit.
func (m *Meter) Corrupt() int {
	if !m.isOpen() {
		return -1
	}
	if m.listing.CompareAndSwap(false, true) {
		listed := make(chan int, 1)
		go func() {
			count := -1
			if names, err := m.journal.Corrupt(); err == nil {
				count = len(names)
			}
			m.listing.Store(false) // before the count is read, so that the next caller lists again
			listed <- count
		}()
		count := -1
		select {
		case count = <-listed:
		case <-time.After(listLimit):
		}
		m.corrupt.Store(int64(count))
	}
	return int(m.corrupt.Load())
}
