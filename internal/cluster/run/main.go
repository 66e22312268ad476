// Command run starts a whole cluster on this machine in the background (make cluster), and stops it
// (make cluster-down).
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"regedge/internal/cluster"
	"regedge/internal/testkit/sqldtest"
)

const usage = `usage: run up|down|serve DIR REGEDGE [PORT]

up starts a cluster in DIR, which is emptied first, with the program REGEDGE, and
prints how to use it. down stops it. serve is up in the foreground. The edges answer at
PORT and PORT+2, the writer at PORT+1, of the loopback; without PORT at free ones.`

// The files in DIR that up, serve and down share.
const (
	pidFile      = "cluster.pid"
	greetingFile = "greeting.txt"
	logFile      = "cluster.log"
)

// startLimit is how long a cluster may take to start.
const startLimit = 3 * time.Minute

func main() {
	acts := map[string]func(dir, regedge string, port int) error{"up": up, "down": down, "serve": serve}
	port, valid := portOf(os.Args)
	if !valid || acts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	dir, err := filepath.Abs(os.Args[2])
	if err == nil {
		err = acts[os.Args[1]](dir, os.Args[3], port)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// portOf returns the PORT of a command line, 0 for none, and whether the line has all that is needed.
func portOf(args []string) (port int, valid bool) {
	if len(args) == 4 || len(args) == 5 && args[4] == "" {
		return 0, true
	}
	if len(args) != 5 {
		return 0, false
	}
	port, err := strconv.Atoi(args[4])
	return port, err == nil && port > 0 && port+2 < 1<<16
}

// addresses returns the addresses of the writer and of the edges' lookups; port 0 gives free ones.
func addresses(port int) (writer string, lookups []string) {
	if port == 0 {
		return "", nil
	}
	at := func(n int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port+n)) }
	return at(1), []string{at(0), at(2)}
}

// portsFree fails if something listens at one of the addresses already, such as another cluster.
func portsFree(port int) error {
	writer, lookups := addresses(port)
	for _, address := range append(lookups, writer) {
		if address == "" {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("%w; give another PORT, which takes the next two as well, or stop what runs there", err)
		}
		listener.Close()
	}
	return nil
}

// up starts serve in the background, waits until the cluster runs, and prints how to use it.
func up(dir, regedge string, port int) error {
	if running(dir) != nil {
		return fmt.Errorf("a cluster runs in %s: make cluster-down stops it", dir)
	}
	if err := portsFree(port); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, logFile))
	if err != nil {
		return err
	}
	defer log.Close()
	child := exec.Command(os.Args[0], append([]string{"serve", dir, regedge}, os.Args[4:]...)...)
	child.Stdout, child.Stderr = log, log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		greeting, err := os.ReadFile(filepath.Join(dir, greetingFile))
		if err == nil {
			_, err = os.Stdout.Write(greeting)
			return err
		}
		select {
		case <-ended:
			said, _ := os.ReadFile(filepath.Join(dir, logFile))
			return fmt.Errorf("it did not start: %s", strings.TrimSpace(string(said)))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// running returns the process that serves a directory, nil if there is none.
func running(dir string) *os.Process {
	text, err := os.ReadFile(filepath.Join(dir, pidFile))
	if err != nil {
		return nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil
	}
	process, err := os.FindProcess(pid)
	if err != nil || process.Signal(syscall.Signal(0)) != nil {
		return nil
	}
	return process
}

// down stops the cluster and waits until it has ended.
func down(dir, _ string, _ int) error {
	process := running(dir)
	if process == nil {
		fmt.Println("no cluster is running")
		return nil
	}
	if err := process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	for running(dir) != nil {
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println("the cluster has stopped")
	return nil
}

// serve runs the cluster until SIGINT or SIGTERM.
func serve(dir, regedge string, port int) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pid := filepath.Join(dir, pidFile)
	if err := os.WriteFile(pid, []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		return err
	}
	defer os.Remove(pid)
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	server, err := sqldtest.Find(root)
	if err != nil {
		return err
	}
	if regedge, err = filepath.Abs(regedge); err != nil {
		return err
	}
	logs, err := cluster.LogFiles(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	writer, lookups := addresses(port)
	c, err := cluster.Start(limited, cluster.Config{
		Dir: dir, Regedge: regedge, Sqld: server, Log: logs, Writer: writer, Lookups: lookups,
	})
	if err != nil {
		return err
	}
	defer c.Stop()
	greeting, err := seed(limited, c)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, greetingFile), greeting); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// write creates a file atomically.
func write(path, text string) error {
	if err := os.WriteFile(path+".part", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}
