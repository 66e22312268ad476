package push

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
	"regedge/schema/content"
	"regedge/schema/generate"
	"regedge/schema/importer"
	"regedge/schema/search"
)

// companies is the size of the test registries; small with -short, which the race detector is run with.
func companies() int {
	if testing.Short() {
		return 200
	}
	return 1500
}

// base is the path of the registry that tests copy.
var base = sync.OnceValues(func() (string, error) {
	made, err := generate.Run(context.Background(), generate.Config{Companies: companies(), Seed: 3, Out: baseDir})
	if err != nil {
		return "", err
	}
	config := importer.Config{Registry: filepath.Join(baseDir, "registry.db"), AsOf: "2025-05-05"}
	for _, file := range made.Files {
		config.Files = append(config.Files, filepath.Join(baseDir, filepath.Base(file.Name)))
	}
	_, err = importer.Run(context.Background(), config)
	return config.Registry, err
})

// fixture is a registry file, a folder of snapshots and a primary.
type fixture struct {
	t         *testing.T
	registry  string
	snapshots string
	server    *sqld.Server
	client    *sql.DB
	lose      atomic.Int64 // counted down with each answer; the one that reaches 0 is lost
	// commits counts the transactions that came to the proxy. Of the one whose number it then is,
	// the answer is lost, or the transaction itself.
	commits, loseCommit, dropCommit atomic.Int64
	// lateCommit is the number of one that is cut off, and arrives just after the next one.
	lateCommit atomic.Int64
	late       []byte
	releases   int
	later      time.Duration // by which pushes come
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return fixtureOf(t, sqldtest.Primary(t))
}

// pushedOnce are the folders of the first fixture of newPushed, once its release was pushed, below baseDir.
var pushedOnce struct{ server, snapshots, release string }

// newPushed returns a fixture whose primary has the registry, and its release. The first one pushes it, the others
// copy its files.
func newPushed(t *testing.T) (*fixture, string) {
	t.Helper()
	kept := &pushedOnce
	if kept.release == "" {
		f := newFixture(t)
		release := f.push().Release
		f.server.Stop()
		dir, err := os.MkdirTemp(baseDir, "pushed-")
		require.NoError(t, err)
		kept.server, kept.snapshots = filepath.Join(dir, "server"), filepath.Join(dir, "snapshots")
		require.NoError(t, os.CopyFS(kept.server, os.DirFS(f.server.Dir)))
		require.NoError(t, os.CopyFS(kept.snapshots, os.DirFS(f.snapshots)))
		kept.release = release
	}
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.CopyFS(dir, os.DirFS(kept.server)))
	f := fixtureOf(t, sqldtest.Start(t, sqld.Config{Dir: dir, HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t)}))
	require.NoError(t, os.CopyFS(f.snapshots, os.DirFS(kept.snapshots)))
	return f, kept.release
}

// fixtureOf returns a fixture of a primary.
func fixtureOf(t *testing.T, primary *sqld.Server) *fixture {
	t.Helper()
	f := &fixture{t: t, server: primary}
	path, err := base()
	require.NoError(t, err)
	dir := t.TempDir()
	f.registry, f.snapshots = filepath.Join(dir, "registry.db"), filepath.Join(dir, "snapshots")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.registry, content, 0o600))
	f.client, err = libsql.Open(f.proxy(), "")
	require.NoError(t, err)
	t.Cleanup(func() { f.client.Close() })
	return f
}

// proxy is a reverse proxy of the primary that can lose an answer.
func (f *fixture) proxy() string {
	target, err := url.Parse(f.server.URL())
	require.NoError(f.t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		// The body is read first: the server closes it with the first byte of an answer, which may
		// come before the transport has read the body's end.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("INTO pushing")) || bytes.Contains(body, []byte("UPDATE pushing")) {
			n := f.commits.Add(1)
			if n == f.dropCommit.Load() {
				panic(http.ErrAbortHandler)
			}
			if n == f.lateCommit.Load() {
				f.late = body
				panic(http.ErrAbortHandler)
			}
			if n == f.lateCommit.Load()+1 && f.late != nil {
				to, answer := rw, httptest.NewRecorder()
				defer func() {
					f.arrivesLate(target.String() + r.URL.Path)
					_, _ = to.Write(answer.Body.Bytes())
				}()
				rw = answer
			}
			if n == f.loseCommit.Load() {
				f.lose.Store(1)
			}
		}
		if f.lose.Add(-1) == 0 {
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(rw, r)
	}))
	f.t.Cleanup(front.Close)
	return front.URL
}

// arrivesLate sends the transaction that was cut off, whatever the answer.
func (f *fixture) arrivesLate(url string) {
	answer, err := http.Post(url, "application/json", bytes.NewReader(f.late))
	if err == nil {
		_ = answer.Body.Close()
	}
	f.late = nil
}

// primary opens the primary past the proxy.
func (f *fixture) primary() *sql.DB {
	f.t.Helper()
	return sqldtest.Open(f.t, f.server)
}

// snapshot makes the snapshot of the newest release.
func (f *fixture) snapshot() string {
	f.t.Helper()
	release, err := Snapshot(f.t.Context(), f.registry, f.snapshots, nil)
	require.NoError(f.t, err)
	return release
}

func (f *fixture) config(release string) Config {
	return Config{
		Snapshots: f.snapshots, Release: release, Primary: f.client,
		Now:   func() time.Time { return time.Now().Add(f.later) },
		Pause: func(context.Context, time.Duration) {},
	}
}

// whileWriting calls do after each transaction.
func whileWriting(do func()) func(Progress) {
	return func(p Progress) {
		if p.Stage == Writing {
			do()
		}
	}
}

// push pushes the newest release, and requires that the primary is the same then.
func (f *fixture) push() Report {
	f.t.Helper()
	release := f.snapshot()
	report, err := Run(f.t.Context(), f.config(release))
	require.NoError(f.t, err)
	f.same(release)
	return report
}

// edit changes the registry file as an import would, with a release at the end. changed are the
// CINs and LLPINs whose search entries may differ.
func (f *fixture) edit(changed []string, statements ...string) {
	f.t.Helper()
	db, err := schema.OpenFile(f.registry)
	require.NoError(f.t, err)
	defer db.Close()
	conn, err := db.Conn(f.t.Context())
	require.NoError(f.t, err)
	defer conn.Close()
	f.releases++
	require.NoError(f.t, conn.Raw(func(c any) error {
		raw := c.(driver.Conn).Raw()
		for _, s := range statements {
			require.NoError(f.t, raw.Exec(s), s)
		}
		for _, value := range changed {
			require.NoError(f.t, raw.Exec(fmt.Sprintf("INSERT INTO search_pending VALUES ('%s')", value)))
		}
		_, err := search.Refresh(raw)
		require.NoError(f.t, err)
		return raw.Exec(fmt.Sprintf(`INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners)
			VALUES ('edit-%[1]d', unixepoch() + %[1]d, (SELECT count(*) FROM company), (SELECT count(*) FROM llp), (SELECT count(*) FROM director),
			(SELECT count(*) FROM appointment), (SELECT count(*) FROM partner))`, f.releases))
	}))
}

// dumped are queries whose results must be the same in a snapshot and at the primary: the records
// without their dates, and the tables of push and search.
func dumped() (queries []string) {
	for _, k := range kinds {
		for _, t := range content.Tables[k] {
			compared := slices.DeleteFunc(slices.Clone(t.Columns), func(c string) bool { return c == "as_of" || c == "older" || c == "place" })
			queries = append(queries, "SELECT "+strings.Join(compared, ", ")+" FROM "+t.Name+" ORDER BY "+strings.Join(t.Columns[:t.Primary], ", "))
		}
	}
	return append(queries,
		"SELECT value, name, place & 268435455, place >> 32 FROM search_name ORDER BY place", "SELECT * FROM search_common ORDER BY 1",
		contentNow+" ORDER BY 1, 2, 3",
		"SELECT * FROM content_part WHERE records > 0 ORDER BY 1",
		"SELECT id FROM release ORDER BY seq DESC LIMIT 1",
	)
}

// same requires that the primary holds what a snapshot holds, and checks every term of its search index. It
// reads a copy of the primary's file: over HTTP it takes ten times as long.
func (f *fixture) same(release string) {
	f.t.Helper()
	near, err := schema.OpenReadOnly(snapshotPath(f.snapshots, release))
	require.NoError(f.t, err)
	defer near.Close()
	copied := f.copied()
	far, err := schema.OpenFile(copied)
	require.NoError(f.t, err)
	defer far.Close()
	for _, query := range dumped() {
		require.Equal(f.t, dump(f.t, near, query), dump(f.t, far, query), query)
	}
	require.Equal(f.t, dump(f.t, far, sumsOfContent), dump(f.t, far, "SELECT * FROM content_part WHERE records > 0 ORDER BY 1"))
	c, err := sqlite3.Open(copied)
	require.NoError(f.t, err)
	defer c.Close()
	require.NoError(f.t, schema.Prepare(c, false))
	require.NoError(f.t, search.Check(c))
}

// contentNow are the hashes of all records.
const contentNow = `SELECT bucket, kind, key, hash FROM content WHERE (bucket, kind, key) NOT IN (SELECT bucket, kind, key FROM content_newer)
	UNION ALL SELECT bucket, kind, key, hash FROM content_newer WHERE hash IS NOT NULL`

// sumsOfContent computes what content_part must hold.
const sumsOfContent = `SELECT bucket >> 20, count(*), sum(hash & 4294967295), sum(hash >> 32) FROM (` + contentNow + `) GROUP BY 1 ORDER BY 1`

func dump(t *testing.T, db *sql.DB, query string) (lines []string) {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err, query)
	defer rows.Close()
	names, err := rows.Columns()
	require.NoError(t, err)
	cells := make([]sql.NullString, len(names))
	into := make([]any, len(names))
	for i := range cells {
		into[i] = &cells[i]
	}
	for rows.Next() {
		require.NoError(t, rows.Scan(into...))
		lines = append(lines, fmt.Sprint(cells))
	}
	require.NoError(t, rows.Err())
	return lines
}

// copied is a copy of the primary's file.
func (f *fixture) copied() string {
	f.t.Helper()
	copied := filepath.Join(f.t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(sqld.File(f.server.Dir) + suffix)
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(f.t, err)
		require.NoError(f.t, os.WriteFile(copied+suffix, content, 0o600))
	}
	return copied
}

// baseDir is where base makes its registry, below a folder that TestMain removes.
var baseDir string

// TestMain runs the tests in India's time zone, so that a local time passed off as UTC is noticed.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("IST", 5*3600+1800)
	var err error
	if baseDir, err = os.MkdirTemp("", "regedge-push-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(baseDir)
	os.Exit(code)
}
