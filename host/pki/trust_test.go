package pki_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
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
	p := newPair(t)
	p.start(t, p.primary, p.write)
	p.start(t, p.replica, p.read) // which gives its first answer when the primary does
	return p
}

func (p *pair) start(t *testing.T, s *sqld.Server, token string) {
	t.Helper()
	require.NoError(t, s.Start())
	t.Cleanup(s.Kill)
	sqldtest.Await(t, s, token)
}

// newPair makes a pair that is not started.
func newPair(t *testing.T) *pair {
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
		Program: program, Dir: filepath.Join(dir, "primary"), HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t),
		JWTKeyFile: p.trust.PrimaryKeyFile("registry"), TLS: files("primary", "127.0.0.1", "localhost"), Log: t.Output(),
	}}
	ca, cert, key, err := pki.Link(filepath.Join(dir, "link"))
	require.NoError(t, err)
	p.primary.Link = &sqld.TLSFiles{CA: ca, Cert: cert, Key: key}
	p.replica = &sqld.Server{Config: sqld.Config{
		Program: program, Dir: filepath.Join(dir, "replica"), HTTP: testkit.FreePort(t),
		JWTKeyFile: p.trust.ReplicaKeyFile("registry"), TLS: files("edge"), Log: t.Output(),
	}}
	p.replica.Primary = "https://" + p.primary.GRPC
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
			if name == "directly" { // a token that only reads takes locks at a primary
				_, err := open(t, server, p.read).ExecContext(ctx, "SELECT 1")
				require.ErrorIs(t, libsql.Explain(err), libsql.ErrUnauthorized)
			}
			for who, token := range map[string]string{"reader": p.read, "nobody": "", "forged": p.read + "x", "of another database": other} {
				edge := open(t, server, token)
				err := libsql.Commit(ctx, edge, []libsql.Statement{{SQL: "INSERT INTO api_key VALUES (666)"}})
				require.ErrorIs(t, err, libsql.ErrUnauthorized, who)
				if who == "reader" { // only the primary, through a replica, refuses the statement and not the token
					require.Equal(t, server == p.replica, errors.Is(err, libsql.ErrForwarded), err)
				}
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

// canary is in the database that a stranger must not get.
const canary = "canary-of-the-registry"

// TestAStrangerCannotReplicate starts a replica with a certificate of another authority, and then one of
// an edge: when that has everything, the stranger's has nothing, in no file.
func TestAStrangerCannotReplicate(t *testing.T) {
	p := startPair(t)
	sqldtest.ExecWith(t, p.primary, p.write, "CREATE TABLE secret (text)", "INSERT INTO secret VALUES ('"+canary+"')")
	other, err := pki.Create(filepath.Join(t.TempDir(), "other"), time.Now)
	require.NoError(t, err)
	own := *p.replica.TLS
	cert, key, err := other.Certificate("edge")
	require.NoError(t, err)
	start := func(files sqld.TLSFiles) *sqld.Server {
		s := &sqld.Server{Config: sqld.Config{
			Program: sqldtest.Program(t), Dir: filepath.Join(t.TempDir(), "replica"), HTTP: testkit.FreePort(t),
			JWTKeyFile: p.trust.ReplicaKeyFile("registry"), TLS: &files, Primary: p.replica.Primary, Log: t.Output(),
		}}
		require.NoError(t, s.Start())
		t.Cleanup(s.Kill)
		return s
	}
	stranger := start(sqld.TLSFiles{CA: own.CA, Cert: cert, Key: key})
	asked, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.Error(t, stranger.Await(asked, p.read)) // a replica begins when it is asked

	edge := start(own)
	require.Eventually(t, func() bool {
		var text string
		return open(t, edge, p.read).QueryRowContext(t.Context(), "SELECT text FROM secret").Scan(&text) == nil && text == canary
	}, time.Minute, 50*time.Millisecond, "a replica with an edge's certificate follows")
	require.True(t, holds(t, edge.Dir, canary))
	require.False(t, holds(t, stranger.Dir, canary))
	asked, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = open(t, stranger, p.read).ExecContext(asked, "SELECT * FROM secret")
	require.Error(t, err)
}

// holds reports whether a file in a folder, or below it, contains a text.
func holds(t *testing.T, folder, text string) (found bool) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // sqld removes files meanwhile
		}
		content, err := os.ReadFile(path)
		found = found || err == nil && bytes.Contains(content, []byte(text))
		return nil
	}))
	return found
}

// TestThePrimarysPortRefusesOtherCertificates in the handshake: one of another authority, and none.
func TestThePrimarysPortRefusesOtherCertificates(t *testing.T) {
	p := startPair(t)
	authority, err := os.ReadFile(p.trust.AuthorityFile())
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(authority))
	other, err := pki.Create(filepath.Join(t.TempDir(), "other"), time.Now)
	require.NoError(t, err)
	cert, key, err := other.Certificate("edge")
	require.NoError(t, err)
	greeted := func(files ...string) error {
		config := &tls.Config{RootCAs: pool, ServerName: "sqld", NextProtos: []string{"h2"}}
		if len(files) > 0 {
			pair, err := tls.LoadX509KeyPair(files[0], files[1])
			require.NoError(t, err)
			config.Certificates = []tls.Certificate{pair}
		}
		conn, err := tls.Dial("tcp", strings.TrimPrefix(p.replica.Primary, "https://"), config)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1)) // the server's first frame, or why it refuses
		return err
	}
	require.NoError(t, greeted(p.replica.TLS.Cert, p.replica.TLS.Key))
	require.ErrorContains(t, greeted(cert, key), "certificate")
	require.ErrorContains(t, greeted(), "certificate required")
}

// TestKeysBehindALinkAreReplacedThere: the link stays, and the old folder stays on its own disk.
func TestKeysBehindALinkAreReplacedThere(t *testing.T) {
	real, link := filepath.Join(t.TempDir(), "real"), filepath.Join(t.TempDir(), "trust")
	require.NoError(t, os.Symlink(real, link))
	_, err := pki.Create(real, time.Now)
	require.NoError(t, err)
	made, err := pki.Open(link, time.Now)
	require.NoError(t, err)
	before, err := os.ReadFile(filepath.Join(real, "ca.key"))
	require.NoError(t, err)
	aside := made.Aside()
	require.Equal(t, filepath.Dir(real), filepath.Dir(aside))
	_, err = made.Replace(aside)
	require.NoError(t, err)
	target, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, real, target)
	after, err := os.ReadFile(filepath.Join(real, "ca.key"))
	require.NoError(t, err)
	require.NotEqual(t, before, after)
	kept, err := os.ReadFile(filepath.Join(aside, "ca.key"))
	require.NoError(t, err)
	require.Equal(t, before, kept)
}

// TestACertificateBehindLinksIsRenewedThere: services read it, and its key, where the links lead to.
func TestACertificateBehindLinksIsRenewedThere(t *testing.T) {
	trust, err := pki.Create(filepath.Join(t.TempDir(), "trust"), time.Now)
	require.NoError(t, err)
	cert, key, err := trust.Certificate("primary", "centre.example.org")
	require.NoError(t, err)
	elsewhere := t.TempDir()
	before := map[string][]byte{}
	for _, path := range []string{cert, key} {
		moved := filepath.Join(elsewhere, filepath.Base(path))
		require.NoError(t, os.Rename(path, moved))
		require.NoError(t, os.Symlink(moved, path))
		before[moved], err = os.ReadFile(moved)
		require.NoError(t, err)
	}
	_, _, err = trust.Certificate("primary", "centre.example.org")
	require.NoError(t, err)
	for moved, content := range before {
		after, err := os.ReadFile(moved)
		require.NoError(t, err)
		require.NotEqual(t, content, after, moved)
	}
	_, err = tls.LoadX509KeyPair(filepath.Join(elsewhere, "primary.crt"), filepath.Join(elsewhere, "primary.key"))
	require.NoError(t, err)
}

// TestKeysAreReplacedAltogetherOrNotAtAll: half of the new ones would be refused by the servers, and sign for them.
func TestKeysAreReplacedAltogetherOrNotAtAll(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "trust")
	made, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	for _, name := range []string{"centre", "edge-pune"} {
		_, _, err := made.Certificate(name)
		require.NoError(t, err)
	}
	machines, err := made.Machines()
	require.NoError(t, err)
	require.Equal(t, []string{"centre", "edge-pune"}, machines)
	require.NoError(t, os.Chmod(dir, 0o750))
	files := func(dir string) map[string]string {
		all := map[string]string{}
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, entry := range entries {
			text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			require.NoError(t, err)
			all[entry.Name()] = string(text)
		}
		return all
	}
	before := files(dir)

	_, err = made.Replace(filepath.Join(parent, "missing", "aside"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, before, files(dir))
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing half-done")

	aside := made.Aside()
	fresh, err := made.Replace(aside)
	require.NoError(t, err)
	require.Equal(t, before, files(aside))
	after := files(dir)
	for _, name := range append([]string{"ca.crt", "registry.pub", "access.pub"}, pki.SigningKeys...) {
		require.NotEmpty(t, after[name])
		require.NotEqual(t, before[name], after[name], name)
	}
	machines, err = fresh.Machines()
	require.NoError(t, err)
	require.Empty(t, machines)
	about, err := os.Stat(dir)
	require.NoError(t, err)
	require.EqualValues(t, 0o750, about.Mode().Perm())
	left, err = os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, left, 2)
}

func TestKeysAreNotReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	_, err := pki.Open(dir, time.Now)
	require.Error(t, err)
	made, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	folder, err := os.Stat(dir)
	require.NoError(t, err)
	require.EqualValues(t, 0o700, folder.Mode().Perm())
	before, err := os.ReadFile(filepath.Join(dir, "registry.key"))
	require.NoError(t, err)
	_, err = pki.Create(dir, time.Now)
	require.ErrorIs(t, err, pki.ErrExists)
	after, err := os.ReadFile(filepath.Join(dir, "registry.key"))
	require.NoError(t, err)
	require.Equal(t, before, after)
	for _, name := range pki.SigningKeys {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode().Perm(), name)
	}
	for _, name := range []string{"registry", "access", "registry-replica", "access-replica", "ca", "CA", "Registry", "", ".", "..", "../machine", "a/b", ".hidden"} {
		_, _, err := made.Certificate(name)
		require.ErrorIs(t, err, pki.ErrName, name)
	}
	for _, database := range pki.Databases {
		_, err := made.Token(database, pki.ReadWrite, 0)
		require.NoError(t, err)
		_, err = made.Token(database, pki.ReadOnly, -time.Hour)
		require.ErrorIs(t, err, pki.ErrLife)
	}
	added, err := made.AddReplicaKeys()
	require.NoError(t, err)
	require.False(t, added)
	_, err = made.Token("ledger", pki.ReadWrite, 0)
	require.Error(t, err, "the ledger is not replicated")

	require.NoError(t, os.Remove(filepath.Join(dir, "ca.key"))) // it is kept apart
	_, err = pki.Create(dir, time.Now)
	require.ErrorIs(t, err, pki.ErrKeptElsewhere)
	after, err = os.ReadFile(filepath.Join(dir, "registry.key"))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestACertificateKeepsItsHosts: a renewal that forgets them, or has one that is none, changes nothing.
func TestACertificateKeepsItsHosts(t *testing.T) {
	trust, err := pki.Create(filepath.Join(t.TempDir(), "trust"), time.Now)
	require.NoError(t, err)
	hosts, err := trust.Hosts("primary")
	require.NoError(t, err)
	require.Empty(t, hosts)
	path, _, err := trust.Certificate("primary", "centre.example.org", "2001:db8::1", "localhost")
	require.NoError(t, err)
	hosts, err = trust.Hosts("primary")
	require.NoError(t, err)
	require.Equal(t, []string{"centre.example.org", "localhost", "2001:db8::1"}, hosts)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, _, err = trust.Certificate("primary")
	require.ErrorIs(t, err, pki.ErrHostless)
	require.ErrorContains(t, err, "centre.example.org, localhost, 2001:db8::1")
	for _, host := range []string{"", "bad host", "https://centre.example.org", "centre.example.org:5181", "a..b", "-a", "*"} {
		_, _, err = trust.Certificate("primary", host)
		require.ErrorIs(t, err, pki.ErrHost, host)
	}
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, os.WriteFile(path, nil, 0o644)) // such as a full disk left it
	_, _, err = trust.Certificate("primary", "10.0.0.1")
	require.NoError(t, err)
	_, _, err = trust.Certificate("edge-mumbai")
	require.NoError(t, err)
	_, _, err = trust.Certificate("edge-mumbai")
	require.NoError(t, err, "an edge has none")
}
