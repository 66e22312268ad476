package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"regedge/internal/testkit"
	"regedge/replicate/registry/freeport"

	"golang.org/x/sys/unix"
)

// The server under test has a core to itself, unless it runs on both; everything else shares the other core.
const (
	serverCore = 0
	loadCore   = 1
	bothCores  = -1
)

// process is a server under test, or the writer that it needs.
type process struct {
	*testkit.Process
	address string
	url     string
	release func()   // of the port
	writer  *process // stopped after it; nil if it needs none, or shares one
}

// readyLimit is how long a server may take to answer.
const readyLimit = 30 * time.Second

// start runs a server on a core, or both, and waits until it answers a path with 200.
func start(ctx context.Context, core int, ready string, env []string, program string, args func(address string) []string) (*process, error) {
	p, err := spawn(core, env, program, args)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := p.Await(ctx, p.url+ready); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// spawn runs a server on a core and a free port, without waiting for it.
func spawn(core int, env []string, program string, args func(address string) []string) (*process, error) {
	address, release, err := freeport.Reserve("127.0.0.1")
	if err != nil {
		return nil, err
	}
	if core != bothCores {
		env = append([]string{"GOMAXPROCS=1"}, env...)
	}
	child := &testkit.Process{
		Program: program, Args: args(address), Env: env, Enter: func() error { return bind(0, core) },
	}
	if err := child.Start(); err != nil {
		release()
		return nil, err
	}
	return &process{Process: child, address: address, url: "http://" + address, release: release}, nil
}

// stop stops the server and the writer that was started for it.
func (p *process) stop() {
	p.Stop()
	p.release()
	if p.writer != nil {
		p.writer.stop()
	}
}

// bind binds a thread, 0 for the calling one, and the processes that it starts from now on to a
// core, or to both. On a machine with one core nothing is bound.
func bind(thread, core int) error {
	if runtime.NumCPU() < 2 {
		return nil
	}
	cores := []int{core}
	if core == bothCores {
		cores = []int{serverCore, loadCore}
	}
	var set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	if err := unix.SchedSetaffinity(thread, &set); err != nil {
		return fmt.Errorf("bind to core %d: %w", core, err)
	}
	return nil
}

// stayOnCore binds this process, with the threads and processes that it will start, to a core until leave.
func stayOnCore(core int) (leave func(), err error) {
	if runtime.NumCPU() < 2 {
		return func() {}, nil
	}
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("read the cores of this process: %w", err)
	}
	processors := runtime.GOMAXPROCS(1)
	leave = func() {
		_ = eachThread(func(id int) error { return unix.SchedSetaffinity(id, &before) })
		runtime.GOMAXPROCS(processors)
	}
	if err := eachThread(func(id int) error { return bind(id, core) }); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// eachThread calls do with each thread of this process, except those that end meanwhile.
func eachThread(do func(id int) error) error {
	threads, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, _ := strconv.Atoi(filepath.Base(thread))
		if err := do(id); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// resident is the resident memory of a process, in bytes: all of it, and without the pages of mapped files.
func (p *process) resident() (all, private int64, err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", p.PID()))
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

// processorTime is the processor time of all threads of a process, in user and kernel mode.
func (p *process) processorTime() (time.Duration, error) {
	// The clock of a process (clock_getcpuclockid(3)): its number inverted, and a flag for the time that the
	// scheduler counts over all of its threads.
	const ofScheduler = 2
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^p.PID()<<3|ofScheduler), &spent); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", p.PID(), err)
	}
	return time.Duration(spent.Nano()), nil
}
