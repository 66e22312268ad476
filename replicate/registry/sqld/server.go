package sqld

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"regedge/replicate/registry/libsql"
)

// stopLimit is how long a server may take to stop before it is killed.
const stopLimit = 5 * time.Second

// Server is a server that may be stopped and started again. A replica that has lost its
// database is started again by itself; see tend.
type Server struct {
	Config
	mu  sync.Mutex
	run *run // nil while it is stopped
}

// run is one process of a server.
type run struct {
	command *exec.Cmd
	output  *output
	ended   chan struct{} // closed at its end
	err     error         // of its end
}

// Start starts the process, and returns before it answers.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start()
}

func (s *Server) start() error {
	r := &run{command: exec.Command(s.Program, s.arguments()...), output: newOutput(s.Log), ended: make(chan struct{})}
	if err := s.prepareDir(r.output); err != nil {
		return fmt.Errorf("start sqld: %w", err)
	}
	r.command.Stdout, r.command.Stderr = r.output, r.output
	// An interrupt of the terminal is for the parent, which stops its children in order.
	r.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	do := s.Do
	if do == nil {
		do = func(start func() error) error { return start() }
	}
	if err := do(r.command.Start); err != nil {
		return fmt.Errorf("start sqld: %w", err)
	}
	s.run = r
	go func() {
		r.err = r.command.Wait()
		close(r.ended)
	}()
	if s.Primary != "" {
		go s.tend(r)
	}
	return nil
}

// prepareDir makes the directory, and clears that of a replica from what is left of a
// database whose removal stopped half-way: sqld would go on with pages missing, or begin its
// copy in the old file, while others read it.
func (s *Server) prepareDir(output *output) error {
	if s.Primary != "" && exists(filepath.Dir(File(s.Dir))) && !whole(s.Dir) {
		if exists(primaryLog(s.Dir)) {
			return fmt.Errorf("%s holds a primary's database: give the replica a directory of its own", s.Dir)
		}
		output.say("only a part of the replica's database is left: it is removed, and copied anew")
		if err := s.discard(); err != nil {
			return err
		}
	}
	return os.MkdirAll(s.Dir, 0o700)
}

// discard removes a replica's database. The server must not run.
func (s *Server) discard() error { return os.RemoveAll(filepath.Dir(File(s.Dir))) }

// whole reports whether none of the files of a replica's database is missing. The log's index
// (-shm) may, for it is made anew, and both are away once the database was closed.
func whole(dir string) bool {
	file := File(dir)
	return exists(file) && exists(position(dir)) && (exists(file+"-wal") || !exists(file+"-shm"))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Run starts the server and waits until ctx is done, when it stops it, or until it ends by
// itself, which is an error.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Start(); err != nil {
		return err
	}
	err := s.untilEnded(ctx)
	if ctx.Err() != nil {
		s.Stop()
		return nil
	}
	return err
}

// untilEnded waits until the server was stopped, ctx is done, or its process ended by itself,
// which is an ErrEnded. A replica that is started again goes on.
func (s *Server) untilEnded(ctx context.Context) error {
	for r := s.current(); r != nil; {
		select {
		case <-ctx.Done():
			return nil
		case <-r.ended:
		}
		next := s.current()
		if next == r {
			return ended(r.err)
		}
		r = next
	}
	return nil
}

// ErrEnded is the error of a process that nobody ended.
var ErrEnded = errors.New("sqld ended by itself")

func ended(err error) error {
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%w: %w", ErrEnded, err)
}

func (s *Server) current() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// Kill ends the process at once, as a crash would.
func (s *Server) Kill() { s.end(os.Kill) }

// Stop asks the process to end, and ends it after 5 s.
func (s *Server) Stop() { s.end(os.Interrupt) }

func (s *Server) end(signal os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		s.run.end(signal)
		s.run = nil
	}
}

func (r *run) end(signal os.Signal) {
	_ = r.command.Process.Signal(signal)
	late := time.AfterFunc(stopLimit, func() { _ = r.command.Process.Kill() })
	<-r.ended
	late.Stop()
}

// URL is where the server answers queries.
func (s *Server) URL() string { return "http://" + s.HTTP }

// Await waits until the server answers a query with token, or ctx is done. One that ends by
// itself meanwhile, as one does whose address is taken, is an ErrEnded.
func (s *Server) Await(ctx context.Context, token string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := s.untilEnded(ctx); err != nil {
			cancel(err)
		}
	}()
	db, err := libsql.Open(s.URL(), token)
	if err != nil {
		return fmt.Errorf("await sqld at %s: %w", s.HTTP, err)
	}
	defer db.Close()
	for {
		var one int
		err := db.QueryRowContext(ctx, "SELECT 1").Scan(&one) // the driver's Ping asks nothing
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); errors.Is(cause, ErrEnded) {
				err = cause
			}
			return fmt.Errorf("await sqld at %s: %w", s.HTTP, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
