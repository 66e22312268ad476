package reference_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// baseFlag lets the tests look at a service that is running already.
var baseFlag = flag.String("base", "", "address of a running service; empty starts one")

// pagePaths are the pages of the service, one of each kind of problem page.
var pagePaths = []string{
	"/", "/reference", "/guides", "/problems", "/guides/first-call", "/guides/authentication", "/guides/credits-and-limits",
	"/guides/errors", "/guides/search", "/guides/sandbox", "/guides/production", "/guides/testing", "/guides/moving", "/guides/changelog", "/problems/not_found_cap_exceeded",
}

// program is the whole service in a process of its own, shared by the tests: building
// and filling it takes longer than most of them.
var program struct {
	once sync.Once
	dir  string // with the binary regedge
	base string
	err  error
}

// stops end the processes that were started, and wait for their ends.
var stops []func()

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	for _, stop := range stops {
		stop()
	}
	os.RemoveAll(program.dir)
	os.Exit(code)
}

// service returns the address of a running service with the sample register in it.
func service(t *testing.T) string {
	t.Helper()
	if *baseFlag != "" {
		return strings.TrimSuffix(*baseFlag, "/")
	}
	program.once.Do(func() { program.base, program.err = startProgram() })
	require.NoError(t, program.err)
	return program.base
}

func startProgram() (base string, err error) {
	if program.dir, err = os.MkdirTemp("", "regedge-reference-"); err != nil {
		return "", err
	}
	binary := filepath.Join(program.dir, "regedge")
	if out, err := exec.Command("go", "build", "-o", binary, "regedge/host").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return startDev(filepath.Join(program.dir, "data"))
}

// startDev runs the program that startProgram has built, and returns the address of its lookups.
func startDev(data string, flags ...string) (base string, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	stops = append(stops, func() { cancel(); <-done })
	command := exec.CommandContext(ctx, filepath.Join(program.dir, "regedge"), append([]string{"dev", "--listen", "127.0.0.1:0",
		"--writer-listen", "127.0.0.1:0", "--trusted-proxy", "127.0.0.1", "--data", data}, flags...)...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 30 * time.Second
	out, in := io.Pipe()
	command.Stdout, command.Stderr = in, in
	if err := command.Start(); err != nil {
		close(done)
		return "", err
	}
	go func() {
		in.CloseWithError(fmt.Errorf("the program ended: %v", command.Wait()))
		close(done)
	}()
	return readBase(out)
}

// readBase reads what the program says until it names the address of its lookups, and
// goes on reading, so that the program never waits for its reader.
func readBase(out io.Reader) (string, error) {
	var said strings.Builder
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			return "", fmt.Errorf("%w; it said:\n%s", err, said.String())
		}
		if word, base, ok := strings.Cut(strings.TrimSpace(line), " "); ok && word == "Lookups" {
			go io.Copy(io.Discard, lines)
			return strings.TrimSpace(base), nil
		}
	}
}
