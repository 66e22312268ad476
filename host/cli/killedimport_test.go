package cli

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

// sampleState is the same for a few companies, so that a reader can query far more often.
const sampleState = `SELECT (SELECT count(*) FROM release), count(c.cin), sum(c.company_name LIKE '%NEWER%'), sum(n.name LIKE '%newer%'),
  (SELECT count(*) FROM unreleased) + (SELECT count(*) FROM search_pending), count(n.value)
  FROM json_each(?1) s LEFT JOIN company c ON c.cin = s.value LEFT JOIN search_name n ON n.value = s.value`

// changedSample selects such companies: some hundred of those that an import changes, from the first to
// the last, or of all, if it is the first import.
const changedSample = `SELECT json_group_array(cin) FROM (SELECT cin, row_number() OVER (ORDER BY cin) AS n, count(*) OVER () AS total
  FROM company WHERE company_name LIKE ?1) WHERE n % max(1, total / 300) = 0`

// TestAnImportThatIsKilledIsOldOrNew kills real imports at moments that are spread over their time,
// while an edge and a new reader each look at the file again and again: a first import, one that
// changes few names (whose search entries are updated), and one that changes all (whose index is
// built anew).
func TestAnImportThatIsKilledIsOldOrNew(t *testing.T) {
	t.Parallel()
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

// killImports kills n imports into copies of base, or into no file, and completes the last. A file that
// a kill left as it was before is the next one's, with what else the kill left there.
func killImports(t *testing.T, base string, files []string, n int) {
	path := filepath.Join(t.TempDir(), "registry.db")
	fresh := func() {
		for _, name := range besides(t, path) {
			require.NoError(t, os.Remove(name))
		}
		if base == "" {
			return
		}
		content, err := os.ReadFile(base)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
	fresh()
	before := stateOf(t, path)
	alone := imports(t, path, "2025-02-01", files)
	pause := max(5*time.Millisecond, alone/400)
	after := stateOf(t, path)
	require.NotEqual(t, before, after)
	known := []string{before, after}
	some := sampleOf(t, path, base)
	afterSample := some.stateOf(t, path)
	fresh()
	known = append(known, some.stateOf(t, path), afterSample)

	look := startLooking(t, path, some, pause)
	length := imports(t, path, "2025-02-01", files) // beside the readers it takes longer
	seen := counted(look.end())
	state, old := after, 0
	for i := range n {
		if state == after {
			fresh()
		}
		look = startLooking(t, path, some, pause)
		run := importProcess(path, "2025-02-01", files)
		require.NoError(t, run.Start())
		at := length * time.Duration(5*(2*i+1)) / time.Duration(4*2*n) // the last ones may be after its end
		time.Sleep(at)
		require.NoError(t, run.Process.Kill())
		_ = run.Wait() // its error is the kill
		for state, times := range counted(look.end()) {
			seen[state] += times
		}
		if state = stateOf(t, path); state == before {
			old++
			if at > length { // the machine has become slower: the next ones are to reach the end
				length += length / 10
			}
		}
		seen[state]++
		for state := range seen {
			require.Contains(t, known, state, "a mixed state, killed after %v of %v", at, length)
		}
	}
	t.Logf("%d kills within %v (%v without readers), %d of which left the release before; states seen: %v", n, length, alone, old, seen)
	imports(t, path, "2025-02-01", files)
	require.Equal(t, after, stateOf(t, path), "the next import completes it")
	report, err := verify.File(t.Context(), path, verify.Thorough, nil)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	for _, name := range besides(t, path) {
		require.True(t, name == path || strings.HasSuffix(name, "-shm") || strings.HasSuffix(name, "-wal"), name)
	}
}

// besides lists a registry's file and those beside it.
func besides(t *testing.T, path string) []string {
	t.Helper()
	names, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	return names
}

func counted(states []string) map[string]int {
	times := map[string]int{}
	for _, state := range states {
		times[state]++
	}
	return times
}

// someCINs are the companies that sampleState looks at, as a JSON array.
type someCINs string

// sampleOf chooses companies of the registry after the import into base.
func sampleOf(t *testing.T, path, base string) (cins someCINs) {
	t.Helper()
	db, err := schema.OpenReadOnly(path)
	require.NoError(t, err)
	defer db.Close()
	changed := "%NEWER%"
	if base == "" {
		changed = "%"
	}
	require.NoError(t, db.QueryRow(changedSample, changed).Scan(&cins))
	require.Greater(t, strings.Count(string(cins), ","), 50)
	return cins
}

func (s someCINs) stateOf(t *testing.T, path string) string {
	t.Helper()
	state, err := s.tryState(path)
	require.NoError(t, err)
	return state
}

func (s someCINs) tryState(path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return noRegistry, nil
	}
	return queryState(path, sampleState, string(s))
}

const noRegistry = "no registry"

// stateOf opens the file anew.
func stateOf(t *testing.T, path string) string {
	state, err := tryState(t, path)
	require.NoError(t, err)
	return state
}

func tryState(t *testing.T, path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return noRegistry, nil
	}
	report, err := verify.File(t.Context(), path, verify.Quick, nil)
	if err != nil || !report.Whole() {
		return fmt.Sprint(report.Problems), err
	}
	return queryState(path, registryState)
}

func queryState(path, statement string, args ...any) (string, error) {
	db, err := schema.OpenReadOnly(path)
	if err != nil {
		return "", err
	}
	defer db.Close()
	var n [6]int
	err = db.QueryRow(statement, args...).Scan(&n[0], &n[1], &n[2], &n[3], &n[4], &n[5])
	return fmt.Sprint(n), err
}

// looking are two readers of a file: an edge that keeps it open, and one that opens it again and again.
// Both look at the sample, the second at everything too, as long as that takes a fifth of its time: the
// import needs the processors.
type looking struct {
	stop chan struct{}
	wait sync.WaitGroup
	mu   sync.Mutex
	saw  []string
}

func startLooking(t *testing.T, path string, some someCINs, pause time.Duration) *looking {
	l := &looking{stop: make(chan struct{})}
	l.wait.Go(func() {
		next := time.Now()
		for l.goesOn() {
			time.Sleep(pause)
			state, err := some.tryState(path)
			l.note(state, err)
			if began := time.Now(); began.After(next) {
				state, err := tryState(t, path)
				l.note(state, err)
				next = time.Now().Add(4 * time.Since(began))
			}
		}
	})
	l.wait.Go(func() {
		var database edge.Database
		for l.goesOn() {
			time.Sleep(pause)
			if database == nil {
				opened, err := edge.OpenFile(t.Context(), schema.Registry, path)
				if err != nil {
					continue // there is none yet
				}
				defer opened.Close()
				database = opened
			}
			var result handler.Result
			args := []handler.Value{{Kind: handler.Text, Text: string(some)}}
			err := cmp.Or(database.Refresh(), database.Query(t.Context(), sampleState, args, &result))
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
	report, err := verify.File(t.Context(), path, verify.Thorough, nil)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}
