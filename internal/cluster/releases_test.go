package cluster_test

import (
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"regedge/schema"
	"regedge/schema/search"
)

var releaseCompanies = flag.Int("companies", 20_000, "companies of the registry that BenchmarkReleases pushes")

const (
	// listed is how many companies of each release have names that one search finds.
	listed = 10
	// lookupPause is the time between two requests while releases change.
	lookupPause = 4 * time.Millisecond
)

// releases is a cluster with one edge, a registry file, and what was measured.
type releases struct {
	*fixture
	b        testing.TB
	registry string
	dir      string // of the registry's primary
	key      string
	cins     []string // of the companies that every release changes
	table    strings.Builder
	rows     *tabwriter.Writer

	mu      sync.Mutex
	mark    map[string]string // of each release's records, by its id
	quiet   []time.Duration   // latencies while nothing is pushed
	pushing bool
	busy    []time.Duration // and while something is
	failed  int
	mixed   int
	asked   int
	marked  int // answers that show of which release they are
}

// BenchmarkReleases measures how releases come from a file to an edge that answers lookups meanwhile.
// Run it once: it prints one table.
func BenchmarkReleases(b *testing.B) {
	r := startReleases(b, *releaseCompanies)
	for b.Loop() {
		r.change(onePercent)
		r.push("a full release")
		r.push("nothing changed")
		stop := r.lookUp()
		r.change(onePercent)
		r.push("1%, dry run", "--dry-run")
		r.push("1% of the companies")
		r.rollBack("rollback of it")
		r.change("true")
		r.push("everything changed")
		stop()
		r.addEdge()
	}
	r.summary()
}

// TestEveryAnswerIsOfTheReleaseThatItNames: during a push of single records, a rollback, and a push of
// the whole file.
func TestEveryAnswerIsOfTheReleaseThatItNames(t *testing.T) {
	t.Parallel()
	r := startReleases(t, 6000) // of which 2,000 records are written in a transaction
	r.change("true")
	r.push("a full release")
	stop := r.lookUp()
	r.change("true")
	r.pushRecords("everything, record by record")
	r.rollBack("rollback of it")
	r.push("everything, as a file")
	stop()
	require.Greater(t, r.asked, 200)
	require.Greater(t, r.marked, r.asked/2, "the answers show of which release they are")
	require.Zero(t, r.mixed)
	require.Zero(t, r.failed)
}

// onePercent are one in a hundred companies.
const onePercent = "cin IN (SELECT cin FROM company WHERE rowid % 100 = 0)"

func startReleases(b testing.TB, companies int) *releases {
	b.Helper()
	r := &releases{fixture: startAt(b, "", []placed{{name: "east"}}), b: b, mark: map[string]string{}}
	r.rows = tabwriter.NewWriter(&r.table, 0, 0, 2, ' ', 0)
	r.dir = r.Primaries["registry"].Dir
	r.registry = newRegistry(b, b.TempDir(), companies)
	_, r.key = r.account(1)
	fmt.Fprintln(r.rows, "WHAT\tTIME\tCURRENT AT THE EDGE\tMEMORY\tWRITTEN BY THE PRIMARY")
	return r
}

// change makes a release in which the companies that a condition names have another city, and a few of
// them other names.
func (r *releases) change(which string) {
	r.b.Helper()
	n := len(r.mark) + 1
	mark := fmt.Sprintf("R%dX", n)
	db, err := schema.OpenFile(r.registry)
	require.NoError(r.b, err)
	defer db.Close()
	conn, err := db.Conn(r.b.Context())
	require.NoError(r.b, err)
	defer conn.Close()
	id := fmt.Sprintf("bench-%d", n)
	require.NoError(r.b, conn.Raw(func(c any) error {
		raw := c.(driver.Conn).Raw()
		few := fmt.Sprintf("(SELECT cin FROM company WHERE rowid %% 100 = 0 AND status = 'ACTIVE' ORDER BY cin LIMIT %d)", listed)
		for _, statement := range []string{
			"UPDATE company SET city = '" + mark + "' WHERE " + which,
			"UPDATE company SET company_name = 'MIXEDUP " + mark + " ' || cin || ' PRIVATE LIMITED' WHERE cin IN " + few,
			"INSERT INTO search_pending SELECT cin FROM company WHERE cin IN " + few,
		} {
			if err := raw.Exec(statement); err != nil {
				return err
			}
		}
		return refreshAndRelease(raw, id)
	}))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mark[id] = mark
	if r.cins == nil {
		rows, err := db.Query("SELECT cin FROM company WHERE rowid % 100 = 0 LIMIT 500")
		require.NoError(r.b, err)
		defer rows.Close()
		for rows.Next() {
			var cin string
			require.NoError(r.b, rows.Scan(&cin))
			r.cins = append(r.cins, cin)
		}
	}
}

func refreshAndRelease(raw *sqlite3.Conn, id string) error {
	if _, err := search.Refresh(raw); err != nil {
		return err
	}
	return raw.Exec(`INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners)
		SELECT '` + id + `', released_at + 1, companies, llps, directors, appointments, partners FROM release ORDER BY seq DESC LIMIT 1`)
}

// push runs regedge push, and adds a row to the table.
func (r *releases) push(what string, more ...string) {
	r.b.Helper()
	args, env, err := r.PushArgs(r.registry)
	require.NoError(r.b, err)
	r.run(what, append(append(args, "--primary-dir", r.dir), more...), env)
}

func (r *releases) pushRecords(what string) {
	r.b.Helper()
	args, env, err := r.PushArgs(r.registry)
	require.NoError(r.b, err)
	r.run(what, args, env)
}

func (r *releases) rollBack(what string) {
	r.b.Helper()
	args, env, err := r.PushArgs(r.registry)
	require.NoError(r.b, err)
	r.run(what, append([]string{"rollback", "--yes"}, args[2:]...), env)
}

func (r *releases) run(what string, args, env []string) {
	r.b.Helper()
	r.setPushing(true)
	defer r.setPushing(false)
	pid, before := r.written()
	command := r.command(args, env)
	began := time.Now()
	memory, out, err := runWatched(command)
	require.NoError(r.b, err, out)
	took := time.Since(began)
	release := r.release()
	ctx := r.b.Context()
	require.NoError(r.b, r.Edges[0].Ready(ctx))
	require.Eventually(r.b, func() bool {
		a, err := fetch(http.DefaultClient, r.Edges[0].URL, "/v1/companies/"+r.cins[0], r.key)
		return err == nil && a.release == release
	}, 20*time.Minute, 20*time.Millisecond)
	arrived := time.Since(began)
	now, after := r.written()
	if now != pid {
		before = 0 // it was started again
	}
	r.row("%s\t%.1f s\t%.1f s\t%d MB\t%d MB\n", what, took.Seconds(), arrived.Seconds(), memory>>10, (after-before)>>20)
}

// runWatched runs a command, and returns its output and the most memory that it had, in KiB. What
// wait4 says of a child's memory begins with that of its parent.
func runWatched(command *exec.Cmd) (memory int64, out string, err error) {
	var said strings.Builder
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		return 0, "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case err := <-ended:
			return memory, said.String(), err
		case <-time.After(20 * time.Millisecond):
			memory = max(memory, figure(fmt.Sprintf("/proc/%d/status", command.Process.Pid), peak))
		}
	}
}

var (
	peak       = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)
	writeBytes = regexp.MustCompile(`(?m)^write_bytes: (\d+)$`)
)

// figure reads a number from a file below /proc, 0 if it is not there.
func figure(path string, pattern *regexp.Regexp) (n int64) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	if found := pattern.FindSubmatch(content); found != nil {
		_, _ = fmt.Sscan(string(found[1]), &n)
	}
	return n
}

func (r *releases) setPushing(now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pushing = now
}

// written is how much the process of the primary has written to its disk.
func (r *releases) written() (pid int, bytes int64) {
	pid = r.Primaries["registry"].PID()
	return pid, figure(fmt.Sprintf("/proc/%d/io", pid), writeBytes)
}

// lookUp asks the edge until the function that it returns is called.
func (r *releases) lookUp() (stop func()) {
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-time.After(lookupPause):
			}
			path := "/v1/companies/" + r.cins[n%len(r.cins)]
			if n%10 == 0 {
				path = fmt.Sprintf("/v1/search/companies?name=mixedup&limit=%d", listed)
			}
			began := time.Now()
			a, err := fetch(http.DefaultClient, r.Edges[0].URL, path, r.key)
			r.judge(a, err, time.Since(began))
		}
	})
	time.Sleep(3 * time.Second) // some answers of a quiet edge
	return func() { close(done); wait.Wait() }
}

var marks = regexp.MustCompile(`R\d+X`)

// judge notes an answer: it is mixed if it has a mark of another release than its header's.
func (r *releases) judge(a answer, err error, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.pushing {
		r.busy = append(r.busy, took)
	} else {
		r.quiet = append(r.quiet, took)
	}
	if err != nil || a.status != http.StatusOK {
		r.failed++
		return
	}
	shown := marks.FindAllString(a.data, -1)
	if len(shown) > 0 {
		r.marked++
	}
	if slices.ContainsFunc(shown, func(m string) bool { return m != r.mark[a.release] }) {
		r.mixed++
	}
}

// addEdge measures a new edge, from its registration to its first answer.
func (r *releases) addEdge() {
	r.b.Helper()
	began := time.Now()
	e, err := r.AddEdge(r.b.Context(), "west")
	require.NoError(r.b, err)
	require.Eventually(r.b, func() bool {
		a, err := fetch(http.DefaultClient, e.URL, "/v1/companies/"+r.cins[0], r.key)
		return err == nil && a.status == http.StatusOK
	}, 20*time.Minute, 20*time.Millisecond)
	r.row("a new edge\t\t%.1f s\t\t\n", time.Since(began).Seconds())
}

// row adds a row to the table, and shows it at once: at the country's size each takes minutes.
func (r *releases) row(format string, values ...any) {
	fmt.Fprintf(os.Stderr, format, values...)
	fmt.Fprintf(r.rows, format, values...)
}

func (r *releases) summary() {
	r.b.Helper()
	require.NoError(r.b, r.rows.Flush())
	info, err := os.Stat(r.registry)
	require.NoError(r.b, err)
	size := func(dir string) float64 { return float64(sizeOf(dir)) / float64(info.Size()) }
	fmt.Printf("\n%d companies, a registry of %d MB\n%s", *releaseCompanies, info.Size()>>20, r.table.String())
	fmt.Printf("requests meanwhile: %d, failed %d, mixed two releases %d; p99 quiet %v, during a push %v\n",
		r.asked, r.failed, r.mixed, p99(r.quiet), p99(r.busy))
	fmt.Printf("disk, times the registry: primary %.2f, replica %.2f, new edge's %.2f\n",
		size(r.dir), size(r.Edges[0].Replicas["registry"].Dir), size(r.Edges[1].Replicas["registry"].Dir))
	require.Zero(r.b, r.mixed)
}

func p99(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*99/100].Round(10 * time.Microsecond)
}

// sizeOf is the size of all files in a folder.
func sizeOf(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // removed meanwhile
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}
