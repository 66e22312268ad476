package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"regedge/replicate/metering/ledger"
)

const (
	// silentAfter is how long a writer must be silent before another one takes the ledger unasked. A
	// running writer gives a sign of life at least once a second.
	silentAfter = 3 * time.Second
	// holderPause is the time between two looks at the other writer.
	holderPause = 200 * time.Millisecond
	// endLimit bounds the last write of a writer that ends.
	endLimit = time.Second
)

// ErrHeld is returned by Open when another writer runs on the ledger.
var ErrHeld = errors.New("another writer runs on this ledger")

// self is this process, as the holder of the ledger.
func (w *Writer) self() ledger.Holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return ledger.Holder{Host: host, PID: int64(os.Getpid()), Since: w.now(), Heard: w.now()}
}

// awaitSilence returns when no other writer runs on the ledger: it has ended in order, or gives no sign
// of life for some seconds. It watches for changes rather than compare the clocks of two machines. It
// returns ErrHeld, with the holder, if the other runs and this one was not told to take over.
func (w *Writer) awaitSilence(ctx context.Context) error {
	first, err := ledger.ReadHolder(ctx, w.config.Ledger)
	if err != nil || first.PID == 0 {
		return err
	}
	if w.config.TakeOver {
		w.config.Logger.Warn("taking the ledger over", "from", describe(first))
		return nil
	}
	w.config.Logger.Warn("the ledger was not given up: waiting whether its writer is still heard", "writer", describe(first), "seconds", silentAfter.Seconds())
	look, limit := time.NewTicker(holderPause), time.NewTimer(silentAfter)
	defer look.Stop()
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		case <-limit.C:
			w.config.Logger.Warn("that writer is silent: taking the ledger", "writer", describe(first))
			return nil
		}
		now, err := ledger.ReadHolder(ctx, w.config.Ledger)
		switch {
		case err != nil:
			return err
		case now.PID == 0:
			return nil
		//mutant:second-writer-takes-over-unasked
		case now != first:
			return fmt.Errorf("%w: %s", ErrHeld, describe(now))
		}
	}
}

// describe names the holder of a ledger, for people.
func describe(h ledger.Holder) string {
	return fmt.Sprintf("process %d at %s, since %s, last heard %s", h.PID, h.Host, clockTime(h.Since), clockTime(h.Heard))
}

func clockTime(millis int64) string { return time.UnixMilli(millis).UTC().Format(time.RFC3339) }

// beat shows other writers that this one runs, unless a commit did since the last time.
func (w *Writer) beat(ctx context.Context) {
	if w.wrote {
		w.wrote = false
		return
	}
	now := w.now()
	switch err := w.commitBeat(ctx, now); {
	case err == nil:
		w.confirmed = now
		w.noteWrite(nil)
	case errors.Is(err, ledger.ErrFenced):
		w.fenced.Store(true)
	case ctx.Err() == nil:
		w.metrics.failed.Inc()
		w.unwritten.Add(1)
		w.logUnwritten(err)
	}
}

func (w *Writer) commitBeat(ctx context.Context, now int64) error {
	tx, end, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := ledger.Guard(ctx, tx, w.generation, now); err != nil {
		return err
	}
	return tx.Commit()
}

// noteEnd lets the next writer start at once. It tries once: on failure the next one waits.
func (w *Writer) noteEnd() {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if err := ledger.NoteEnd(ctx, w.config.Ledger, w.generation); err != nil {
		w.config.Logger.Warn("the ledger is not given up: the next writer waits some seconds", "error", err)
	}
}
