//go:build unix

package importer

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnImportWhoseFilesCannotGrowIsOldOrNew: at whichever byte writing fails, in a new registry and in one
// that changes, in its log and in what is sorted beside it.
func TestAnImportWhoseFilesCannotGrowIsOldOrNew(t *testing.T) {
	if most, err := strconv.ParseUint(os.Getenv("IMPORT_MOST_BYTES"), 10, 64); err == nil {
		importWithin(t, most)
		return
	}
	whole := newFixture(t)
	whole.text("2024-01-01", manyCompanies(300))
	old := whole.everything()
	registry, err := os.ReadFile(whole.registry)
	require.NoError(t, err)
	whole.text("2025-01-01", manyCompanies(900))

	for _, name := range []string{"a new registry", "one that changes"} {
		t.Run(name, func(t *testing.T) {
			failed, succeeded := 0, 0
			for most := 1000; succeeded < 2 && most < 1<<30; most += most / 2 {
				w := newFixture(t)
				if name == "one that changes" {
					require.NoError(t, os.WriteFile(w.registry, registry, 0o600))
				}
				// In a process of its own: the limit is one of the process, and go test has files, too.
				cmd := exec.Command(os.Args[0], "-test.run=^TestAnImportWhoseFilesCannotGrowIsOldOrNew$")
				cmd.Env = append(os.Environ(), "IMPORT_MOST_BYTES="+strconv.Itoa(most), "IMPORT_REGISTRY="+w.registry, "IMPORT_FILE="+w.file(manyCompanies(900)))
				out, err := cmd.CombinedOutput()
				switch {
				case err == nil:
					succeeded++
					requireSame(t, whole.content(), w.content())
				case name == "a new registry":
					failed++
					require.Empty(t, w.registryFiles(), "%d bytes: %s", most, out)
				case strings.Contains(string(out), "move the log into"):
					failed++ // committed, in the log, which the next import moves
					requireSame(t, whole.content(), w.content())
				default:
					failed++
					requireSame(t, old, w.everything())
				}
				require.NotContains(t, string(out), "panic:", most)
			}
			require.Greater(t, failed, 8)
			require.Equal(t, 2, succeeded)
		})
	}
}

// importWithin imports a file while no file may grow beyond so many bytes.
func importWithin(t *testing.T, most uint64) {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	limit.Cur = most
	w := newFixture(t)
	w.now, w.registry = testTime.AddDate(0, 0, 9), os.Getenv("IMPORT_REGISTRY")
	config := w.config("2025-01-01", os.Getenv("IMPORT_FILE"))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	report, err := Run(t.Context(), config)
	require.NoError(t, err)
	require.NotEmpty(t, report.Release)
}
