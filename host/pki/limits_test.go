package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

func readCertificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	require.NotNil(t, block)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert
}

// TestAnEdgesCertificateIsNoServers: whoever has the machine of an edge must not be able to stand
// in for a primary.
func TestAnEdgesCertificateIsNoServers(t *testing.T) {
	at := time.Now()
	trust, err := pki.Create(filepath.Join(t.TempDir(), "trust"), func() time.Time { return at })
	require.NoError(t, err)
	authority := x509.NewCertPool()
	authority.AddCert(readCertificate(t, trust.AuthorityFile()))
	verify := func(cert *x509.Certificate, name string, usage x509.ExtKeyUsage) error {
		_, err := cert.Verify(x509.VerifyOptions{Roots: authority, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	path, _, err := trust.Certificate("edge")
	require.NoError(t, err)
	edge := readCertificate(t, path)
	require.NoError(t, verify(edge, "", x509.ExtKeyUsageClientAuth))
	require.ErrorAs(t, verify(edge, "", x509.ExtKeyUsageServerAuth), new(x509.CertificateInvalidError))
	require.Error(t, verify(edge, "sqld", x509.ExtKeyUsageAny))
	require.False(t, edge.IsCA)
	require.WithinDuration(t, at.Add(-time.Hour), edge.NotBefore, time.Second, "the edge's clock may be behind")
	require.WithinDuration(t, at.Add(2*365*24*time.Hour), edge.NotAfter, time.Second)

	path, _, err = trust.Certificate("primary", "127.0.0.1", "primary.example")
	require.NoError(t, err)
	primary := readCertificate(t, path)
	for _, name := range []string{"sqld", "127.0.0.1", "primary.example"} {
		require.NoError(t, verify(primary, name, x509.ExtKeyUsageServerAuth), name)
	}
	require.False(t, primary.IsCA)
}

func TestATokenEnds(t *testing.T) {
	at := time.Now()
	trust, err := pki.Create(filepath.Join(t.TempDir(), "trust"), func() time.Time { return at })
	require.NoError(t, err)
	token := func(made time.Time) string {
		at = made
		text, err := trust.Token("access", pki.ReadWrite, time.Hour)
		require.NoError(t, err)
		return text
	}
	server := &sqld.Server{Config: sqld.Config{
		Program: sqldtest.Program(t), Dir: filepath.Join(t.TempDir(), "data"), HTTP: testkit.FreePort(t), JWTKeyFile: trust.PrimaryKeyFile("access"),
	}}
	require.NoError(t, server.Start())
	t.Cleanup(server.Kill)
	good := token(time.Now())
	sqldtest.Await(t, server, good)
	sqldtest.ExecWith(t, server, good, "CREATE TABLE t (n)")
	_, err = open(t, server, token(time.Now().Add(-2*time.Hour))).ExecContext(t.Context(), "SELECT * FROM t")
	require.ErrorIs(t, libsql.Explain(err), libsql.ErrUnauthorized)
}

// TestAVerifierAdmitsTokensOfItsKeys: of both, where a file holds two, until they end.
func TestAVerifierAdmitsTokensOfItsKeys(t *testing.T) {
	at := time.Now().Truncate(time.Second) // the unit of a token's end
	now := func() time.Time { return at }
	trust, err := pki.Create(filepath.Join(t.TempDir(), "trust"), now)
	require.NoError(t, err)
	token := func(database string, right pki.Right, life time.Duration) string {
		text, err := trust.Token(database, right, life)
		require.NoError(t, err)
		return text
	}
	admit, err := pki.Verifier(trust.ReplicaKeyFile("access"), now)
	require.NoError(t, err)
	good, other := token("access", pki.ReadOnly, time.Hour), token("access", pki.ReadWrite, time.Hour)
	require.True(t, admit(good))
	require.True(t, admit(token("access", pki.ReadOnly, 0)))
	for _, bad := range []string{"", good + "x", good[1:], "a.b.c", other, token("registry", pki.ReadOnly, 0)} {
		require.False(t, admit(bad), bad)
	}
	both := filepath.Join(t.TempDir(), "both.pub")
	var keys []byte
	for _, file := range []string{trust.ReplicaKeyFile("access"), trust.PrimaryKeyFile("access")} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		keys = append(keys, text...)
	}
	require.NoError(t, os.WriteFile(both, keys, 0o600))
	admit, err = pki.Verifier(both, now)
	require.NoError(t, err)
	require.True(t, admit(good))
	require.True(t, admit(other))
	at = at.Add(time.Hour)
	require.False(t, admit(good), "it has ended")
	other = filepath.Join(t.TempDir(), "other.pub")
	certificate, err := os.ReadFile(trust.AuthorityFile())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, append(keys, certificate...), 0o600))
	for _, file := range []string{"nowhere", trust.AuthorityFile(), other} {
		_, err = pki.Verifier(file, now)
		require.Error(t, err)
	}

	dir := t.TempDir()
	file, made, err := pki.ReadLink(dir, time.Now)
	require.NoError(t, err)
	admit, err = pki.Verifier(file, time.Now)
	require.NoError(t, err)
	require.True(t, admit(made))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "the private key is kept nowhere")
}

// TestOfSeveralCertificatesTheFirstEndCounts, in whatever order a file holds them.
func TestOfSeveralCertificatesTheFirstEndCounts(t *testing.T) {
	trust, err := pki.Create(filepath.Join(t.TempDir(), "trust"), time.Now)
	require.NoError(t, err)
	cert, _, err := trust.Certificate("edge")
	require.NoError(t, err)
	empty := filepath.Join(t.TempDir(), "empty.crt")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = pki.CertificateEnd(empty)
	require.ErrorContains(t, err, "holds no certificate")
	want := readCertificate(t, cert).NotAfter
	require.True(t, want.Before(readCertificate(t, trust.AuthorityFile()).NotAfter))
	for _, files := range [][]string{{cert}, {cert, trust.AuthorityFile()}, {trust.AuthorityFile(), cert}} {
		var chain []byte
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			chain = append(chain, text...)
		}
		path := filepath.Join(t.TempDir(), "chain.crt")
		require.NoError(t, os.WriteFile(path, chain, 0o600))
		end, err := pki.CertificateEnd(path)
		require.NoError(t, err)
		require.Equal(t, want, end, files)
	}
}

// TestALinkIsThisMachines: nobody else reads its key, or makes another certificate.
func TestALinkIsThisMachines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "link")
	_, _, key, err := pki.Link(dir, time.Now)
	require.NoError(t, err)
	for path, want := range map[string]os.FileMode{dir: 0o700, key: 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), path)
	}
	require.NoFileExists(t, filepath.Join(dir, "ca.key"))
}

// TestACertificateWhoseKeyCanNotBeStoredIsNotMade: nobody could use it.
func TestACertificateWhoseKeyCanNotBeStoredIsNotMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	trust, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "edge.key"), 0o700)) // in its place
	_, _, err = trust.Certificate("edge")
	require.ErrorContains(t, err, "edge.key")
	require.NoFileExists(t, filepath.Join(dir, "edge.crt"))
}
