package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// stopLimit is how long a process may take to stop before it is killed.
const stopLimit = 15 * time.Second

// Process is a regedge that may be stopped and started again.
type Process struct {
	Program string
	Args    []string
	Env     []string // beside what the program needs of ours
	Log     io.Writer
	mu      sync.Mutex
	command *exec.Cmd     // nil while it is stopped
	ended   chan struct{} // closed at the command's end
}

// Start starts the process, and returns before it answers.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	command, ended := exec.Command(p.Program, p.Args...), make(chan struct{})
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, p.Env...)
	command.Stdout, command.Stderr = p.Log, p.Log
	// An interrupt of the terminal is for the parent, which stops its children in order.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start regedge %s: %w", p.Args[0], err)
	}
	go func() {
		_ = command.Wait() // its ProcessState tells how it ended
		close(ended)
	}()
	p.command, p.ended = command, ended
	return nil
}

// Kill ends the process at once, as a crash would.
func (p *Process) Kill() { p.end(os.Kill) }

// Stop asks the process to end.
func (p *Process) Stop() { p.end(os.Interrupt) }

func (p *Process) end(signal os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command == nil {
		return
	}
	_ = p.command.Process.Signal(signal)
	late := time.AfterFunc(stopLimit, func() { _ = p.command.Process.Kill() })
	<-p.ended
	late.Stop()
	p.command = nil
}

// died is how the process ended without being asked to, or nil.
func (p *Process) died() *os.ProcessState {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command == nil {
		return nil
	}
	select {
	case <-p.ended:
		return p.command.ProcessState
	default:
		return nil
	}
}

// await waits until a URL of the process answers 200, its command has ended, or ctx is done.
func (p *Process) await(ctx context.Context, url string) error {
	client := &http.Client{Timeout: 2 * time.Second}
	defer client.CloseIdleConnections()
	for {
		problem := ""
		response, err := client.Get(url)
		if err != nil {
			problem = err.Error()
		} else {
			body, _ := io.ReadAll(io.LimitReader(response.Body, 500))
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			problem = response.Status + " " + string(body)
		}
		if state := p.died(); state != nil {
			return fmt.Errorf("await %s: regedge %s ended by itself: %s", url, p.Args[0], state)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("await %s: %s", url, problem)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
