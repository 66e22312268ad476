// Command regedge is the whole service in one executable: an edge node, the central
// writer, the importer, and the commands of an operator. main only joins the parts; what
// they do is in the packages beside it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"regedge/host/hint"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	program := &Main{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ, Now: time.Now,
	}
	code := program.Run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// The exit codes of the program.
const (
	exitOK      = 0
	exitFailure = 1 // it was asked well and could not be done
	exitMisuse  = 2 // the command line or the environment is wrong
)

// Main is the program, with its ways to the world as fields, so that a test can boot it.
type Main struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Environ lists the environment as os.Environ does.
	Environ func() []string
	Now     func() time.Time
	// Listening, when set, is told of each listener as it begins to serve.
	Listening func(name string, addr net.Addr)
}

// Run does what the arguments say and returns the exit code. Servers run until ctx is
// done.
func (m *Main) Run(ctx context.Context, args []string) int {
	command, err := m.parse(args)
	switch {
	case errors.Is(err, errHelpShown):
		return exitOK
	case err != nil:
		m.complain(err)
		return exitMisuse
	}
	if err := command(ctx); err != nil {
		m.complain(err)
		return exitFailure
	}
	return exitOK
}

// complain prints the error and, on a line of its own, what to do about it.
func (m *Main) complain(err error) {
	fmt.Fprintf(m.Stderr, "regedge: %v\n", err)
	if advice := hint.Of(err); advice != "" {
		fmt.Fprintf(m.Stderr, "hint: %s\n", advice)
	}
}
