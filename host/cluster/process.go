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
	command *exec.Cmd
}

// Start starts the process, and returns before it answers.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.command = exec.Command(p.Program, p.Args...)
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, p.Env...)
	p.command.Stdout, p.command.Stderr = p.Log, p.Log
	// An interrupt of the terminal is for the parent, which stops its children in order.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("start regedge %s: %w", p.Args[0], err)
	}
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
	_ = p.command.Wait()
	late.Stop()
	p.command = nil
}

// await waits until a URL answers 200, or ctx is done.
func await(ctx context.Context, url string) error {
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
		select {
		case <-ctx.Done():
			return fmt.Errorf("await %s: %s", url, problem)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
