package sqld

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"regedge/replicate/hrana"
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
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("start sqld: %w", err)
	}
	r := &run{command: exec.Command(s.Program, s.arguments()...), output: newOutput(s.Log), ended: make(chan struct{})}
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

// Run starts the server and waits until ctx is done, when it stops it, or until it ends by
// itself, which is an error.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Start(); err != nil {
		return err
	}
	for r := s.current(); r != nil; {
		select {
		case <-ctx.Done():
			s.Stop()
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

// ended is the error of a process that nobody ended.
func ended(err error) error {
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("sqld ended by itself: %w", err)
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

// Await waits until the server answers a query with token, or ctx is done.
func (s *Server) Await(ctx context.Context, token string) error {
	client := hrana.New(s.URL(), token)
	defer client.Close()
	for {
		_, err := client.Query(ctx, "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("await sqld at %s: %w", s.HTTP, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
