package sqld

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"regedge/replicate/registry/libsql"
)

// stopLimit is how long a server may take to stop before it is killed.
const stopLimit = 5 * time.Second

// discardTries is how often removing a database's folder is tried, while others put files into it.
const discardTries = 100

// Server is a server that can be stopped and started again. A replica copies its database anew when it has lost it or
// its file is damaged. A primary restarts with a database that is handed over to it, and a server that hangs is
// restarted. See tend, awaitSeed and restartHung. The methods are safe for concurrent use.
type Server struct {
	Config
	mu      sync.Mutex
	run     *run      // nil while it is stopped
	copied  time.Time // when a replica was last copied because a statement found damage, or it was ahead; used only by tend
	copies  int       // how often that happened without a long pause; used only by tend
	unbased string    // the seed that no base could be made of, see seedIdentity
	// hung and writeless replace the package's in tests.
	hung, writeless silence
}

// run is one process of a server.
type run struct {
	dir     string
	command *exec.Cmd
	output  *output
	hold    *hold
	gate    *gate          // of a primary with Link, nil for others
	reads   *readGate      // of a replica with Reads, nil for others
	relay   *relay         // of a replica with Relay, nil for others
	writes  *writeCheck    // of a primary, nil for others
	damaged chan struct{}  // has an element once a statement found the replica's file damaged
	asked   string         // base URL of the process itself, for queries
	ended   chan struct{}  // closed at its end
	err     error          // how it ended
	taking  sync.Mutex     // held while a seed is taken
	beside  sync.WaitGroup // other goroutines that work for a primary

	// ranWith is the sentinel, once the process was asked to end.
	ranWith atomic.Pointer[fs.FileInfo]
}

// Start starts the process, and returns before the server answers.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start()
}

func (s *Server) start() (err error) {
	r := &run{dir: s.Dir, output: newOutput(s.Log), damaged: make(chan struct{}, 1), ended: make(chan struct{})}
	if r.hold, err = takeDir(s.Dir, r.output); err != nil {
		return fmt.Errorf("start sqld: %w", err)
	}
	defer func() {
		if err != nil {
			r.gate.close()
			r.reads.close()
			r.relay.close()
			r.hold.release()
		}
	}()
	if err := s.prepareDir(r.output); err != nil {
		return fmt.Errorf("start sqld: %w", err)
	}
	config := s.Config
	if s.GRPC != "" {
		if r.writes, err = letCheck(&config); err != nil {
			return fmt.Errorf("start sqld: %w", err)
		}
	}
	if s.GRPC != "" && s.Link != nil {
		if config.HTTP, err = unused(config.HTTP); err != nil {
			return fmt.Errorf("open the port for queries: %w", err)
		}
		if r.gate, err = openGate(&config, r.output); err != nil {
			return fmt.Errorf("open the replication port: %w", err)
		}
	}
	if s.Reads != nil {
		if r.reads, err = openReads(&config, r.output, r.damaged); err != nil {
			return fmt.Errorf("open the port for queries: %w", err)
		}
	}
	if s.Relay {
		if r.relay, err = openRelay(&config, r.output, handshakeTimeout); err != nil {
			return fmt.Errorf("open the way to the primary: %w", err)
		}
	}
	r.asked = "http://" + config.HTTP
	r.command = exec.Command(s.Program, config.arguments()...)
	r.command.Stdout, r.command.Stderr = r.output, r.output
	r.command.SysProcAttr = attributes()
	if err := r.start(s.Enter); err != nil {
		return fmt.Errorf("start sqld: %w", err)
	}
	s.run = r
	switch {
	case s.Primary != "":
		go s.tend(r)
		go s.keepLogShort(r)
	case s.GRPC != "":
		go s.awaitSeed(r)
		go s.restartHung(r)
		r.beside.Go(func() { s.keepUploaded(r) })
	}
	return nil
}

// unused returns a free address for sqld to listen on. sqld accepts no names there, and does not say which address
// failed.
func unused(address string) (string, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return "", err
	}
	network := "tcp"
	if at.IP == nil {
		at.IP = net.IPv6unspecified
	} else if at.IP.To4() != nil {
		network = "tcp4"
	}
	listener, err := net.ListenTCP(network, at)
	if err != nil {
		return "", err
	}
	return at.String(), listener.Close()
}

// start starts the process on a thread that lives as long as the process: the kernel takes the end of that thread for
// the death of the parent.
func (r *run) start(enter func() error) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		err := r.launch(enter)
		started <- err
		if err == nil {
			r.err = r.command.Wait()
			r.output.flush()
			r.stopped()
			r.gate.close()
			r.reads.close()
			r.relay.close()
			r.hold.release()
			close(r.ended)
		}
	}()
	return <-started
}

// stopped tidies up after a process that has ended, while nobody else may run one in the directory.
func (r *run) stopped() {
	ranWith := r.ranWith.Load()
	if r.err != nil || ranWith == nil {
		return
	}
	if err := removeLateSentinel(r.dir, *ranWith); err != nil {
		r.output.say("replicas will copy the database anew: " + err.Error())
	}
}

func (r *run) launch(enter func() error) error {
	if enter != nil {
		if err := enter(); err != nil {
			return err
		}
	}
	if err := r.command.Start(); err != nil {
		return err
	}
	if err := r.hold.note(r.command.Process.Pid); err != nil {
		return errors.Join(err, r.command.Process.Kill(), r.command.Wait())
	}
	return nil
}

// prepareDir gives a primary the seed that was handed over. In a replica's directory it removes what
// is left of a database whose removal was interrupted: sqld would continue with missing pages, or
// write its copy into the old file while others read it.
func (s *Server) prepareDir(output *output) error {
	if s.Primary == "" && s.GRPC != "" {
		return s.placeSeed(output)
	}
	if s.Primary != "" && exists(filepath.Dir(File(s.Dir))) && !whole(s.Dir) {
		if exists(primaryLog(s.Dir)) {
			return fmt.Errorf("%s holds a primary's database: give the replica a directory of its own", s.Dir)
		}
		output.say("only a part of the replica's database is left: it is removed, and copied anew")
		if err := s.discard(); err != nil {
			return err
		}
	}
	if s.Primary != "" {
		return ignoreMissing(os.Remove(fetchedPath(s.Dir)))
	}
	return nil
}

// discard removes the database. The server must not run. If an edge opens the file at this moment, SQLite creates other
// files beside it and the folder is not empty, so this is tried up to discardTries times.
func (s *Server) discard() (err error) {
	for range discardTries {
		if err = os.RemoveAll(filepath.Dir(File(s.Dir))); !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

// whole reports whether all files of a replica's database are there. The index of the write-ahead
// log (-shm) may be missing, since SQLite creates it again, and so may both after the database was
// closed.
func whole(dir string) bool {
	file := File(dir)
	return exists(file) && exists(position(dir)) && (exists(file+"-wal") || !exists(file+"-shm"))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Run runs the server until ctx is done. It returns an ErrEnded if the server ends by itself.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Start(); err != nil {
		return err
	}
	err := s.untilEnded(ctx)
	if ctx.Err() != nil || err != nil {
		s.Stop() // or stops the goroutines of a server that has ended
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// untilEnded waits until the server was stopped, ctx is done, or its process ended by itself, which
// is an ErrEnded. A restart is no end.
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

// ErrEnded means that a server's process ended without being stopped.
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

// PID is the process id of the running server, 0 when none runs.
func (s *Server) PID() int {
	if r := s.current(); r != nil && r.command.Process != nil {
		return r.command.Process.Pid
	}
	return 0
}

// Kill kills the process (SIGKILL) and waits for its end.
func (s *Server) Kill() { s.end(os.Kill) }

// Stop asks the process to end (SIGINT), kills it after 5 s, and waits for its end.
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
	if ranWith, err := os.Stat(sentinel(r.dir)); err == nil { // of a primary alone
		r.ranWith.Store(&ranWith)
	}
	r.output.stopping()
	r.gate.close() // first, because sqld opens its database again for a replica that asks while it stops, and then does not end
	_ = r.command.Process.Signal(signal)
	late := time.AfterFunc(stopLimit, func() { _ = r.command.Process.Kill() })
	<-r.ended
	r.taking.Lock() // wait for what was begun with a seed
	defer r.taking.Unlock()
	r.beside.Wait()
	late.Stop()
}

// URL is the base URL for queries.
func (s *Server) URL() string { return "http://" + s.HTTP }

// Await waits until the server answers a query with token. It fails when ctx is done, and with an
// ErrEnded when the process ends, for example because its address is in use.
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
