package cluster_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit/sqldtest"
	"regedge/schema"
)

// TestEdgesReadDatabasesOfTheNextVersion changes the replicated databases to what the next
// version could make of them, while lookups go on at the edges. An edge that starts then answers
// as well, and a push of this version refuses the registry.
func TestEdgesReadDatabasesOfTheNextVersion(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.push(f.before)
	f.inStep()
	l := f.newTraffic(fewAccounts)
	l.start()
	l.through(t, 50)

	f.alter(t, schema.Registry, "ALTER TABLE company ADD COLUMN later TEXT", "ALTER TABLE director ADD COLUMN later INTEGER",
		"UPDATE company SET later = 'x' WHERE rowid % 7 = 0", "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT", nextVersion)
	f.serves(t, l)
	f.alter(t, schema.Access, "ALTER TABLE plan ADD COLUMN later INTEGER NOT NULL DEFAULT 0",
		"CREATE INDEX later ON api_key (account)", nextVersion)
	f.serves(t, l)

	args, env, err := f.PushArgs(f.after)
	require.NoError(t, err)
	out, err := f.command(args, env).CombinedOutput()
	require.Error(t, err, "a push does not know what the newer schema holds")
	require.Contains(t, string(out), "push with the newest regedge")
	l.end(t)
}

// nextVersion records a migration that this program does not know.
const nextVersion = `INSERT INTO schema_version (version, applied_at, database)
	SELECT max(version) + 1, unixepoch(), max(database) FROM schema_version`

// alter changes a database at its primary, in one transaction.
func (f *fixture) alter(t *testing.T, database schema.Database, statements ...string) {
	t.Helper()
	token, err := f.Token(string(database), pki.ReadWrite)
	require.NoError(t, err)
	sqldtest.ExecWith(t, f.Primaries[string(database)], token, statements...)
}

// serves waits until the edges have read the change, restarts one of them, and requires that
// lookups are answered at both.
func (f *fixture) serves(t *testing.T, l *traffic) {
	t.Helper()
	f.inStep()
	e := f.Edges[0]
	l.down.Store(e.Name, true)
	e.Stop()
	require.NoError(t, e.Start())
	f.inStep()
	l.down.Delete(e.Name)
	l.through(t, 50)
	for _, e := range f.Edges {
		a, err := fetch(http.DefaultClient, e.URL, "/v1/companies/"+l.cins[0], l.keys[0])
		require.NoError(t, err)
		require.Equal(t, 200, a.status)
		l.paid.Add(1)
	}
}
