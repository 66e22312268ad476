package source

import (
	"context"
	"io"
	"time"
)

// patience is how long nothing may come out of a file until that is told.
const patience = 2 * time.Second

// Await does what may wait for ever, such as to open a pipe or to read a disk that hangs, until ctx is
// done: then it goes on waiting in a goroutine that the process's end ends. waiting is called when it
// takes long.
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

// patientReader reads until its context is done, whether or not what it reads from answers.
type patientReader struct {
	ctx     context.Context
	in      io.Reader
	waiting func()
	own     []byte // what a read goes to: after the context's end nobody else may have it
	left    []byte // of it, what was not given away
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
