package cli

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
)

func TestAReplicaIsLookedAfter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made, err := pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	token, err := made.Token("access", pki.ReadWrite, 0)
	require.NoError(t, err)
	read, err := made.Token("access", pki.ReadOnly, 0)
	require.NoError(t, err)
	primaryCert, primaryKey, err := made.Certificate("primary", "127.0.0.1")
	require.NoError(t, err)
	cert, key, err := made.Certificate("edge")
	require.NoError(t, err)
	primary := &sqld.Server{Config: sqld.Config{
		Program: sqldtest.Program(t), Dir: filepath.Join(dir, "primary"), HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t),
		JWTKeyFile: made.PrimaryKeyFile("access"), TLS: &sqld.TLSFiles{CA: made.AuthorityFile(), Cert: primaryCert, Key: primaryKey},
	}}
	require.NoError(t, primary.Start())
	t.Cleanup(primary.Kill)
	sqldtest.Await(t, primary, token)
	sqldtest.ExecWith(t, primary, token, "CREATE TABLE probe (n INTEGER)")

	putAwaySigningKeys(t, filepath.Join(dir, "trust"))
	near := &sqld.Server{Config: sqld.Config{HTTP: testkit.FreePort(t), Dir: filepath.Join(dir, "replica")}}
	p := start("replica", "--sqld", primary.Program, "--dir", near.Dir, "--listen", near.HTTP,
		"--primary", "https://"+primary.GRPC, "--jwt-key", made.ReplicaKeyFile("access"),
		"--tls-ca", made.AuthorityFile(), "--tls-cert", cert, "--tls-key", key)
	t.Cleanup(func() { p.halt() })
	sqldtest.Await(t, near, read)
	sqldtest.LoseDatabase(t, primary, token, near.Dir, p.stderr)
	require.True(t, p.await(func() bool {
		return strings.Contains(p.stderr.String(), "regedge: the replica has lost its database, and is started again")
	}), p.stderr.String())
	sqldtest.Await(t, near, read)
	require.Equal(t, exitOK, p.halt(), p.stderr.String())
}

// TestAReplicaHasItsGateAndItsRelay: sqld would else read files for anybody, and wait for a primary that is gone.
func TestAReplicaHasItsGateAndItsRelay(t *testing.T) {
	c := &replicaCommand{Dir: t.TempDir(), Listen: "127.0.0.1:1", Primary: "http://primary:5001"}
	c.CA, c.Cert, c.Key = "ca.pem", "cert.pem", "key.pem"
	made, err := pki.Create(filepath.Join(t.TempDir(), "trust"), time.Now)
	require.NoError(t, err)
	c.JWTKey = made.ReplicaKeyFile("access")
	config, err := c.config("sqld", &Main{Now: time.Now, Stderr: io.Discard})
	require.NoError(t, err)
	require.Equal(t, c.JWTKey, config.JWTKeyFile, "at sqld's own port anybody of this machine could read without it")
	require.False(t, config.Reads.Admit("no token"))
	require.NotNil(t, config.Reads)
	require.True(t, config.Relay)
	require.Equal(t, sqld.TLSFiles{CA: "ca.pem", Cert: "cert.pem", Key: "key.pem"}, *config.TLS)
	require.Equal(t, []string{c.Dir, c.Listen, c.Primary}, []string{config.Dir, config.HTTP, config.Primary})
}
