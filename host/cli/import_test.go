package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/hint"
	"regedge/schema/generate"
	"regedge/schema/importer"
)

// TestAnImportThatFailsSaysWhatItChanged: nothing, unless there is a release.
func TestAnImportThatFailsSaysWhatItChanged(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	err := explainImport(ended, context.Canceled, "")
	require.EqualError(t, err, "interrupted: the registry is as it was before")
	require.Equal(t, "the same command begins again", hint.Of(err))
	err = explainImport(t.Context(), errors.New("move the log"), "R1")
	require.EqualError(t, err, "release R1 was written, then: move the log")
	refused := fmt.Errorf("make registry r.db: %w", &fs.PathError{Op: "open", Path: "r.db", Err: fs.ErrPermission})
	require.Contains(t, hint.Of(explainImport(t.Context(), &importer.RegistryError{Err: refused}, "")), "that this user may write to")
	require.Empty(t, hint.Of(explainImport(t.Context(), refused, "")), "it is not of the registry")
}

// TestAnImportThatCannotBePrintedIsToldAsWritten, where only the disk of its output is full.
func TestAnImportThatCannotBePrintedIsToldAsWritten(t *testing.T) {
	for release, want := range map[string]string{"": "", "R1": "release R1 was written, but what was imported can't be printed: "} {
		for _, asJSON := range []bool{false, true} {
			report := &importer.Report{Release: release}
			err := (&importCommand{JSON: asJSON}).print(&Main{Stdout: fullDisk{}, Stderr: io.Discard}, report, nil)
			require.EqualError(t, err, want+"no space left on device")
		}
	}
}

// TestAnInterruptedGenerateSaysHowToBeginAgain: without --force it would stop at the files that are there.
func TestAnInterruptedGenerateSaysHowToBeginAgain(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	out := t.TempDir()
	err := (&generateCommand{Companies: 20, Out: out, Compress: "none"}).Run(ended, &Main{Stdout: io.Discard, Stderr: io.Discard, Now: time.Now})
	require.EqualError(t, err, "interrupted: "+out+" has some of the files")
	require.Equal(t, "the same command with --force begins again", hint.Of(err))
}

// TestMadeFilesAreImportedAsOfTheirDate: the post offices among them have none.
func TestMadeFilesAreImportedAsOfTheirDate(t *testing.T) {
	c := generateCommand{Out: "made"}
	text := c.imports(generate.Summary{Files: []generate.File{{Name: "companies-goa.csv", AsOf: "2025-05-05"}, {Name: "pincodes.csv"}}})
	newest := "  regedge import --registry registry.db --as-of 2025-05-05 made/companies-*.csv made/pincodes.csv\n"
	require.Equal(t, newest, text)
	text = c.imports(generate.Summary{Files: []generate.File{
		{Name: "2021-companies-goa.csv", AsOf: "2021-03-31"}, {Name: "companies-goa.csv", AsOf: "2025-05-05"}, {Name: "pincodes.csv"},
	}})
	require.Equal(t, newest+"  regedge import --registry registry.db --as-of 2021-03-31 made/2021-companies-*.csv\n", text)
}

// TestTheOperatorsMemoryLimitWins over the one of imports.
func TestTheOperatorsMemoryLimitWins(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "1GiB")
	limitMemory(importMemory)
	require.Equal(t, before, debug.SetMemoryLimit(-1))
	t.Setenv("GOMEMLIMIT", "")
	limitMemory(importMemory)
	require.EqualValues(t, importMemory, debug.SetMemoryLimit(-1))
}
