package journal

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestFilesAreSyncedSideBySideAndAFailureIsOfOneFile(t *testing.T) {
	for name, s := range map[string]*syncer{"in the background": newSyncer(), "by fdatasync": {mu: NewLock(RankDisk)}} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(s.close)
			if name == "in the background" && s.context == 0 {
				t.Skip("this kernel allows no asynchronous requests")
			}
			var group sync.WaitGroup
			for i := range 4 {
				file, err := os.Create(filepath.Join(t.TempDir(), "file"))
				require.NoError(t, err)
				group.Go(func() {
					for range 20 {
						_, err := file.Write(make([]byte, 100*(i+1)))
						if err == nil {
							err = s.sync(file)
						}
						if err != nil {
							t.Error(err)
						}
					}
					file.Close()
				})
			}
			group.Wait()

			// A file that can't be synced is an error, which does not affect the next sync.
			reading, writing, err := os.Pipe()
			require.NoError(t, err)
			defer reading.Close()
			require.ErrorIs(t, s.sync(writing), unix.EINVAL)
			require.NoError(t, writing.Close())
			require.Error(t, s.sync(writing), "a closed file")
			file, err := os.Create(filepath.Join(t.TempDir(), "file"))
			require.NoError(t, err)
			require.NoError(t, s.sync(file))
			require.NoError(t, file.Close())
		})
	}
}

// TestAClosedDirectoryLeavesNothingOpen, of what the kernel counts: files, events and mapped memory.
func TestAClosedDirectoryLeavesNothingOpen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection closes forgotten files
	path := filepath.Join(t.TempDir(), "state")
	held := func() (list []string) {
		files, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		for _, file := range files {
			to, err := os.Readlink("/proc/self/fd/" + file.Name())
			if err == nil && (strings.HasPrefix(to, path) || strings.Contains(to, "eventfd")) {
				list = append(list, to)
			}
		}
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		if strings.Contains(string(maps), path) {
			list = append(list, "mapped memory")
		}
		return list
	}
	before := held() // the runtime has an event of its own
	for range 2 {
		d, err := OpenDir(path)
		require.NoError(t, err)
		_, told := life(d)
		require.NoError(t, told)
		require.Equal(t, before, held())
	}
}
