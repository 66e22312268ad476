package sqld

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regedge/internal/testkit"
)

// TestABaseThatHadNoRoomIsMadeOnceTheDatabaseBeforeIsGone: the disk may hold two databases, and no copy beside them.
func TestABaseThatHadNoRoomIsMadeOnceTheDatabaseBeforeIsGone(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("skipped: a small file system can't be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	log := &testkit.Log{}
	s := &Server{Config: Config{Dir: dir, Link: &TLSFiles{}}}
	placed(t, s)
	content := seedIn(t, s)
	require.ErrorIs(t, os.WriteFile(File(dir)+"-wal", make([]byte, 2<<20), 0o600), unix.ENOSPC, "the rest of the disk")

	taken, err := s.takeSeed(newOutput(log), nil)
	require.NoError(t, err)
	require.True(t, taken)
	require.Contains(t, log.String(), "the disk has no room for the compressed database")
	require.NoDirExists(t, filepath.Join(dir, baseInWork), "what was made of it takes no room")
	require.NoError(t, s.placeSeed(newOutput(log)))
	requireBaseOf(t, s, content)
}

// TestAFullDiskIsNotTheMirrorsFault.
func TestAFullDiskIsNotTheMirrorsFault(t *testing.T) {
	o := offer(t)
	asked := 0
	o.mirror(t, func(w http.ResponseWriter, r *http.Request) { asked++; part(o.compressed)(w, r) })
	f, _ := fetcherOf(t, http.HandlerFunc(o.ServeHTTP))
	require.NoError(t, os.Symlink("/dev/full", fetchedPath(f.dir)))
	_, err := f.mayFollow(t.Context())
	require.ErrorIs(t, err, unix.ENOSPC)
	require.NotContains(t, err.Error(), "mirror")
	requireFetched(t, f, o)
	require.Equal(t, 2, asked)
}
