package pki_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit/freeport"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

// pair is a primary and its replica, with tokens and mutual TLS.
type pair struct {
	trust            *pki.Trust
	primary, replica *sqld.Server
	write, read      string // tokens
}

func startPair(t *testing.T) *pair {
	t.Helper()
	program := sqldtest.Program(t)
	dir := t.TempDir()
	p := new(pair)
	var err error
	p.trust, err = pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	p.write, err = p.trust.Token("registry", pki.ReadWrite, 0)
	require.NoError(t, err)
	p.read, err = p.trust.Token("registry", pki.ReadOnly, time.Hour)
	require.NoError(t, err)
	files := func(name string, hosts ...string) *sqld.TLSFiles {
		cert, key, err := p.trust.Certificate(name, hosts...)
		require.NoError(t, err)
		return &sqld.TLSFiles{CA: p.trust.AuthorityFile(), Cert: cert, Key: key}
	}
	p.primary = &sqld.Server{Config: sqld.Config{
		Program: program, Dir: filepath.Join(dir, "primary"), HTTP: freeport.ForTest(t), GRPC: freeport.ForTest(t),
		JWTKeyFile: p.trust.PublicKeyFile("registry"), TLS: files("primary", "127.0.0.1", "localhost"), Log: t.Output(),
	}}
	ca, cert, key, err := pki.Link(filepath.Join(dir, "link"), time.Now)
	require.NoError(t, err)
	p.primary.Link = &sqld.TLSFiles{CA: ca, Cert: cert, Key: key}
	p.replica = &sqld.Server{Config: sqld.Config{
		Program: program, Dir: filepath.Join(dir, "replica"), HTTP: freeport.ForTest(t),
		JWTKeyFile: p.trust.PublicKeyFile("registry"), TLS: files("edge"), Log: t.Output(),
	}}
	p.replica.Primary = "https://" + p.primary.GRPC
	for _, s := range []*sqld.Server{p.primary, p.replica} {
		require.NoError(t, s.Start())
		t.Cleanup(s.Kill)
		sqldtest.Await(t, s, p.read)
	}
	return p
}

// open opens a server's database with a token.
func open(t *testing.T, server *sqld.Server, token string) *sql.DB {
	t.Helper()
	db, err := libsql.Open(server.URL(), token)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestAnEdgeCannotWrite(t *testing.T) {
	p := startPair(t)
	ctx := t.Context()
	sqldtest.ExecWith(t, p.primary, p.write, "CREATE TABLE api_key (id INTEGER PRIMARY KEY)", "INSERT INTO api_key VALUES (1)")
	other, err := p.trust.Token("access", pki.ReadWrite, 0)
	require.NoError(t, err)
	for name, server := range map[string]*sqld.Server{"directly": p.primary, "through its replica": p.replica} {
		t.Run(name, func(t *testing.T) {
			for who, token := range map[string]string{"reader": p.read, "nobody": "", "forged": p.read + "x", "of another database": other} {
				edge := open(t, server, token)
				err := libsql.Commit(ctx, edge, []libsql.Statement{{SQL: "INSERT INTO api_key VALUES (666)"}})
				require.ErrorIs(t, err, libsql.ErrUnauthorized, who)
				_, err = edge.ExecContext(ctx, "INSERT INTO api_key VALUES (667)")
				require.ErrorIs(t, libsql.Explain(err), libsql.ErrUnauthorized, who)
			}
		})
	}
	var ids string
	require.NoError(t, open(t, p.primary, p.write).QueryRowContext(ctx, "SELECT group_concat(id) FROM api_key").Scan(&ids))
	require.Equal(t, "1", ids)
	reader := open(t, p.replica, p.read)
	require.Eventually(t, func() bool {
		var keys int
		return reader.QueryRowContext(ctx, "SELECT count(*) FROM api_key").Scan(&keys) == nil && keys == 1
	}, time.Minute, 20*time.Millisecond, "what was written arrives by mutual TLS")
}

func TestAStrangerCannotReplicate(t *testing.T) {
	p := startPair(t)
	stranger, err := pki.Create(filepath.Join(t.TempDir(), "other"), time.Now)
	require.NoError(t, err)
	cert, key, err := stranger.Certificate("stranger")
	require.NoError(t, err)
	p.replica.Kill()
	p.replica.TLS = &sqld.TLSFiles{CA: p.trust.AuthorityFile(), Cert: cert, Key: key}
	p.replica.Dir = filepath.Join(t.TempDir(), "replica")
	sqldtest.ExecWith(t, p.primary, p.write, "CREATE TABLE secret (id)")
	require.NoError(t, p.replica.Start())
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if p.replica.Await(ctx, p.read) == nil {
		_, err = open(t, p.replica, p.read).ExecContext(ctx, "SELECT * FROM secret")
		require.Error(t, err)
	}
}

func TestKeysAreNotReplaced(t *testing.T) {
	dir := t.TempDir()
	_, err := pki.Open(dir, time.Now)
	require.Error(t, err)
	made, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	before, err := os.ReadFile(filepath.Join(dir, "registry.key"))
	require.NoError(t, err)
	_, err = pki.Create(dir, time.Now)
	require.ErrorIs(t, err, pki.ErrExists)
	after, err := os.ReadFile(filepath.Join(dir, "registry.key"))
	require.NoError(t, err)
	require.Equal(t, before, after)
	for _, name := range []string{"registry.key", "access.key", "ca.key"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode().Perm(), name)
	}
	_, err = made.Token("ledger", pki.ReadWrite, 0)
	require.Error(t, err, "the ledger is not replicated")
}
