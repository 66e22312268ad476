package cluster_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit/sqldtest"
	"regedge/schema"
)

// TestEdgesReadDatabasesOfTheVersionsBesideTheirs changes the replicated databases to
// what the version before made and to what the next one would make of them, while lookups
// go on at the edges. An edge that starts then serves as well. A push of this version
// brings an older registry up to date, and refuses a newer one.
func TestEdgesReadDatabasesOfTheVersionsBesideTheirs(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.push(w.before)
	w.inStep()
	l := w.newTraffic(fewAccounts)
	l.start()
	l.through(t, 50)

	w.alter(t, schema.Access, "DROP INDEX api_key_by_hash", previousVersion)
	w.serves(t, l)
	// A writer of this version brings it up to date.
	w.WriterProcess.Stop()
	require.NoError(t, w.WriterProcess.Start())

	w.alter(t, schema.Registry, "INSERT INTO company_board SELECT cin, directors FROM company WHERE directors IS NOT NULL",
		"ALTER TABLE company DROP COLUMN directors", "ALTER TABLE company DROP COLUMN district", previousVersion)
	w.serves(t, l)
	w.push(w.after)
	w.push(w.before)
	w.serves(t, l)

	w.alter(t, schema.Registry, "ALTER TABLE company ADD COLUMN later TEXT", "ALTER TABLE director ADD COLUMN later INTEGER",
		"UPDATE company SET later = 'x' WHERE rowid % 7 = 0", "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT", nextVersion)
	w.serves(t, l)
	w.alter(t, schema.Access, "ALTER TABLE plan ADD COLUMN later INTEGER NOT NULL DEFAULT 0",
		"CREATE INDEX later ON api_key (account)", nextVersion)
	w.serves(t, l)

	args, env, err := w.PushArgs(w.after)
	require.NoError(t, err)
	out, err := w.command(args, env).CombinedOutput()
	require.Error(t, err, "a push does not know what the newer schema holds")
	require.Contains(t, string(out), "push with the newest regedge")
	l.end(t)
}

// previousVersion forgets the last migration, once what it made is gone.
const previousVersion = `DELETE FROM schema_version WHERE version = (SELECT max(version) FROM schema_version)`

// nextVersion notes a migration that this program does not know.
const nextVersion = `INSERT INTO schema_version (version, applied_at, database)
	SELECT max(version) + 1, unixepoch(), max(database) FROM schema_version`

// alter changes a database at its primary in one transaction.
func (w *world) alter(t *testing.T, database schema.Database, statements ...string) {
	t.Helper()
	token, err := w.Token(string(database), pki.ReadWrite)
	require.NoError(t, err)
	sqldtest.ExecWith(t, w.Primaries[string(database)], token, statements...)
}

// serves waits until the edges have what changed, starts one of them again, and sees
// lookups answered by both.
func (w *world) serves(t *testing.T, l *traffic) {
	t.Helper()
	w.inStep()
	e := w.Edges[0]
	l.down.Store(e.Name, true)
	e.Stop()
	require.NoError(t, e.Start())
	w.inStep()
	l.down.Delete(e.Name)
	l.through(t, 50)
	for _, e := range w.Edges {
		a, err := fetch(http.DefaultClient, e.URL, "/v1/companies/"+l.cins[0], l.keys[0])
		require.NoError(t, err)
		require.Equal(t, 200, a.status)
		l.paid.Add(1)
	}
}
