package pki_test

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io/fs"
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
	require.Equal(t, x509.KeyUsageDigitalSignature, edge.KeyUsage)
	require.Equal(t, x509.KeyUsageCertSign, readCertificate(t, trust.AuthorityFile()).KeyUsage)
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

// TestALinkIsGoodWhateverTheClockWas at its start: after a boot it can be off by hours, or years, until NTP sets it right.
func TestALinkIsGoodWhateverTheClockWas(t *testing.T) {
	authority, cert, _, err := pki.Link(filepath.Join(t.TempDir(), "link"))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(readCertificate(t, authority))
	for _, years := range []int{-20, 0, 30, 300} {
		_, err := readCertificate(t, cert).Verify(x509.VerifyOptions{
			Roots: roots, DNSName: "sqld", CurrentTime: time.Now().AddDate(years, 0, 0), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		})
		require.NoError(t, err, years)
	}
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
	empty, ecdsa := filepath.Join(t.TempDir(), "empty.pub"), filepath.Join(t.TempDir(), "ecdsa.pub")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	der, err := x509.MarshalPKIXPublicKey(readCertificate(t, trust.AuthorityFile()).PublicKey)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(ecdsa, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	for file, want := range map[string]string{
		"nowhere": "no such file", empty: "holds no public key", ecdsa: "not of Ed25519", trust.AuthorityFile(): "not of Ed25519", other: "not of Ed25519",
	} {
		_, err = pki.Verifier(file, now)
		require.ErrorContains(t, err, want)
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

// TestOfSeveralCertificatesTheFirstEndCounts, in whatever order a file holds them, beside their key or not.
func TestOfSeveralCertificatesTheFirstEndCounts(t *testing.T) {
	trust, err := pki.Create(filepath.Join(t.TempDir(), "trust"), time.Now)
	require.NoError(t, err)
	cert, key, err := trust.Certificate("edge")
	require.NoError(t, err)
	empty := filepath.Join(t.TempDir(), "empty.crt")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = pki.CertificateEnd(empty)
	require.ErrorContains(t, err, "holds no certificate")
	_, err = pki.CertificateEnd(empty + ".missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	want := readCertificate(t, cert).NotAfter
	require.True(t, want.Before(readCertificate(t, trust.AuthorityFile()).NotAfter))
	for _, files := range [][]string{{cert}, {cert, trust.AuthorityFile()}, {trust.AuthorityFile(), cert}, {key, cert}} {
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
	before, _, _, err := pki.Link(dir)
	require.NoError(t, err)
	first, err := os.ReadFile(before)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.crt"), first, 0o600))
	authority, _, key, err := pki.Link(dir)
	require.NoError(t, err)
	second, err := os.ReadFile(authority)
	require.NoError(t, err)
	require.NotEqual(t, first, second, "each start has its own")
	require.NoFileExists(t, filepath.Join(dir, "other.crt"))
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

// TestOnlyAWholeTokenShowsItsEnd: others come from environment files.
func TestOnlyAWholeTokenShowsItsEnd(t *testing.T) {
	trust, err := pki.Create(filepath.Join(t.TempDir(), "trust"), time.Now)
	require.NoError(t, err)
	token, err := trust.Token("access", pki.ReadOnly, pki.ReadTokenLife)
	require.NoError(t, err)
	end, ends := pki.Ends(token)
	require.True(t, ends)
	require.WithinDuration(t, time.Now().Add(30*24*time.Hour), end, time.Minute)
	endless, err := trust.Token("access", pki.ReadOnly, 0)
	require.NoError(t, err)
	for _, text := range []string{endless, "", "password", token[:len(token)/4], "a." + token, "a.b.c"} {
		_, ends := pki.Ends(text)
		require.False(t, ends, text)
	}
}

// TestATokenWhoseEndIsNoWholeNumberEndsToo: the numbers of a token may have fractions (RFC 7519, section 2), as those of other
// programs do. What is no time is over.
func TestATokenWhoseEndIsNoWholeNumberEndsToo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	trust, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "access-replica.key"))
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	admit, err := pki.Verifier(trust.ReplicaKeyFile("access"), time.Now)
	require.NoError(t, err)
	now := float64(time.Now().Unix())
	for _, c := range []struct {
		exp  any
		good bool
	}{{now + 3600.5, true}, {json.RawMessage("1e30"), true}, {nil, true}, {now - 3600.5, false}, {0, false}, {-1.5, false}, {"never", false}, {json.RawMessage("1e999"), false}} {
		token, err := libsql.SignToken(key.(ed25519.PrivateKey), map[string]any{"a": pki.ReadOnly, "exp": c.exp})
		require.NoError(t, err)
		require.Equal(t, c.good, admit(token), "%v", c.exp)
		end, ends := pki.Ends(token)
		require.Equal(t, c.exp != nil, ends, "%v", c.exp)
		_, err = json.Marshal(end)
		require.NoError(t, err, "%v", c.exp)
	}
}

// TestAKeyThatCanNotBeStoredIsNoTrust: a folder without one of its keys would fail only when it is needed.
func TestAKeyThatCanNotBeStoredIsNoTrust(t *testing.T) {
	for _, name := range pki.SigningKeys {
		dir := t.TempDir()
		require.NoError(t, os.Symlink(filepath.Join(dir, "missing", name), filepath.Join(dir, name)))
		_, err := pki.Create(dir, time.Now)
		require.ErrorIs(t, err, fs.ErrNotExist, name)
		require.NoFileExists(t, filepath.Join(dir, "ca.crt"), name)
	}
}

// TestDamagedKeysMakeNothing: neither a certificate that nobody accepts, nor a token.
func TestDamagedKeysMakeNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	trust, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	others := filepath.Join(t.TempDir(), "others")
	_, err = pki.Create(others, time.Now)
	require.NoError(t, err)
	put := func(name, from string) {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	put("registry.key", filepath.Join(dir, "ca.key"))
	_, err = trust.Token("registry", pki.ReadWrite, 0)
	require.ErrorContains(t, err, "not of Ed25519")
	put("access.key", filepath.Join(dir, "access.pub"))
	_, err = trust.Token("access", pki.ReadWrite, 0)
	require.ErrorContains(t, err, "holds no PRIVATE KEY")
	put("ca.key", filepath.Join(others, "ca.key"))
	_, _, err = trust.Certificate("edge")
	require.ErrorContains(t, err, "doesn't match")
	require.NoFileExists(t, filepath.Join(dir, "edge.crt"))
	damaged := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("damaged")})
	require.NoError(t, os.WriteFile(trust.AuthorityFile(), damaged, 0o600))
	_, _, err = trust.Certificate("edge")
	require.ErrorContains(t, err, "x509: malformed")

	require.NoError(t, os.Remove(filepath.Join(dir, "access-replica.key"))) // of a folder from before there were any
	_, err = trust.Token("access", pki.ReadOnly, 0)
	require.ErrorIs(t, err, pki.ErrNoReplicaKey)
	added, err := trust.AddReplicaKeys()
	require.NoError(t, err)
	require.True(t, added)
	_, err = trust.Token("access", pki.ReadOnly, 0)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "access.key")))
	_, err = trust.Token("access", pki.ReadWrite, 0)
	require.ErrorIs(t, err, fs.ErrNotExist, "it is not the replicas' key that is missing")
}

// TestWhatAKilledRunLeftIsReplaced: the part of a key, which others might have been able to read.
func TestWhatAKilledRunLeftIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	trust, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	for _, name := range []string{"edge.key.partial", "edge.crt.partial"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("cut"), 0o644))
	}
	cert, key, err := trust.Certificate("edge")
	require.NoError(t, err)
	_, err = tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	info, err := os.Stat(key)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	left, err := filepath.Glob(filepath.Join(dir, "*.partial"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestACertificateThatCanNotBeReadIsReplaced, by one without hosts as well: nothing says that it had any.
func TestACertificateThatCanNotBeReadIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	trust, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "edge.crt"), nil, 0o644)) // such as a full disk left it
	cert, key, err := trust.Certificate("edge")
	require.NoError(t, err)
	_, err = tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
}

// TestTheNameOfAReplacedFolderHasTheTimeInUTC, as its last letter says.
func TestTheNameOfAReplacedFolderHasTheTimeInUTC(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	india := time.FixedZone("IST", 5*3600+1800)
	trust, err := pki.Create(dir, func() time.Time { return time.Date(2026, 11, 24, 3, 0, 0, 0, india) })
	require.NoError(t, err)
	require.Equal(t, "trust.replaced-20261123T213000Z", filepath.Base(trust.Aside()))
}
