// Package cli is the command line of the whole service in one executable: the edge node, the central
// writer, the importer, and the operators' commands. It has one file a command, and joins the parts
// that other packages implement.
//
// # Files
//
// Begin with main.go, which runs a command, and cli.go, which lists all commands. A file without a
// command serves several:
//
//	flags.go, paths.go, signingkeys.go     flags of databases, TLS and metrics; checks of paths and files
//	sqld.go, smtp.go, traces.go            flags of sqld, of the mail server and of traces
//	operator.go, changing.go, confirm.go, listing.go   calls of the writer's API: one, one that changes
//	                                       something, one that asks first, one that lists
//	ends.go, readtokens.go                 until when tokens and certificates are good
//	explain.go, doctorclient.go, doctormachine.go      what status and doctor find
//	progress.go, stages.go, pushed.go      progress of a long task; stages and results of a push
//	terminal.go                            what a terminal is
//	waiting.go                             says what a command waits for
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode"

	"regedge/host/hint"
	"regedge/replicate/metering/writer"
)

// Execute runs the program on the arguments and the environment of this process, and ends it.
func Execute() {
	dropEmptyVariables()
	outliveReader() // until the command is known: a warning must not end a service before it has started
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	program := &Main{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ, Now: time.Now,
	}
	go func() {
		<-ctx.Done()
		stop() // a second signal kills a process that ignores the first, such as one that reads from a silent pipe
	}()
	code := program.Run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// endings are the signals that end the program in order. They include the closing of its terminal, except under
// nohup.
func endings() []os.Signal {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// dropEmptyVariables treats an empty environment variable of ours, which container files often have, as not set:
// kong would read an empty path as the current directory rather than use the default.
func dropEmptyVariables() {
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); value == "" && strings.HasPrefix(name, environmentPrefix+"_") {
			os.Unsetenv(name)
		}
	}
}

// The exit codes of the program.
const (
	exitOK      = 0
	exitFailure = 1 // a valid command failed
	exitMisuse  = 2 // the command line or the environment is wrong
	exitHeld    = 3 // another writer runs on the ledger: trying again would not help
)

// Main is the program with its inputs and outputs as fields, so that a test can run it.
type Main struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Environ lists the environment as os.Environ does.
	Environ func() []string
	Now     func() time.Time
	// Listening, if set, is called with each listener once it is open.
	Listening func(name string, addr net.Addr)
}

// Run runs the command that args name and returns the exit code. Servers run until ctx
// is done.
func (m *Main) Run(ctx context.Context, args []string) int {
	command, err := m.parse(args)
	signal.Reset(syscall.SIGPIPE) // a service sets it again with its log
	if err != nil {
		m.complain(err)
		return exitMisuse
	}
	err = explainMemory(func() error { return command(ctx) })
	if err == nil {
		return exitOK
	}
	m.complain(err)
	if errors.Is(err, writer.ErrHeld) {
		return exitHeld
	}
	return exitFailure
}

// explainMemory calls f, in which SQLite panics when it can reserve no addresses.
func explainMemory(f func() error) (err error) {
	defer func() {
		reason := recover()
		if given, ok := reason.(error); ok && errors.Is(given, syscall.ENOMEM) {
			err = hint.With(fmt.Errorf("open a database: %w", given), "SQLite reserves 256 MB of addresses for each connection, whether it uses them or not: lift their limit (ulimit -v unlimited). If there is none, is the memory full (free -m)?")
		} else if reason != nil {
			panic(reason)
		}
	}()
	return f()
}

// complainLimit is how long printing the final error may take if nobody reads it. An init system restarts a
// service only once it has ended.
const complainLimit = 5 * time.Second

// complain prints the error and, on a line of its own, its hint.
func (m *Main) complain(err error) {
	text := fmt.Sprintf("regedge: %s\n", shownLines(err.Error()))
	if advice := hint.Of(err); advice != "" {
		text += fmt.Sprintf("hint: %s\n", shownLines(advice))
	}
	said := make(chan struct{})
	go func() {
		_, _ = io.WriteString(m.Stderr, text)
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(complainLimit):
	}
}

// shownLines replaces control characters: an error may quote text of a file or another machine.
func shownLines(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !writer.Printable(string(r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
