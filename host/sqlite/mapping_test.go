package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
)

// manyPages is a table of some 8 MB, more than a connection caches.
const (
	manyPages = `CREATE TABLE filler (id INTEGER PRIMARY KEY, text TEXT);
		WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i+1 FROM n WHERE i < 2000)
		INSERT INTO filler SELECT i, hex(zeroblob(2000)) FROM n;
		PRAGMA wal_checkpoint(TRUNCATE)`
	manyCharacters = 2000 * 4000
)

// mappings is how many of the process's mappings are of a file, and descriptors how many of
// its open files.
func mappings(t *testing.T, path string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(maps), path+"\n")
}

func descriptors(t *testing.T, path string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && strings.HasPrefix(to, path) {
			n++
		}
	}
	return n
}

// characters reads the whole table.
func characters(t *testing.T, s *sqlite.Store) (int64, error) {
	t.Helper()
	var got handler.Result
	if err := s.Query(t.Context(), "SELECT sum(length(text)) FROM filler", nil, &got); err != nil {
		return 0, err
	}
	return got.Values[0].Int, nil
}

func requireCharacters(t *testing.T, s *sqlite.Store, want int64) {
	t.Helper()
	n, err := characters(t, s)
	require.NoError(t, err)
	require.Equal(t, want, n)
}

func TestAFileIsMapped(t *testing.T) {
	onlyOnLinux(t)
	path, writer := newFile(t, manyPages)
	s := open(t, sqlite.Config{Path: path, MapFrom: 1})
	requireCharacters(t, s, manyCharacters)
	require.Equal(t, 1, mappings(t, path))

	t.Run("and what its owner changes is read", func(t *testing.T) {
		require.NoError(t, writer.Exec(`UPDATE filler SET text = 'x' WHERE id = 1000`))
		requireCharacters(t, s, manyCharacters-4000+1)
		require.NoError(t, writer.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`))
		requireCharacters(t, s, manyCharacters-4000+1)
	})
	t.Run("and what its owner adds, beyond the room for it", func(t *testing.T) {
		for _, rows := range []int64{200, 1000, 4000} {
			before, err := characters(t, s)
			require.NoError(t, err)
			require.NoError(t, writer.Exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i+1 FROM n WHERE i < %d)
				INSERT INTO filler (text) SELECT hex(zeroblob(2000)) FROM n; PRAGMA wal_checkpoint(TRUNCATE)`, rows)))
			requireCharacters(t, s, before+rows*4000)
		}
	})
	t.Run("and a file that its owner made smaller", func(t *testing.T) {
		require.NoError(t, writer.Exec(`DELETE FROM filler WHERE id <> 1000; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)`))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(64<<10))
		requireCharacters(t, s, 1)
	})
	t.Run("until it is closed", func(t *testing.T) {
		require.NoError(t, s.Close())
		require.Zero(t, mappings(t, path))
	})
	t.Run("but not a small one", func(t *testing.T) {
		requireCharacters(t, open(t, sqlite.Config{Path: path}), 1)
		require.Zero(t, mappings(t, path))
	})
}

func onlyOnLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("looks into /proc")
	}
}

// A page that can't be read arrives as a signal where the file is mapped, which ends a program
// that is not prepared for it.
func TestAMappedFileThatIsCutOff(t *testing.T) {
	onlyOnLinux(t)
	path, _ := newFile(t, manyPages)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	s := open(t, sqlite.Config{Path: path, MapFrom: 1, Connections: 2, Hold: time.Minute})
	requireCharacters(t, s, manyCharacters)
	before := descriptors(t, path)

	require.NoError(t, os.Truncate(path, 64<<10))
	_, err = characters(t, s)
	require.True(t, sqlite.Spoils(err), "%v", err)

	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.Write(whole)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	requireCharacters(t, s, manyCharacters)
	require.Equal(t, before, descriptors(t, path), "the connection that met with it is closed")
	require.Equal(t, 1, mappings(t, path))
}

// All connections meet with it, and more than once.
func TestAMappedFileThatIsCutOffUnderLoad(t *testing.T) {
	path, _ := newFile(t, manyPages)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	s := open(t, sqlite.Config{Path: path, MapFrom: 1, Connections: 4, Pinned: true})
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if n, err := characters(t, s); err == nil {
					assert.EqualValues(t, manyCharacters, n)
				}
			}
		})
	}
	for range 20 {
		require.NoError(t, f.Truncate(64<<10))
		time.Sleep(5 * time.Millisecond)
		_, err = f.WriteAt(whole, 0)
		require.NoError(t, err)
		time.Sleep(5 * time.Millisecond)
	}
	close(done)
	readers.Wait()
	requireCharacters(t, s, manyCharacters)
}

// A path is a part of the address that SQLite is given, where some characters mean something.
func TestAPathWithEveryCharacter(t *testing.T) {
	for _, name := range []string{"plain.db", "a b.db", "100%.db", "50%41.db", "what?mode=rwc.db", "part#2.db", "é:ü.db", "a+b&c=d.db"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name+".d")
			require.NoError(t, os.Mkdir(dir, 0o700))
			path := filepath.Join(dir, name)
			writer, err := sqlite3.Open(path)
			require.NoError(t, err)
			require.NoError(t, writer.Exec("PRAGMA journal_mode=wal;"+people))
			require.NoError(t, writer.Close())
			fillsEveryStorageClass(t, open(t, sqlite.Config{Path: path, MapFrom: 1}))
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, entry := range entries {
				require.True(t, strings.HasPrefix(entry.Name(), name), entry.Name())
			}
			t.Chdir(dir)
			fillsEveryStorageClass(t, open(t, sqlite.Config{Path: name, MapFrom: 1}))
			fillsEveryStorageClass(t, open(t, sqlite.Config{Path: "./" + name, MapFrom: 1}))
		})
	}
}
