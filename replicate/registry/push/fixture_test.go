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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
	"regedge/schema/generate"
	"regedge/schema/importer"
	"regedge/schema/search"
)

// companies is the size of the registries of the tests. The race detector makes them slow.
func companies() int {
	if testing.Short() {
		return 200
	}
	return 1500
}

// base is the path of a registry that the tests copy.
var base = sync.OnceValues(func() (string, error) {
	made, err := generate.Run(context.Background(), generate.Config{Companies: companies(), Seed: 3, Out: baseDir})
	if err != nil {
		return "", err
	}
	config := importer.Config{Registry: filepath.Join(baseDir, "registry.db"), AsOf: "2025-01-01"}
	for _, f := range made.Files {
		config.Files = append(config.Files, filepath.Join(baseDir, filepath.Base(f.Name)))
	}
	_, err = importer.Run(context.Background(), config)
	return config.Registry, err
})

// world is a registry file, a folder of snapshots and a primary.
type world struct {
	t         *testing.T
	registry  string
	snapshots string
	server    *sqld.Server
	client    *sql.DB
	lose      atomic.Int64 // answers to lose, counted down; negative ones lose none
	releases  int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, server: sqldtest.Primary(t)}
	path, err := base()
	require.NoError(t, err)
	dir := t.TempDir()
	w.registry, w.snapshots = filepath.Join(dir, "registry.db"), filepath.Join(dir, "snapshots")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.registry, content, 0o600))
	w.client, err = libsql.Open(w.proxy(), "")
	require.NoError(t, err)
	t.Cleanup(func() { w.client.Close() })
	return w
}

// proxy stands before the primary and loses answers when it is told to.
func (w *world) proxy() string {
	target, err := url.Parse(w.server.URL())
	require.NoError(w.t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		// The body is taken whole: net/http's server closes it with the first byte of an answer,
		// which may come before the forwarding transport has seen the body's end.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if w.lose.Add(-1) == 0 {
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(front.Close)
	return front.URL
}

// primary opens the primary past the proxy.
func (w *world) primary() *sql.DB {
	w.t.Helper()
	return sqldtest.Open(w.t, w.server)
}

// snapshot makes the snapshot of the newest release.
func (w *world) snapshot() string {
	w.t.Helper()
	release, err := Snapshot(w.t.Context(), w.registry, w.snapshots)
	require.NoError(w.t, err)
	return release
}

func (w *world) config(release string) Config {
	return Config{
		Snapshots: w.snapshots, Release: release, Primary: w.client, Now: time.Now,
		Pause: func(context.Context, time.Duration) {},
	}
}

// push pushes the newest release and checks that all of it arrived.
func (w *world) push() Report {
	w.t.Helper()
	release := w.snapshot()
	report, err := Run(w.t.Context(), w.config(release))
	require.NoError(w.t, err)
	w.same(release)
	return report
}

// edit changes the registry file by hand, as an import would, and completes a release.
func (w *world) edit(changed []string, statements ...string) {
	w.t.Helper()
	db, err := schema.OpenFile(w.registry, false)
	require.NoError(w.t, err)
	defer db.Close()
	conn, err := db.Conn(w.t.Context())
	require.NoError(w.t, err)
	defer conn.Close()
	w.releases++
	require.NoError(w.t, conn.Raw(func(c any) error {
		raw := c.(driver.Conn).Raw()
		for _, s := range statements {
			require.NoError(w.t, raw.Exec(s), s)
		}
		for _, value := range changed {
			require.NoError(w.t, raw.Exec(fmt.Sprintf("INSERT INTO search_pending VALUES ('%s')", value)))
		}
		_, err := search.Refresh(raw)
		require.NoError(w.t, err)
		return raw.Exec(fmt.Sprintf(`INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners)
			VALUES ('edit-%[1]d', unixepoch() + %[1]d, (SELECT count(*) FROM company), (SELECT count(*) FROM llp), (SELECT count(*) FROM director),
			(SELECT count(*) FROM appointment), (SELECT count(*) FROM partner))`, w.releases))
	}))
}

// dumped are what must be the same on both sides: the tables of records but for their dates,
// and what a push keeps beside them.
func dumped() (queries []string) {
	for _, k := range kinds {
		for _, t := range tables[k] {
			queries = append(queries, "SELECT "+strings.Join(t.compared(), ", ")+" FROM "+t.name+" ORDER BY "+strings.Join(t.columns[:t.primary], ", "))
		}
	}
	return append(queries,
		"SELECT value, name, place & 268435455, place >> 32 FROM search_name ORDER BY place", "SELECT * FROM search_common ORDER BY 1",
		"SELECT * FROM content ORDER BY 1, 2, 3",
		"SELECT * FROM content_part WHERE records > 0 ORDER BY 1",
		"SELECT id FROM release ORDER BY seq DESC LIMIT 1",
	)
}

// same compares the primary with a snapshot, and checks the primary's search.
func (w *world) same(release string) {
	w.t.Helper()
	near, err := schema.OpenFile(snapshotPath(w.snapshots, release), true)
	require.NoError(w.t, err)
	defer near.Close()
	far := w.primary()
	for _, query := range dumped() {
		require.Equal(w.t, dump(w.t, near, query), dump(w.t, far, query), query)
	}
	require.Equal(w.t, dump(w.t, far, sumsOfContent), dump(w.t, far, "SELECT * FROM content_part WHERE records > 0 ORDER BY 1"))
	w.checkSearch()
}

// sumsOfContent is what content_part must hold.
const sumsOfContent = `SELECT bucket >> 20, count(*), sum(hash & 4294967295), sum(hash >> 32) FROM content GROUP BY 1 ORDER BY 1`

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

// checkSearch checks every term of the index in a copy of the primary's file.
func (w *world) checkSearch() {
	w.t.Helper()
	copied := filepath.Join(w.t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(sqld.File(w.server.Dir) + suffix)
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(w.t, err)
		require.NoError(w.t, os.WriteFile(copied+suffix, content, 0o600))
	}
	c, err := sqlite3.Open(copied)
	require.NoError(w.t, err)
	defer c.Close()
	require.NoError(w.t, schema.Prepare(c, false))
	require.NoError(w.t, search.Check(c))
}

// baseDir is where base makes its registry, below a folder that TestMain removes.
var baseDir string

func TestMain(m *testing.M) {
	var err error
	if baseDir, err = os.MkdirTemp("", "regedge-push-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(baseDir)
	os.Exit(code)
}
