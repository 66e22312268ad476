package cluster_test

import (
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/cluster"
	"regedge/internal/testkit"
	"regedge/schema"
	"regedge/schema/search"
)

var (
	releaseCompanies = flag.Int("companies", 20_000, "companies of the registry that BenchmarkReleases pushes")
	releasePushes    = flag.Int("pushes", 10, "pushes of 1% after which BenchmarkReleases measures the disks")
)

const (
	// listed is how many companies of each release have names that one search finds.
	listed = 10
	// lookupsEach is how many requests are made a second while releases change, lookupsAtOnce how many of them wait at most.
	lookupsEach   = 500
	lookupsAtOnce = 64
)

// releases is a cluster with one edge, a registry file, and what was measured.
type releases struct {
	*fixture
	b        testing.TB
	registry string
	dir      string           // of the registry's primary
	gate     *testkit.Process // the command regedge primary of that
	mirrored atomic.Bool      // whether the mirror shows what was uploaded there
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
		r.addEdges("a new edge", "west")
		r.removeEdge(1)
		r.addEdges("two new edges at once", "north", "south")
		r.removeEdge(2)
		r.removeEdge(3)
		r.mirrored.Store(true)
		r.addEdges("a new edge, by a mirror", "coast")
		r.removeEdge(4)
		r.addEdges("two new edges at once, by a mirror", "hills", "plains")
		r.absent(5)
		r.manyPushes()
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
	r.push("everything, as a file", "--yes", "0") // it was rolled back
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
	r.ownPrimary()
	r.registry = newRegistry(b, b.TempDir(), companies)
	_, r.key = r.account(1)
	fmt.Fprintln(r.rows, "WHAT\tTIME\tCURRENT AT THE EDGE\tMEMORY\tPUSH WRITES\tPRIMARY WRITES\tSENDS TO THE EDGES\tITS PROCESSOR TIME")
	return r
}

// mirror is a web server of the test, and the command by which the primary uploads to it.
func (r *releases) mirror() (address, upload string) {
	folder := r.b.TempDir()
	files := http.FileServer(http.Dir(folder))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, call *http.Request) {
		if !r.mirrored.Load() {
			http.NotFound(w, call)
			return
		}
		files.ServeHTTP(w, call)
	}))
	r.b.Cleanup(web.Close)
	return web.URL, fmt.Sprintf(`rm -f %[1]s/*; cp "$REGEDGE_FILE" %[1]s/"$REGEDGE_NAME"`, folder)
}

// ownPrimary has a process of its own run the primary, so that what it does can be told from what the test does.
func (r *releases) ownPrimary() {
	r.b.Helper()
	mirror, upload := r.mirror()
	p := r.Primaries["registry"]
	p.Stop()
	alone := r.b.TempDir() // away from the keys that sign, which a primary refuses to see
	own := func(file string) string {
		content, err := os.ReadFile(file)
		require.NoError(r.b, err)
		path := filepath.Join(alone, filepath.Base(file))
		require.NoError(r.b, os.WriteFile(path, content, 0o600))
		return path
	}
	r.gate = &testkit.Process{
		Program: r.Regedge, Log: r.log,
		Args: []string{"primary", "--sqld", p.Program, "--dir", p.Dir, "--listen", p.HTTP, "--replication", p.GRPC, "--jwt-key", own(p.JWTKeyFile),
			"--tls-ca", own(p.TLS.CA), "--tls-cert", own(p.TLS.Cert), "--tls-key", own(p.TLS.Key),
			"--mirror", mirror, "--mirror-upload", upload},
	}
	require.NoError(r.b, r.gate.Start())
	r.b.Cleanup(r.gate.Stop)
	token, err := r.Token("registry", pki.ReadWrite)
	require.NoError(r.b, err)
	require.Eventually(r.b, func() bool {
		var one int
		return r.open(p, token).QueryRow("SELECT 1").Scan(&one) == nil
	}, patience, 50*time.Millisecond, r.gate)
}

// serverOf is the process id of the server that runs in a directory, 0 if none does.
func serverOf(dir string) (pid int) {
	content, err := os.ReadFile(filepath.Join(dir, "regedge.lock"))
	if err != nil {
		return 0
	}
	_, _ = fmt.Sscan(string(content), &pid)
	return pid
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
	before := r.primary()
	command := r.command(args, env)
	began := time.Now()
	memory, written, out, err := runWatched(command)
	require.NoError(r.b, err, out)
	took := time.Since(began)
	require.NoError(r.b, r.Edges[0].Ready(r.b.Context()))
	r.current(r.Edges[0])
	r.row(what, fmt.Sprintf("%.1f s\t%.1f s\t%d MB\t%d MB", took.Seconds(), time.Since(began).Seconds(), memory>>10, written>>20), before)
}

// current waits until an edge answers from the newest release.
func (r *releases) current(e *cluster.Edge) {
	r.b.Helper()
	release := r.release()
	require.Eventually(r.b, func() bool {
		a, err := fetch(http.DefaultClient, e.URL, "/v1/companies/"+r.cins[0], r.key)
		return err == nil && a.release == release
	}, 20*time.Minute, 20*time.Millisecond)
}

// runWatched runs a command, and returns its output, the most memory that it had, in KiB, and the bytes that it wrote
// to disks. What wait4 says of a child's memory begins with that of its parent.
func runWatched(command *exec.Cmd) (memory, written int64, out string, err error) {
	var said strings.Builder
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		return 0, 0, "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case err := <-ended:
			return memory, written, said.String(), err
		case <-time.After(20 * time.Millisecond):
			memory = max(memory, figure(fmt.Sprintf("/proc/%d/status", command.Process.Pid), peak))
			written = max(written, figure(fmt.Sprintf("/proc/%d/io", command.Process.Pid), writeBytes))
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

// work is what a primary has done: its server, and the command that runs it and its gate.
type work struct {
	server, gate process
	sent         int64 // bytes between it and the replicas of all edges
}

// process is what a process has done.
type process struct {
	pid     int
	written int64         // bytes, to its disk
	busy    time.Duration // of processors
}

func look(pid int) process {
	return process{pid, figure(fmt.Sprintf("/proc/%d/io", pid), writeBytes), busy(pid)}
}

// since is the work since before. A process that was started again began from nothing.
func (p process) since(before process) process {
	if p.pid == before.pid {
		p.written -= before.written
		p.busy -= before.busy
	}
	return p
}

func (r *releases) primary() (w work) {
	w.server, w.gate = look(serverOf(r.dir)), look(r.gate.PID())
	for _, e := range r.Edges {
		w.sent += e.Replicated("registry")
	}
	return w
}

// busy is the processor time of a process (proc_pid_stat(5): utime and stime, in hundredths of a second).
func busy(pid int) time.Duration {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	var ticks time.Duration
	for _, field := range fields[11:13] {
		n, _ := strconv.Atoi(field)
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

// lookUp asks the edge, lookupsEach second, until the function that it returns is called. A slow answer holds up no other request,
// but for lookupsAtOnce.
func (r *releases) lookUp() (stop func()) {
	done := make(chan struct{})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: lookupsAtOnce}}
	var wait sync.WaitGroup
	wait.Go(func() {
		ticks := time.NewTicker(time.Second / lookupsEach)
		defer ticks.Stop()
		room := make(chan struct{}, lookupsAtOnce)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-ticks.C:
			}
			room <- struct{}{}
			wait.Go(func() {
				r.lookUpOnce(client, n)
				<-room
			})
		}
	})
	time.Sleep(3 * time.Second) // some answers of a quiet edge
	return func() { close(done); wait.Wait(); client.CloseIdleConnections() }
}

// path asks for a company, or each tenth time for a list.
func (r *releases) path(n int) string {
	if n%10 == 0 {
		return fmt.Sprintf("/v1/search/companies?name=mixedup&limit=%d", listed)
	}
	return "/v1/companies/" + r.cins[n%len(r.cins)]
}

func (r *releases) lookUpOnce(client *http.Client, n int) {
	began := time.Now()
	a, err := fetch(client, r.Edges[0].URL, r.path(n), r.key)
	r.judge(a, err, time.Since(began))
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

// addEdges measures new edges, from their registration until the last of them has answered.
func (r *releases) addEdges(what string, names ...string) {
	r.b.Helper()
	before, began := r.primary(), time.Now()
	first := len(r.Edges)
	for _, name := range names {
		_, err := r.AddEdge(r.b.Context(), name)
		require.NoError(r.b, err)
	}
	for _, e := range r.Edges[first:] {
		r.current(e)
	}
	r.addRow(what, began, before)
}

// removeEdge ends an edge, and removes its files.
func (r *releases) removeEdge(n int) {
	r.b.Helper()
	e := r.Edges[n]
	e.Stop()
	for _, replica := range e.Replicas {
		replica.Stop()
		require.NoError(r.b, os.RemoveAll(replica.Dir))
	}
}

// absent measures how an edge becomes current whose replica did not run during two pushes.
func (r *releases) absent(n int) {
	r.b.Helper()
	replica := r.Edges[n].Replicas["registry"]
	replica.Stop()
	for range 2 {
		r.change(onePercent)
		r.push("1%, with an edge away")
	}
	before, began := r.primary(), time.Now()
	require.NoError(r.b, replica.Start())
	r.current(r.Edges[n])
	r.addRow("the edge comes back", began, before)
}

// manyPushes pushes 1% again and again.
func (r *releases) manyPushes() {
	r.b.Helper()
	for n := range *releasePushes {
		r.change(onePercent)
		r.push(fmt.Sprintf("1%%, push %d of %d", n+1, *releasePushes))
	}
}

// addRow adds the row of something that is no push.
func (r *releases) addRow(what string, began time.Time, before work) {
	r.row(what, fmt.Sprintf("\t%.1f s\t\t", time.Since(began).Seconds()), before)
}

// row adds a row to the table, and shows it at once: at the country's size each takes minutes.
func (r *releases) row(what, ofPush string, before work) {
	now := r.primary()
	server, gate := now.server.since(before.server), now.gate.since(before.gate)
	row := fmt.Sprintf("%s\t%s\t%d MB\t%.1f MB\t%.2f s\n", what, ofPush,
		(server.written+gate.written)>>20, float64(now.sent-before.sent)/(1<<20), (server.busy + gate.busy).Seconds())
	fmt.Fprint(os.Stderr, row)
	fmt.Fprint(r.rows, row)
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
	last := r.Edges[len(r.Edges)-1]
	fmt.Printf("disk, times the registry: primary %.2f, replica %.2f, new edge's %.2f\n",
		size(r.dir), size(r.Edges[0].Replicas["registry"].Dir), size(last.Replicas["registry"].Dir))
	for _, dir := range []string{r.dir, r.Edges[0].Replicas["registry"].Dir, last.Replicas["registry"].Dir} {
		fmt.Println(largest(dir))
	}
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

// largest names the files of a folder that take more than a hundredth of it.
func largest(dir string) string {
	whole := sizeOf(dir)
	var names []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // removed meanwhile
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Size() > whole/100 {
			name, _ := filepath.Rel(dir, path)
			names = append(names, fmt.Sprintf("%s %d MB", name, info.Size()>>20))
		}
		return nil
	})
	return filepath.Base(dir) + ": " + strings.Join(names, ", ")
}
