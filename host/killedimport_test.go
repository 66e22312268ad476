package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/edge"
	"regedge/schema"
	"regedge/schema/generate"
	"regedge/schema/verify"
)

var (
	kills         = flag.Int("kills", 12, "how many imports are killed")
	killCompanies = flag.Int("kill-companies", 2000, "how many companies such an import has")
)

// registryState is one statement: what a lookup can see of a release at one moment. Of the records
// after the import, as many as the file has are of its date, and so are their search entries.
const registryState = `SELECT (SELECT count(*) FROM release), (SELECT count(*) FROM company),
  (SELECT count(*) FROM company WHERE company_name LIKE '%NEWER%'), (SELECT count(*) FROM search_name WHERE name LIKE '%newer%'),
  (SELECT count(*) FROM unreleased) + (SELECT count(*) FROM search_pending), (SELECT count(*) FROM search_name) - (SELECT count(*) FROM llp)`

// TestAnImportThatIsKilledIsOldOrNew kills real imports at moments that are spread over their time,
// while an edge and a new reader each look at the file again and again: a first import, one that
// changes few names (whose search entries are updated), and one that changes all (whose index is
// built anew).
func TestAnImportThatIsKilledIsOldOrNew(t *testing.T) {
	files, changedFew, changedAll := generatedLists(t, *killCompanies)
	base := filepath.Join(t.TempDir(), "registry.db")
	imports(t, base, "2025-01-01", files)
	t.Run("the first", func(t *testing.T) { killImports(t, "", files, *kills/3) })
	t.Run("of few changes", func(t *testing.T) { killImports(t, base, changedFew, *kills/3) })
	t.Run("of all names", func(t *testing.T) { killImports(t, base, changedAll, *kills-2*(*kills/3)) })
}

// generatedLists makes lists, and two newer versions of them.
func generatedLists(t *testing.T, companies int) (files, few, all []string) {
	t.Helper()
	dir := t.TempDir()
	made, err := generate.Run(t.Context(), generate.Config{Companies: companies, Seed: 1, Out: dir, OlderShare: 0})
	require.NoError(t, err)
	for i, f := range made.Files {
		path := filepath.Join(dir, filepath.Base(f.Name))
		files = append(files, path)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for every, list := range map[int]*[]string{20: &few, 1: &all} {
			newer := path
			if strings.HasPrefix(filepath.Base(path), "companies-") {
				newer = filepath.Join(dir, fmt.Sprintf("newer-%d-%d", every, i))
				lines := strings.Split(string(text), "\n")
				for n := 1; n < len(lines); n += every {
					lines[n] = strings.Replace(lines[n], " PRIVATE LIMITED,", " NEWER PRIVATE LIMITED,", 1)
				}
				require.NoError(t, os.WriteFile(newer, []byte(strings.Join(lines, "\n")), 0o600))
			}
			*list = append(*list, newer)
		}
	}
	return files, few, all
}

// imports runs an import to its end.
func imports(t *testing.T, registry, asOf string, files []string) time.Duration {
	t.Helper()
	started := time.Now()
	out, err := importProcess(registry, asOf, files).CombinedOutput()
	require.NoError(t, err, string(out))
	return time.Since(started)
}

func importProcess(registry, asOf string, files []string) *exec.Cmd {
	return exec.Command("regedge", append([]string{"import", "--registry", registry, "--as-of", asOf}, files...)...)
}

// killImports kills n imports into copies of base, or into no file, and completes the last.
func killImports(t *testing.T, base string, files []string, n int) {
	fresh := func() string {
		path := filepath.Join(t.TempDir(), "registry.db")
		if base != "" {
			content, err := os.ReadFile(base)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, content, 0o600))
		}
		return path
	}
	whole := fresh()
	before := stateOf(t, whole)
	length := imports(t, whole, "2025-02-01", files)
	after := stateOf(t, whole)
	require.NotEqual(t, before, after)
	var path string
	old, looks := 0, 0
	for i := range n {
		path = fresh()
		look := startLooking(t, path)
		run := importProcess(path, "2025-02-01", files)
		require.NoError(t, run.Start())
		at := length * time.Duration(5*(2*i+1)) / time.Duration(4*2*n) // the last ones may be after its end
		time.Sleep(at)
		require.NoError(t, run.Process.Kill())
		_ = run.Wait() // its error is the kill
		for _, state := range append(look.end(), stateOf(t, path)) {
			require.Contains(t, []string{before, after}, state, "a mixed state, killed after %v of %v", at, length)
			if looks++; state == before {
				old++
			}
		}
	}
	t.Logf("%d kills within %v; %d looks, %d of them at the release before", n, length, looks, old)
	imports(t, path, "2025-02-01", files)
	require.Equal(t, after, stateOf(t, path), "the next import completes it")
	report, err := verify.File(t.Context(), path, verify.Thorough)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	left, err := filepath.Glob(path + "?*")
	require.NoError(t, err)
	for _, name := range left {
		require.True(t, strings.HasSuffix(name, "-shm") || strings.HasSuffix(name, "-wal"), name)
	}
}

// stateOf opens the file anew.
func stateOf(t *testing.T, path string) string {
	state, err := tryState(t, path)
	require.NoError(t, err)
	return state
}

func tryState(t *testing.T, path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "no registry", nil
	}
	report, err := verify.File(t.Context(), path, verify.Quick)
	if err != nil || !report.Whole() {
		return fmt.Sprint(report.Problems), err
	}
	db, err := schema.OpenFile(path, true)
	if err != nil {
		return "", err
	}
	defer db.Close()
	var n [6]int
	err = db.QueryRow(registryState).Scan(&n[0], &n[1], &n[2], &n[3], &n[4], &n[5])
	return fmt.Sprint(n), err
}

// looking are two readers of a file: an edge that keeps it open, and one that opens it again and again.
type looking struct {
	stop chan struct{}
	wait sync.WaitGroup
	mu   sync.Mutex
	saw  []string
}

func startLooking(t *testing.T, path string) *looking {
	l := &looking{stop: make(chan struct{})}
	l.wait.Go(func() {
		for l.goesOn() {
			time.Sleep(5 * time.Millisecond)
			state, err := tryState(t, path)
			l.note(state, err)
		}
	})
	l.wait.Go(func() {
		var database edge.Database
		for l.goesOn() {
			time.Sleep(5 * time.Millisecond)
			if database == nil {
				opened, err := edge.OpenFile(t.Context(), schema.Registry, path)
				if err != nil {
					continue // there is none yet
				}
				defer opened.Close()
				database = opened
			}
			var result handler.Result
			err := cmp.Or(database.Refresh(), database.Query(t.Context(), registryState, nil, &result))
			var n []int64
			for _, v := range result.Values {
				n = append(n, v.Int)
			}
			l.note(fmt.Sprint(n), err)
		}
	})
	return l
}

func (l *looking) goesOn() bool {
	select {
	case <-l.stop:
		return false
	default:
		return true
	}
}

func (l *looking) note(state string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		state = err.Error()
	}
	l.saw = append(l.saw, state)
}

// end returns what was seen.
func (l *looking) end() []string {
	close(l.stop)
	l.wait.Wait()
	return l.saw
}

// TestImportsIntoOneFileDoNotMix starts two at once into a file that is not there.
func TestImportsIntoOneFileDoNotMix(t *testing.T) {
	files, _, _ := generatedLists(t, 500)
	path := filepath.Join(t.TempDir(), "registry.db")
	runs, outputs := make([]*exec.Cmd, 2), make([]bytes.Buffer, 2)
	for i := range runs {
		runs[i] = importProcess(path, "2025-01-01", files)
		runs[i].Stdout, runs[i].Stderr = &outputs[i], &outputs[i]
		require.NoError(t, runs[i].Start())
	}
	failed := 0
	for i, run := range runs {
		if run.Wait() != nil {
			failed++
			require.Contains(t, outputs[i].String(), "another process is writing to the registry")
		}
	}
	require.LessOrEqual(t, failed, 1)
	report, err := verify.File(t.Context(), path, verify.Thorough)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}
