package sqld_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
)

// stranger is a user that owns nothing, as nobody does on most systems.
const stranger = 65534

// primaryDir is a directory in which a primary has run, as another user if this test may make one up.
func primaryDir(t *testing.T, parent string) sqld.Seed {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "primary")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	lock := filepath.Join(dir, lockName)
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(lock, stranger, stranger))
	}
	return sqld.Seed(dir)
}

func fileOf(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// notCopied is the copying of what is moved.
func notCopied(t *testing.T) func(io.Writer, *os.File) error {
	return func(io.Writer, *os.File) error {
		t.Error("it is copied")
		return nil
	}
}

func requireContent(t *testing.T, file, want string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(content))
}

// requireOwner requires that a file is the user's that the primary in dir runs as, and nobody else's.
func requireOwner(t *testing.T, dir sqld.Seed, file string) {
	t.Helper()
	want, err := os.Stat(filepath.Join(string(dir), lockName))
	require.NoError(t, err)
	info, err := os.Lstat(file)
	require.NoError(t, err)
	require.Equal(t, want.Sys().(*syscall.Stat_t).Uid, info.Sys().(*syscall.Stat_t).Uid, file)
	require.Equal(t, want.Sys().(*syscall.Stat_t).Gid, info.Sys().(*syscall.Stat_t).Gid, file)
	require.Zero(t, info.Mode().Perm()&0o077, file)
}

// TestASeedIsThePrimarysUsers: root hands it over, and the primary runs as another user, who moves it and
// writes to it.
func TestASeedIsThePrimarysUsers(t *testing.T) {
	dir := primaryDir(t, t.TempDir())
	require.NoError(t, dir.Check())
	require.False(t, dir.Waits())
	file := fileOf(t, "made")
	require.NoError(t, dir.Put(file, notCopied(t)))
	require.True(t, dir.Waits())
	require.NoFileExists(t, file)
	seed := sqld.SeedFile(string(dir))
	requireContent(t, seed, "made")
	requireOwner(t, dir, seed)
	requireOwner(t, dir, filepath.Dir(seed))
	require.NoError(t, dir.Put(fileOf(t, "later"), notCopied(t)), "one that waits is replaced")
	requireContent(t, seed, "later")
	require.NoError(t, dir.Withdraw())
	require.False(t, dir.Waits())
	require.ErrorIs(t, dir.Withdraw(), os.ErrNotExist)
}

// TestASeedOfAnotherFileSystemIsCopied.
func TestASeedOfAnotherFileSystemIsCopied(t *testing.T) {
	const memory = "/dev/shm"
	own, err := os.Stat(t.TempDir())
	require.NoError(t, err)
	other, err := os.Stat(memory)
	if err != nil || own.Sys().(*syscall.Stat_t).Dev == other.Sys().(*syscall.Stat_t).Dev {
		t.Skipf("%s is no other file system", memory)
	}
	dir := primaryDir(t, memory)
	file := fileOf(t, "made")
	full := io.ErrShortWrite
	err = dir.Put(file, func(to io.Writer, from *os.File) error {
		_, _ = io.WriteString(to, "half")
		require.False(t, dir.Waits(), "before it is whole")
		return full
	})
	require.ErrorIs(t, err, full)
	left, err := os.ReadDir(filepath.Dir(sqld.SeedFile(string(dir))))
	require.NoError(t, err)
	require.Empty(t, left)
	require.FileExists(t, file)

	require.NoError(t, dir.Put(file, func(to io.Writer, from *os.File) error {
		_, err := io.Copy(to, from)
		return err
	}))
	require.NoFileExists(t, file)
	seed := sqld.SeedFile(string(dir))
	requireContent(t, seed, "made")
	requireOwner(t, dir, seed)
}

// TestNoLinkLeadsASeedOutOfTheDirectory: its user would have root write, or give away, a file of another place.
func TestNoLinkLeadsASeedOutOfTheDirectory(t *testing.T) {
	dir, elsewhere := primaryDir(t, t.TempDir()), t.TempDir()
	precious := filepath.Join(elsewhere, "data")
	require.NoError(t, os.WriteFile(precious, []byte("precious"), 0o600))
	folder := filepath.Dir(sqld.SeedFile(string(dir)))
	require.NoError(t, os.Symlink(elsewhere, folder))
	file := fileOf(t, "made")
	require.Error(t, dir.Put(file, notCopied(t)))
	require.Error(t, dir.Withdraw())
	requireContent(t, precious, "precious")
	info, err := os.Stat(elsewhere)
	require.NoError(t, err)
	require.EqualValues(t, os.Geteuid(), info.Sys().(*syscall.Stat_t).Uid)

	require.NoError(t, os.Remove(folder))
	require.NoError(t, os.Link(precious, folder))
	require.Error(t, dir.Put(file, notCopied(t)))
	info, err = os.Stat(precious)
	require.NoError(t, err)
	require.EqualValues(t, os.Geteuid(), info.Sys().(*syscall.Stat_t).Uid)
	require.NoError(t, os.Remove(folder))
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.Symlink(precious, sqld.SeedFile(string(dir))))
	require.NoError(t, dir.Put(file, notCopied(t)), "a link in the place of the file is replaced")
	requireContent(t, precious, "precious")
}

// TestAPrimarysUserIsNotTheOneOfALinksFile: whoever has the directory chooses where a link there leads.
func TestAPrimarysUserIsNotTheOneOfALinksFile(t *testing.T) {
	dir := primaryDir(t, t.TempDir())
	lock := filepath.Join(string(dir), "regedge.lock")
	require.NoError(t, os.Remove(lock))
	require.NoError(t, os.Symlink(fileOf(t, "of another user"), lock))
	require.ErrorContains(t, dir.Check(), "regedge.lock is not a file")
	require.ErrorContains(t, dir.Put(fileOf(t, "made"), notCopied(t)), "regedge.lock is not a file")
	require.NoFileExists(t, sqld.SeedFile(string(dir)))
}

// TestWhereNoPrimaryRunsIsSaid, and whose directory it is, before anything is made.
func TestWhereNoPrimaryRunsIsSaid(t *testing.T) {
	require.ErrorIs(t, sqld.Seed(t.TempDir()).Check(), sqld.ErrNoPrimary)
	require.ErrorIs(t, sqld.Seed(filepath.Join(t.TempDir(), "missing")).Check(), os.ErrNotExist)
	if os.Geteuid() == 0 {
		return // who is refused nothing
	}
	err := sqld.Seed("/root").Check()
	require.ErrorIs(t, err, sqld.ErrForeign)
	require.ErrorContains(t, err, "root")
}

// TestASeedThatCantBeTakenLeavesTheDatabase: it is served on, and after a restart,
// and what is wrong is said once.
func TestASeedThatCantBeTakenLeavesTheDatabase(t *testing.T) {
	log := &testkit.Log{}
	primary := sqldtest.Start(t, sqld.Config{HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t), Log: log})
	sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER)", "INSERT INTO probe VALUES (5)")
	pid := primary.PID()
	require.NoError(t, os.MkdirAll(sqld.SeedFile(primary.Dir), 0o700), "a folder can't be written to, nor a file of root")
	const said = "can't be taken, and the one before stays"
	require.Eventually(t, func() bool { return strings.Contains(log.String(), said) }, patience, 20*time.Millisecond)
	time.Sleep(1200 * time.Millisecond)
	require.Equal(t, 1, strings.Count(log.String(), said), "once in two looks")
	follows(t, primary, 5)
	require.Equal(t, pid, primary.PID())
	primary.Stop()
	require.NoError(t, primary.Start())
	follows(t, primary, 5)
}
