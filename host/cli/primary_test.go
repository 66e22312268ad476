package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

// statements are what SQLite and libSQL have for taking a lock, writing, or changing how a database
// behaves, and ways to hide it. The last entries are only the ends of transactions. FOLDER stands for
// one of the test.
var statements = []string{
	"BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "BEGIN", "BEGIN DEFERRED", "BEGIN CONCURRENT", "BEGIN READONLY", "SAVEPOINT s",
	"/* x */ BEGIN -- y\n IMMEDIATE", "beGin\timmediate transaction;", "BEGIN IMMEDIATE; SELECT 1", "SELECT 1; BEGIN IMMEDIATE",
	"SAVEPOINT s; INSERT INTO probe VALUES (666)", "BEGIN; INSERT INTO probe VALUES (666)",
	"INSERT INTO probe VALUES (666)", "REPLACE INTO probe VALUES (666)", "INSERT INTO probe VALUES (666) RETURNING n",
	"UPDATE probe SET n = 666", "DELETE FROM probe", "WITH x AS (SELECT 666) INSERT INTO probe SELECT * FROM x",
	"WITH x AS (SELECT 1) DELETE FROM probe", "EXPLAIN INSERT INTO probe VALUES (666)", "EXPLAIN QUERY PLAN DELETE FROM probe",
	"CREATE TABLE loot (n)", "CREATE TEMP TABLE loot (n)", "CREATE INDEX loot ON probe (n)", "CREATE VIEW loot AS SELECT 1",
	"CREATE TRIGGER loot AFTER INSERT ON probe BEGIN DELETE FROM probe; END", "CREATE VIRTUAL TABLE loot USING fts5 (n)",
	"ALTER TABLE probe RENAME TO loot", "ALTER TABLE probe ADD COLUMN loot", "DROP TABLE probe", "REINDEX", "ANALYZE",
	"VACUUM", "VACUUM INTO 'FOLDER/loot.db'", "ATTACH 'FOLDER/loot.db' AS loot", "ATTACH DATABASE 'default' AS loot", "DETACH loot",
	"PRAGMA journal_mode = DELETE", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA user_version = 666", "PRAGMA application_id = 666",
	"PRAGMA schema_version = 666", "PRAGMA incremental_vacuum", "PRAGMA optimize", "PRAGMA locking_mode = EXCLUSIVE",
	"PRAGMA auto_vacuum = FULL", "PRAGMA writable_schema = 1", "PRAGMA synchronous = OFF", "PRAGMA wal_autocheckpoint = 1",
	"PRAGMA secure_delete = ON", "PRAGMA query_only = 0", "SELECT load_extension('FOLDER/loot')", "SELECT writefile('FOLDER/loot', 'x')",
	"SELECT randomblob(1) FROM probe", "COMMIT", "END", "ROLLBACK", "RELEASE s",
}

// attackers is how many connections send each statement at once.
const attackers = 6

const (
	// lockTime is how long a transaction may hold a lock before sqld ends it.
	lockTime = 5 * time.Second
	// attackTries is how often an attack is tried: what takes a lock takes it each time, and the machine may be busy.
	attackTries = 3
)

// stage is a primary and an edge's replica, run as in production.
type stage struct {
	database         string
	primary, replica *sqld.Server // their addresses
	write, read      string       // tokens
	own, edge        *sqld.TLSFiles
	trust            string // folder with the keys that sign, where no service finds them
	// The public keys of the tokens that write, and of those that read.
	primaryKey, replicaKey string
	folder                 string // for files that statements name
	running                []*program
}

func startStage(t *testing.T, database string) *stage {
	t.Helper()
	dir := t.TempDir()
	made, err := pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	s := &stage{database: database, folder: t.TempDir()}
	s.write, err = made.Token(database, pki.ReadWrite, 0)
	require.NoError(t, err)
	s.read, err = made.Token(database, pki.ReadOnly, 0)
	require.NoError(t, err)
	files := func(name string, hosts ...string) *sqld.TLSFiles {
		cert, key, err := made.Certificate(name, hosts...)
		require.NoError(t, err)
		return &sqld.TLSFiles{CA: made.AuthorityFile(), Cert: cert, Key: key}
	}
	s.own, s.edge = files("primary", "127.0.0.1"), files("edge")
	s.primaryKey, s.replicaKey = made.PrimaryKeyFile(database), made.ReplicaKeyFile(database)
	s.trust = filepath.Join(t.TempDir(), "signing")
	require.NoError(t, os.CopyFS(s.trust, os.DirFS(filepath.Join(dir, "trust"))))
	putAwaySigningKeys(t, filepath.Join(dir, "trust"))
	s.primary = &sqld.Server{Config: sqld.Config{Dir: filepath.Join(dir, "primary"), HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t)}}
	s.replica = &sqld.Server{Config: sqld.Config{Dir: filepath.Join(dir, "replica"), HTTP: testkit.FreePort(t)}}
	s.run(t, s.primaryArguments(t)...)
	sqldtest.Await(t, s.primary, s.write)
	sqldtest.ExecWith(t, s.primary, s.write, "CREATE TABLE probe (n INTEGER)")
	s.run(t, "replica", "--sqld", sqldtest.Program(t), "--dir", s.replica.Dir, "--listen", s.replica.HTTP, "--primary", "https://"+s.primary.GRPC,
		"--jwt-key", s.replicaKey, "--tls-ca", s.edge.CA, "--tls-cert", s.edge.Cert, "--tls-key", s.edge.Key)
	sqldtest.Await(t, s.replica, s.read)
	return s
}

func (s *stage) primaryArguments(t *testing.T) []string {
	return []string{"primary", "--sqld", sqldtest.Program(t), "--dir", s.primary.Dir, "--listen", s.primary.HTTP, "--replication", s.primary.GRPC,
		"--jwt-key", s.primaryKey, "--tls-ca", s.own.CA, "--tls-cert", s.own.Cert, "--tls-key", s.own.Key}
}

func (s *stage) run(t *testing.T, args ...string) {
	p := start(args...)
	s.running = append(s.running, p)
	t.Cleanup(func() {
		p.halt()
		if t.Failed() {
			said := p.stderr.String()
			t.Log(said[max(0, len(said)-4000):])
		}
	})
}

// commits commits at the primary without a pause, as the writer does, until the test ends.
type commits struct {
	stop    func() // can be called again
	done    atomic.Int64
	longest atomic.Int64 // time.Duration
}

func (s *stage) commit(t *testing.T) *commits {
	t.Helper()
	db, err := libsql.Open(s.primary.URL(), s.write)
	require.NoError(t, err)
	c := new(commits)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if err := libsql.Commit(ctx, db, []libsql.Statement{{SQL: "INSERT INTO probe VALUES (1)"}}); err == nil {
				c.done.Add(1)
			}
			c.longest.Store(max(c.longest.Load(), int64(time.Since(began))))
		}
	})
	c.stop = func() { stop(); running.Wait(); db.Close() }
	t.Cleanup(c.stop)
	return c
}

// more waits until n further commits were made, and reports whether that took less than a limit.
func (c *commits) more(limit time.Duration, n int64) bool {
	goal := c.done.Load() + n
	for began := time.Now(); c.done.Load() < goal; time.Sleep(time.Millisecond) {
		if time.Since(began) >= limit {
			return false
		}
	}
	return true
}

// TestAPrimaryHasItsLinkAndItsMirror: without the first anybody could write, without the second it sends all by itself.
func TestAPrimaryHasItsLinkAndItsMirror(t *testing.T) {
	c := &primaryCommand{Dir: t.TempDir(), Listen: "127.0.0.1:1", Replication: "127.0.0.1:2"}
	config, err := c.config("sqld")
	require.NoError(t, err)
	require.NotNil(t, config.Link)
	require.Nil(t, config.Mirror)
	c.Mirror, c.Upload = "https://bucket.example.org/registry?token=x", "some command"
	config, err = c.config("sqld")
	require.NoError(t, err)
	require.Equal(t, c.Mirror, config.Mirror.URL.String())
	require.Equal(t, c.Upload, config.Mirror.Upload)
}

// TestAPrimarysAddressIsResolvedAndNamed: its server takes no names, and says of an address that is in use only that.
func TestAPrimarysAddressIsResolvedAndNamed(t *testing.T) {
	dir := t.TempDir()
	made, err := pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	cert, key, err := made.Certificate("primary", "localhost")
	require.NoError(t, err)
	putAwaySigningKeys(t, filepath.Join(dir, "trust"))
	primary := func(listen string) string {
		code, said := ran("primary", "--sqld", "echo", "--dir", filepath.Join(dir, "primary"), "--listen", listen, "--replication", "127.0.0.1:0",
			"--jwt-key", made.PrimaryKeyFile("access"), "--tls-ca", made.AuthorityFile(), "--tls-cert", cert, "--tls-key", key)
		require.Equal(t, exitFailure, code, said)
		return said
	}
	for listen, want := range map[string]string{"LocalHost:0": `(127\.0\.0\.1|\[::1\]):0`, "0.0.0.0:0": `0\.0\.0\.0:0`, ":0": `\[::\]:0`} {
		require.Regexp(t, "--http-listen-addr "+want+" ", primary(listen))
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	said := primary(taken.Addr().String())
	require.Contains(t, said, "open the port for queries: listen tcp4 "+taken.Addr().String()+": bind: address already in use\nhint: is regedge running already")
	require.NotContains(t, said, "--http-listen-addr", "its server is not started")
}

// TestNoEdgeHoldsUpAPrimary sends every statement in every way that an edge has: through its replica,
// with its token at the primary's own port, and with its certificate at the primary. The commands don't know which
// database they serve, so one is attacked; with SOAK=1 both are.
func TestNoEdgeHoldsUpAPrimary(t *testing.T) {
	databases := []string{"access"}
	if os.Getenv("SOAK") != "" {
		databases = pki.Databases
	}
	for _, database := range databases {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			s := startStage(t, database)
			c := s.commit(t)
			require.True(t, c.more(time.Minute, 100), "without an attack")
			t.Logf("longest commit without an attack: %v", time.Duration(c.longest.Load()))
			for _, w := range s.ways(t) {
				longest := time.Duration(0)
				for _, statement := range statements {
					for try := 1; ; try++ {
						took := s.attack(t, c, w, statement)
						if took < lockTime/2 {
							longest = max(longest, took)
							break
						}
						require.Less(t, try, attackTries, "%s: %s", w.name, statement)
						require.True(t, c.more(time.Minute, 2), "the lock ends")
					}
				}
				t.Logf("longest commit while attacked by %s: %v", w.name, longest)
			}
			c.stop()
			s.unharmed(t)
		})
	}
}

// attack lets attackers hold what a statement gives them, while commits are made, and returns how long the longest took,
// which is given up after half of the time that an attacker could hold a lock.
func (s *stage) attack(t *testing.T, c *commits, w way, statement string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*lockTime)
	defer cancel()
	statement = strings.ReplaceAll(statement, "FOLDER", s.folder)
	releases := make([]func(), attackers)
	var all sync.WaitGroup
	for i := range releases {
		all.Go(func() { releases[i] = w.send(ctx, statement) })
	}
	sent := make(chan struct{})
	go func() { all.Wait(); close(sent) }()
	defer func() {
		<-sent
		for _, release := range releases {
			release()
		}
	}()
	c.longest.Store(0)
	goesOn := c.more(lockTime/2, 2)
	<-sent
	if !c.more(lockTime/2, 2) || !goesOn {
		return lockTime / 2
	}
	return time.Duration(c.longest.Load())
}

// unharmed checks that no statement reached the primary, and that the replica follows.
func (s *stage) unharmed(t *testing.T) {
	t.Helper()
	near, err := libsql.Open(s.primary.URL(), s.write)
	require.NoError(t, err)
	defer near.Close()
	var state string
	require.NoError(t, near.QueryRow(`SELECT (SELECT group_concat(DISTINCT n) FROM probe) || ' ' ||
		(SELECT group_concat(name) FROM sqlite_schema WHERE name NOT LIKE 'libsql%') || ' ' || (SELECT user_version + application_id FROM pragma_user_version, pragma_application_id)`).Scan(&state))
	require.Equal(t, "1 probe 0", state)
	sqldtest.ExecWith(t, s.primary, s.write, "INSERT INTO probe VALUES (2)")
	far, err := libsql.Open(s.replica.URL(), s.read)
	require.NoError(t, err)
	defer far.Close()
	// It may be many thousands of rows behind.
	const newest = "SELECT n, rowid FROM probe ORDER BY rowid DESC LIMIT 1"
	n, row, last := 0, 0, 0
	for moved := time.Now(); n != 2; time.Sleep(20 * time.Millisecond) {
		require.Less(t, time.Since(moved), time.Minute, "the replica follows")
		if far.QueryRow(newest).Scan(&n, &row) == nil && row > last {
			last, moved = row, time.Now()
		}
	}
}

func TestAPrimarysGatePassesOnlyReplication(t *testing.T) {
	s := startStage(t, "access")
	call := s.calls(t, s.edge)
	for path, want := range map[string]string{"Hello": "0", "LogEntries": "9", "BatchLogEntries": "9", "Snapshot": "9"} { // 9: no hello
		status, message := s.calls(t, s.edge)(t.Context(), "/wal_log.ReplicationLog/"+path, nil, nil)
		require.Equal(t, want, status, path+": "+message)
	}
	for _, path := range []string{
		"/proxy.Proxy/StreamExec", "/proxy.Proxy/Execute", "/proxy.Proxy/Describe", "/proxy.Proxy/Disconnect", "/proxy.Proxy/",
		"/wal_log.ReplicationLog/Hello/", "/wal_log.ReplicationLog/../proxy.Proxy/Execute", "/wal_log%2eReplicationLog%2fHello/x", "//", "/v2/pipeline",
	} {
		status, _ := call(t.Context(), path, nil, nil)
		require.Equal(t, "7", status, path)
	}
	status, message := call(t.Context(), "/wal_log.ReplicationLog/Hello", nil, make([]byte, 1<<20))
	require.NotEqual(t, "0", status, message)
	require.True(t, s.running[0].await(func() bool {
		return strings.Contains(s.running[0].stderr.String(), `refused "edge" a call that is not replication`)
	}))
}

// TestAReplicasPortTouchesNoFiles: sqld has functions that read and write files with its rights, and takes
// them for reads.
func TestAReplicasPortTouchesNoFiles(t *testing.T) {
	s := startStage(t, "registry")
	secret := filepath.Join(s.folder, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("what sqld can read"), 0o600))
	for _, statement := range []string{
		"SELECT writefile('FOLDER/loot', 'x')", "SELECT WriteFile('FOLDER/loot', 'x')", `SELECT "writefile"('FOLDER/loot', 'x')`,
		"SELECT/**/writefile/**/('FOLDER/loot', 'x')", "SELECT name FROM fsdir('FOLDER')", "SELECT name FROM fsdir WHERE path = 'FOLDER'",
		"SELECT CAST(readfile('FOLDER/secret') AS TEXT)", "WITH x AS (SELECT readfile('FOLDER/secret') AS f) SELECT CAST(f AS TEXT) FROM x",
		"SELECT sha3_query('SELECT write' || 'file(''FOLDER/loot'', ''x'')')", "SELECT SHA3_Query('ATTACH ''FOLDER/loot'' AS loot')",
	} {
		statement = strings.ReplaceAll(statement, "FOLDER", s.folder)
		for _, way := range []struct{ path, body string }{
			{"/v2/pipeline", `{"requests":[{"type":"execute","stmt":{"sql":` + quoted(statement) + `}}]}`},
			{"/v3/pipeline", `{"requests":[{"type":"store_sql","sql_id":1,"sql":` + quoted(statement) + `},{"type":"execute","stmt":{"sql_id":1}}]}`},
			{"/v3/pipeline", `{"requests":[{"type":"execute","stmt":{"sql":"` + strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(statement, `"`, `\"`), "f", `\u0066`), "F", `\u0046`) + `"}}]}`},
			{"/v3/cursor", `{"batch":{"steps":[{"stmt":{"sql":` + quoted(statement) + `}}]}}`},
			{"/v1/execute", `{"stmt":{"sql":` + quoted(statement) + `}}`},
			{"/", `{"statements":[` + quoted(statement) + `]}`},
		} {
			answer := s.post(t.Context(), s.replica, way.path, "application/json", []byte(way.body))
			require.NotContains(t, answer, "what sqld can read", "%s %s", way.path, way.body)
			require.NotContains(t, answer, `"secret"`, "%s %s", way.path, way.body)
		}
		s.socket(t.Context(), s.replica, statement)()
	}
	require.NoFileExists(t, filepath.Join(s.folder, "loot"))
	answer := s.post(t.Context(), s.replica, "/v3/cursor", "application/json", []byte(`{"batch":{"steps":[{"stmt":{"sql":"SELECT 40 + ?","args":[{"type":"text","value":"2 readfile"}]}}]}}`))
	require.Contains(t, answer, `"42"`, "reads pass")
	require.True(t, s.running[1].await(func() bool { return strings.Contains(s.running[1].stderr.String(), "refused a statement") }))
}
