//go:build unix

package importer

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnImportWhoseFilesCannotGrowIsOldOrNew: at whichever byte writing fails, in a new registry and in one
// that changes, in its log and in what is sorted beside it.
func TestAnImportWhoseFilesCannotGrowIsOldOrNew(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var usual syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &usual))
	whole := newFixture(t)
	whole.text("2024-01-01", manyCompanies(300))
	old := whole.everything()
	registry, err := os.ReadFile(whole.registry)
	require.NoError(t, err)
	whole.text("2025-01-01", manyCompanies(900))

	for _, name := range []string{"a new registry", "one that changes"} {
		t.Run(name, func(t *testing.T) {
			failed, succeeded := 0, 0
			for most := uint64(1000); succeeded < 2 && most < 1<<30; most += most / 2 {
				w := newFixture(t)
				w.now = whole.now // else its release may have the id of the one that is there
				if name == "one that changes" {
					require.NoError(t, os.WriteFile(w.registry, registry, 0o600))
				}
				config := w.config("2025-01-01", w.file(manyCompanies(900)))
				require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: usual.Max}))
				report, err := Run(t.Context(), config)
				require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &usual))
				switch {
				case err == nil:
					succeeded++
					require.NotEmpty(t, report.Release)
					requireSame(t, whole.content(), w.content())
				case name == "a new registry":
					failed++
					require.Empty(t, w.registryFiles(), "%d bytes: %v", most, err)
				default:
					failed++
					require.Empty(t, report.Release, err)
					requireSame(t, old, w.everything())
				}
			}
			require.Greater(t, failed, 8)
			require.Equal(t, 2, succeeded)
		})
	}
}
