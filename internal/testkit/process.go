package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// stopLimit is how long a process may take to stop before it is killed.
	stopLimit = 15 * time.Second
	// outputLimit is how long a child's child may hold its output open after the child has ended.
	outputLimit = 5 * time.Second
	// tailBytes is how much of a process's output is kept for error messages.
	tailBytes = 20_000
	// askPause is the time between two requests of Await.
	askPause = 20 * time.Millisecond
)

// Process is a child process that can be stopped and started again. It has a process group of
// its own, so that an interrupt from the terminal reaches its parent only, which stops its
// children in order. On Linux it is killed when its parent dies, whatever the cause.
//
// The fields must not change once it was started. The methods are safe for concurrent use.
type Process struct {
	Program string
	Args    []string
	// Env is added to the environment of this process, of which no REGEDGE_ variable is passed on.
	Env []string
	// Log receives both outputs, and may be nil.
	Log io.Writer
	// Enter, if set, is called on the thread that starts the process, which inherits what it
	// changes: a network namespace, a processor affinity. No other goroutine runs on that thread.
	Enter func() error

	tail tail
	mu   sync.Mutex
	run  *run // nil before the first start and after Stop and Kill
}

// run is one start of a process.
type run struct {
	command *exec.Cmd
	ended   chan struct{} // closed at its end
}

// Start starts the process, and returns before it is ready.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && p.run.state() == nil {
		return fmt.Errorf("start %s: it is running already", p)
	}
	r := &run{command: exec.Command(p.Program, p.Args...), ended: make(chan struct{})}
	r.command.Env = append(environment(), p.Env...)
	var output io.Writer = &p.tail
	if p.Log != nil {
		output = io.MultiWriter(&p.tail, p.Log)
	}
	r.command.Stdout, r.command.Stderr = output, output
	r.command.WaitDelay = outputLimit
	r.command.SysProcAttr = attributes()
	if err := r.start(p.Enter); err != nil {
		return fmt.Errorf("start %s: %w", p, err)
	}
	p.run = r
	return nil
}

// start starts the command on a thread that lives as long as the child: the kernel sends the
// signal for the parent's death when the thread that started the child ends.
func (r *run) start(enter func() error) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		if enter != nil {
			if err := enter(); err != nil {
				started <- err
				return
			}
		}
		err := r.command.Start()
		started <- err
		if err == nil {
			_ = r.command.Wait() // see state
			close(r.ended)
		}
	}()
	return <-started
}

// state is how the process ended, nil while it runs.
func (r *run) state() *os.ProcessState {
	select {
	case <-r.ended:
		return r.command.ProcessState
	default:
		return nil
	}
}

// environment is the environment of this process without REGEDGE_ variables.
func environment() (list []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "REGEDGE_") {
			list = append(list, variable)
		}
	}
	return list
}

// String is the program's name and its first argument.
func (p *Process) String() string {
	name := filepath.Base(p.Program)
	if len(p.Args) > 0 {
		name += " " + p.Args[0]
	}
	return name
}

// Stop asks the process to end (SIGINT), kills it after 15 s, and waits for its end. A process
// that does not run is left alone.
func (p *Process) Stop() { p.end(os.Interrupt) }

// Kill kills the process and its children (SIGKILL) and waits for its end. A process that does
// not run is left alone.
func (p *Process) Kill() { p.end(os.Kill) }

func (p *Process) end(signal os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return
	}
	if signal == os.Kill {
		p.run.kill()
	} else {
		_ = p.run.command.Process.Signal(signal) // fails if the process has ended
	}
	late := time.AfterFunc(stopLimit, p.run.kill)
	<-p.run.ended
	late.Stop()
	p.run = nil
}

// kill kills the process and what it started in its group.
func (r *run) kill() {
	if r.state() == nil {
		_ = syscall.Kill(-r.command.Process.Pid, syscall.SIGKILL)
	}
}

// Signal sends a signal to the process.
func (p *Process) Signal(signal os.Signal) error {
	r := p.current()
	if r == nil {
		return os.ErrProcessDone
	}
	return r.command.Process.Signal(signal)
}

// PID is the process's number, 0 while it is stopped.
func (p *Process) PID() int {
	r := p.current()
	if r == nil {
		return 0
	}
	return r.command.Process.Pid
}

func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// Wait waits until the process ends by itself. The error tells how it ended unless its exit
// status is 0, or that ctx is done.
func (p *Process) Wait(ctx context.Context) error {
	r := p.current()
	if r == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.ended:
	}
	if state := r.state(); !state.Success() {
		return fmt.Errorf("%s ended: %s", p, state)
	}
	return nil
}

// Await waits until a URL of the process answers 200. It fails when the process ends before
// that, or ctx is done; the error then holds the end of the process's output.
func (p *Process) Await(ctx context.Context, url string) error {
	client := &http.Client{Timeout: 2 * time.Second}
	defer client.CloseIdleConnections()
	for {
		err := get(client, url)
		if err == nil {
			return nil
		}
		if r := p.current(); r == nil || r.state() != nil {
			err = errors.New("it has ended")
		} else if ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(askPause):
			}
			continue
		}
		return fmt.Errorf("await %s of %s: %w\n%s", url, p, err, p.Tail())
	}
}

// get returns nil if a URL answers 200.
func get(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 500))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s", response.Status, body)
	}
	return nil
}

// Tail is the end of the output of all starts, about 20 kB at most.
func (p *Process) Tail() string { return p.tail.String() }

// EndWith kills the process at the end of a test, and shows the end of its output if the test
// failed.
func (p *Process) EndWith(t testing.TB) {
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s:\n%s", p, p.Tail())
		}
	})
}

// BuildRegedge builds the program in a folder and returns its path.
func BuildRegedge(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "regedge")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "regedge/host").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build regedge: %w: %s", err, out)
	}
	return program, nil
}
