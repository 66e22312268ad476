//go:build unix

package importer

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAPipeIsOpenedOnce: what was read from it to recognise its format is gone the second time, and
// nobody may write to it again.
func TestAPipeIsOpenedOnce(t *testing.T) {
	w := newFixture(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	written := make(chan error, 1)
	go func() {
		in, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err == nil {
			_, err = in.WriteString(gzipped(manyCompanies(5000)))
			err = errors.Join(err, in.Close())
		}
		written <- err
	}()
	report := w.run("2025-05-05", pipe)
	require.NoError(t, <-written)
	require.EqualValues(t, 5000, report.Files[0].Read)
}

// TestWhatIsSilentIsNamedAndCanBeInterrupted: a pipe that nobody writes to, or no more, standard input that
// gives nothing, and rejects that nobody reads. The registry is as it was.
func TestWhatIsSilentIsNamedAndCanBeInterrupted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	pipe := func(name string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		return path
	}
	silent, begun, unread := pipe("silent"), pipe("begun"), pipe("unread")
	writer := make(chan *os.File, 1)
	go func() { // many rows, and no end
		in, _ := os.OpenFile(begun, os.O_WRONLY, 0)
		io.WriteString(in, strings.TrimSuffix(manyCompanies(5000), "\n"))
		writer <- in
	}()
	defer func() { (<-writer).Close() }()
	stdin, hand, err := os.Pipe()
	require.NoError(t, err)
	defer hand.Close()
	whole := filepath.Join(folder, "whole.csv")
	require.NoError(t, os.WriteFile(whole, []byte(manyCompanies(3)), 0o600))
	for waits, config := range map[string]Config{
		silent:               {Files: []string{whole, silent}},
		begun:                {Files: []string{begun}},
		"the standard input": {Files: []string{"-"}, Stdin: stdin},
		unread:               {Files: []string{whole}, Rejects: unread},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		named := make(chan string, 2)
		config.Registry = filepath.Join(t.TempDir(), "registry.db")
		config.Waiting = func(file string) { named <- file; interrupt() }
		ended := make(chan error, 1)
		go func() { _, err := Run(ctx, config); ended <- err }()
		select {
		case err := <-ended:
			require.ErrorIs(t, err, context.Canceled, waits)
		case <-time.After(time.Minute):
			t.Fatal(waits, "is still waited for")
		}
		require.Equal(t, waits, <-named)
		require.NoFileExists(t, config.Registry)
		interrupt()
	}
}

// TestASilentPipeDoesNotHoldUpAnError of writing what was read before it: nobody would learn of it.
func TestASilentPipeDoesNotHoldUpAnError(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", headerA+rowA)
	w.exec(`CREATE TRIGGER refuse BEFORE INSERT ON company BEGIN SELECT raise(ABORT, 'refused'); END`)
	stdin, hand, err := os.Pipe()
	require.NoError(t, err)
	_, err = hand.WriteString(listAppointments + strings.Repeat("\n", 5000)) // enough to recognise it
	require.NoError(t, err)
	config := w.config("2025-06-05", w.file(listCompanies), "-")
	config.Stdin = stdin
	ended := make(chan error, 1)
	go func() { _, err := Run(context.Background(), config); ended <- err }()
	select {
	case err = <-ended:
	case <-time.After(time.Minute):
		t.Error("the pipe is still waited for")
	}
	require.NoError(t, hand.Close()) // also ends a run that waits
	require.ErrorContains(t, err, "refused")
}
