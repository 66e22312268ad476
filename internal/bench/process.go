package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"regedge/internal/testkit/freeport"

	"golang.org/x/sys/unix"
)

// The cores: the server under test has one for itself, everything else has the other.
const (
	serverCore = 0
	loadCore   = 1
)

// build compiles the program under test.
func build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "regedge")
	command := exec.CommandContext(ctx, "go", "build", "-o", program, "./host")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("build the program: %w", err)
	}
	return program, nil
}

// process is a server that was started.
type process struct {
	command *exec.Cmd
	address string
	url     string
	below   *process // what it stands on, stopped after it
}

// start runs a server on a core and waits until it answers ready on its address.
func start(ctx context.Context, core int, address, ready string, env []string, program string, args ...string) (*process, error) {
	p, said, err := spawn(ctx, core, address, env, program, args...)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		if res, err := http.Get(p.url + ready); err == nil {
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode < 500 {
				return p, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.stop()
	return nil, fmt.Errorf("%s %s does not answer on %s: %s", program, args[0], address, said)
}

// spawn runs a server on a core. What it says of errors ends in the tail.
func spawn(ctx context.Context, core int, address string, env []string, program string, args ...string) (*process, *tail, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), env...)
	said := &tail{}
	command.Stderr = said
	if err := onCore(core, command.Start); err != nil {
		return nil, nil, err
	}
	return &process{command: command, address: address, url: "http://" + address}, said, nil
}

// stop asks the server to end and waits for it.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	_ = p.command.Wait()
	if p.below != nil {
		p.below.stop()
	}
}

// onCore calls what starts a process on a thread that has one core only, which the process
// inherits with all its threads. On a machine with one core nothing is bound.
func onCore(core int, start func() error) error {
	if runtime.NumCPU() < 2 {
		return start()
	}
	// The thread is not given back to others: it ends with its goroutine, locked.
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		var one unix.CPUSet
		one.Set(core)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			done <- fmt.Errorf("bind to core %d: %w", core, err)
			return
		}
		done <- start()
	}()
	return <-done
}

// stayOnCore binds this process, with the threads that it will start, to a core.
func stayOnCore(core int) error {
	if runtime.NumCPU() < 2 {
		return nil
	}
	runtime.GOMAXPROCS(1)
	threads, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		return err
	}
	var one unix.CPUSet
	one.Set(core)
	for _, thread := range threads {
		id, _ := strconv.Atoi(filepath.Base(thread))
		if err := unix.SchedSetaffinity(id, &one); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("bind to core %d: %w", core, err)
		}
	}
	return nil
}

// resident is the memory of a process that is resident now, in bytes: all of it, and
// without the pages of mapped files.
func (p *process) resident() (all, private int64, err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		name, rest, _ := strings.Cut(scanner.Text(), ":")
		number, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			all = number << 10
		case "RssAnon":
			private = number << 10
		}
	}
	return all, private, nil
}

// processorTime is the time that all threads of a process have computed, for themselves
// and in the kernel.
func (p *process) processorTime() (time.Duration, error) {
	// The clock of a process (clock_getcpuclockid(3)): its number inverted, and that it is one
	// of all its threads, as the scheduler counts.
	const ofScheduler = 2
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^p.command.Process.Pid<<3|ofScheduler), &spent); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", p.command.Process.Pid, err)
	}
	return time.Duration(spent.Nano()), nil
}

// newAddress is an address of the loopback for a server, until this process ends.
func newAddress() (string, error) {
	reserved, _, err := freeport.Reserve("127.0.0.1")
	return reserved, err
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-2000):]
	return len(p), nil
}

func (t *tail) String() string { return string(t.kept) }
