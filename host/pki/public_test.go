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
)

// TestWhatBelongsToAKeyIsMadeFromIt, such as after a run that was killed between a key and its public part.
func TestWhatBelongsToAKeyIsMadeFromIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	trust, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	machine, _, err := trust.Certificate("edge")
	require.NoError(t, err)
	publics := []string{"registry.pub", "access.pub", "registry-replica.pub", "access-replica.pub"}
	before := map[string]string{}
	for _, name := range publics {
		before[name] = read(t, dir, name)
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	require.NoError(t, os.Remove(trust.AuthorityFile()))
	added, err := trust.AddPublic()
	require.NoError(t, err)
	require.Equal(t, append([]string{"ca.crt"}, publics...), added)
	for _, name := range publics {
		require.Equal(t, before[name], read(t, dir, name), name)
	}
	require.Empty(t, trust.Missing())

	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM([]byte(read(t, dir, "ca.crt"))))
	block, _ := pem.Decode([]byte(read(t, dir, filepath.Base(machine))))
	leaf, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err, "certificates from before are good")

	added, err = trust.AddPublic()
	require.NoError(t, err)
	require.Empty(t, added)
	require.NoError(t, os.Remove(filepath.Join(dir, "access.pub")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "access.key"), nil, 0o600))
	_, err = trust.AddPublic()
	require.ErrorContains(t, err, "make access.pub of access.key: access.key holds no PRIVATE KEY")
	require.NoError(t, os.Remove(filepath.Join(dir, "access.key")))
	require.Equal(t, []string{"access.key"}, trust.Missing())
}

// TestKeysOfDatabasesStayWhereTheAuthorityIsGone: to make the authority anew is no reason to refuse all tokens.
func TestKeysOfDatabasesStayWhereTheAuthorityIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	trust, err := pki.Create(dir, time.Now)
	require.NoError(t, err)
	remove := func(names ...string) {
		for _, name := range names {
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
	}
	files := []string{"registry.key", "registry.pub", "access.key", "access.pub", "registry-replica.key", "registry-replica.pub", "access-replica.key"}
	before := map[string]string{}
	for _, name := range files {
		before[name] = read(t, dir, name)
	}
	remove("ca.key", "ca.crt", "registry.pub")
	_, err = pki.Create(dir, time.Now)
	require.NoError(t, err)
	for _, name := range files {
		require.Equal(t, before[name], read(t, dir, name), name)
	}
	_, _, err = trust.Certificate("edge")
	require.NoError(t, err)

	remove("ca.key", "ca.crt", "access.key")
	_, err = pki.Create(dir, time.Now)
	require.ErrorIs(t, err, pki.ErrKeyMissing)
	require.ErrorContains(t, err, "access.pub is there without its private key")
	require.Equal(t, before["registry.key"], read(t, dir, "registry.key"))
	require.NoFileExists(t, filepath.Join(dir, "ca.key"))
}

func read(t *testing.T, dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}
