package sqldtest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"
)

// failed is a test that notes that it failed.
type failed struct {
	testing.TB
	yes bool
}

func (f *failed) Helper()               {}
func (f *failed) Errorf(string, ...any) { f.yes = true }
func (f *failed) FailNow()              { panic(f) }

// TestADamagedFileIsNotIntact, though it can be opened and read in part.
func TestADamagedFileIsNotIntact(t *testing.T) {
	file := filepath.Join(t.TempDir(), "some.db")
	conn, err := sqlite3.Open(file)
	require.NoError(t, err)
	require.NoError(t, conn.Exec(`PRAGMA page_size = 4096; CREATE TABLE some (word TEXT); INSERT INTO some VALUES ('one'), ('two'), ('three'); CREATE INDEX by_word ON some (word)`))
	require.NoError(t, conn.Close())
	fails := func() bool {
		f := &failed{TB: t}
		func() {
			defer func() {
				if cause := recover(); cause != nil && cause != any(f) {
					panic(cause)
				}
			}()
			RequireIntact(f, file)
		}()
		return f.yes
	}
	require.False(t, fails())
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	at := bytes.LastIndex(content, []byte("two")) // in the index, which then lacks it
	copy(content[at:], "tWo")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	require.True(t, fails())
}
