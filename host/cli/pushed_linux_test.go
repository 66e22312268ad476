package cli

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/push"
	"regedge/schema/sample"
)

// ranForPrograms runs a command with --json, and returns what it left on both outputs.
func ranForPrograms(t *testing.T, args ...string) (result pushed, stdout, stderr string, code int) {
	t.Helper()
	p := start(append(args, "--json")...)
	code = <-p.ended
	stdout, stderr = p.stdout.String(), p.stderr.String()
	if code == exitOK {
		decoder := json.NewDecoder(strings.NewReader(stdout))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&result), stdout)
		require.False(t, decoder.More(), "one object and nothing else: %s", stdout)
	}
	return result, stdout, stderr, code
}

// TestAPushTellsProgramsWhatItDid on standard output, and shows its progress on standard error.
func TestAPushTellsProgramsWhatItDid(t *testing.T) {
	t.Parallel()
	primary := sqldtest.Primary(t)
	dir := t.TempDir()
	registry, one := filepath.Join(dir, "registry.db"), onlyCompany(t)
	_, err := sample.Import(t.Context(), registry, nil)
	require.NoError(t, err)
	at := []string{"--registry", primary.URL(), "--releases", filepath.Join(dir, "releases")}
	pushes := func(file string, more ...string) []string {
		return append(append([]string{"push", file}, at...), more...)
	}
	releases := func() []push.Release {
		list, err := push.Releases(t.Context(), sqldtest.Open(t, primary))
		require.NoError(t, err)
		return list
	}

	foreseen, stdout, stderr, code := ranForPrograms(t, pushes(one, "--dry-run")...)
	require.Equal(t, exitOK, code, stderr)
	require.True(t, foreseen.DryRun)
	require.NoDirExists(t, filepath.Join(dir, "releases"), "a dry run keeps no snapshot")
	require.Contains(t, stdout, `"doubts": []`, "lists are never null")
	require.Contains(t, stdout, `"would_go": 0`)
	require.Equal(t, pushedCount{Added: 1}, foreseen.Counts["companies"])
	for _, kind := range []string{"companies", "llps", "directors", "pincodes", "search_entries"} {
		require.Contains(t, foreseen.Counts, kind)
	}

	first, stdout, stderr, code := ranForPrograms(t, pushes(one)...)
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, releases()[0].ID, first.Release)
	require.Equal(t, foreseen.Counts, first.Counts)
	require.False(t, first.DryRun)
	require.Positive(t, first.Transactions)
	require.Positive(t, first.Sent)
	require.Positive(t, first.Received)
	require.Positive(t, first.Elapsed)
	require.Contains(t, stderr, "pushing: ")
	require.NotContains(t, stdout, "RECORDS")

	again, _, stderr, code := ranForPrograms(t, pushes(one)...)
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, first.Release, again.Release)
	require.Equal(t, pushedCount{}, again.Counts["companies"])
	require.Len(t, again.Counts, 5)
	require.Zero(t, again.Transactions)

	_, stdout, stderr, code = ranForPrograms(t, pushes(registry)...)
	require.Equal(t, exitFailure, code)
	require.Empty(t, stdout, "a failure is told on standard error alone")
	number := asksFor.FindStringSubmatch(stderr)
	require.NotNil(t, number, stderr)
	doubtful, _, stderr, code := ranForPrograms(t, pushes(registry, "--dry-run")...)
	require.Equal(t, exitOK, code, stderr)
	require.NotEmpty(t, doubtful.Doubts)
	removed := int64(0)
	for _, c := range doubtful.Counts {
		removed += c.Removed
	}
	require.Equal(t, number[1], strconv.FormatInt(removed, 10), "what --yes takes is the sum of what would go")
	second, _, stderr, code := ranForPrograms(t, pushes(registry, "--yes", number[1])...)
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, doubtful.Counts, second.Counts)
	require.Equal(t, int64(companiesAt(t, primary)), releases()[0].Companies)

	back, _, stderr, code := ranForPrograms(t, append([]string{"rollback", "--yes"}, at...)...)
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, first.Release, back.Release)
	require.Equal(t, second.Counts["companies"].Added, back.Counts["companies"].Removed)
	require.Equal(t, 1, companiesAt(t, primary))

	for command, hint := range map[string]string{"push": "the same command finds nothing more to write", "rollback": "without --to the same command would go back further"} {
		args := pushes(one)
		if command == "rollback" {
			args = append([]string{command, "--yes", "--to", first.Release}, at...)
		}
		said := new(testkit.Log)
		full := &Main{Stdin: strings.NewReader(""), Stdout: fullDisk{}, Stderr: said, Environ: func() []string { return nil }, Now: time.Now}
		require.Equal(t, exitFailure, full.Run(t.Context(), args))
		require.Contains(t, said.String(), "release "+first.Release+" is current, but what changed can't be printed: no space left on device\nhint: "+hint)
	}
}
