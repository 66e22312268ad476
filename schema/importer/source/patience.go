package source

import (
	"context"
	"io"
	"time"
)

// patience is how long a file may yield nothing before waiting is called.
const patience = 2 * time.Second

// Await runs act, which may block for ever (opening a pipe, reading from a hung disk), until ctx is done.
// act then stays blocked in its goroutine, which ends with the process. waiting is called once if act
// takes longer than patience.
func Await[T any](ctx context.Context, waiting func(), act func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := act()
		done <- outcome{value, err}
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case o := <-done:
			return o.value, o.err
		case <-late.C:
			waiting()
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// patientReader reads until its context is done, even if the underlying reader hangs.
type patientReader struct {
	ctx     context.Context
	in      io.Reader
	waiting func()
	own     []byte // the read buffer, never the caller's: a hung read may still write to it
	left    []byte // the part of own not yet returned
	err     error  // that came with it
}

func newPatientReader(ctx context.Context, in io.Reader, waiting func()) *patientReader {
	return &patientReader{ctx: ctx, in: in, waiting: waiting, own: make([]byte, 64<<10)}
}

// Read implements io.Reader.
func (r *patientReader) Read(p []byte) (int, error) {
	if len(r.left) == 0 && r.err == nil {
		n, err := Await(r.ctx, r.waiting, func() (int, error) { return r.in.Read(r.own) })
		if r.ctx.Err() != nil {
			return 0, r.ctx.Err()
		}
		r.left, r.err = r.own[:n], err
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	if len(r.left) == 0 {
		return n, r.err
	}
	return n, nil
}
