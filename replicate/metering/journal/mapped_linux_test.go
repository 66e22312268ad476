package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openMapped opens a segment that is written through memory, or skips the test.
func openMapped(t *testing.T) (d Dir, path string, f *mappedFile) {
	t.Helper()
	root := t.TempDir()
	d, err := OpenDir(root)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	name := segmentName(1)
	file, err := d.Append(name)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	f, ok := file.(*mappedFile)
	if !ok {
		t.Skip("skipped: the file system of temporary files is written by system calls")
	}
	return d, filepath.Join(root, name), f
}

func TestMappedFile(t *testing.T) {
	_, path, f := openMapped(t)
	var want strings.Builder
	write := func(size int) {
		piece := strings.Repeat(string(rune('a'+size%26)), size)
		want.WriteString(piece)
		n, err := f.Write([]byte(piece))
		require.NoError(t, err)
		require.Equal(t, size, n)
	}
	for _, size := range []int{1, 4095, 4096, 4097, windowSize - 1, windowSize, windowSize + 1, 3 * windowSize, 7} {
		write(size)
	}
	for range 3 * windowSize / 997 {
		write(997)
	}

	t.Run("has zeros at its end while it is open", func(t *testing.T) {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Greater(t, len(got), want.Len())
		require.Equal(t, want.String(), strings.TrimRight(string(got), "\x00"))
		require.NoError(t, f.Sync())
	})
	t.Run("is cut and written again", func(t *testing.T) {
		const left = windowSize + 12345
		require.NoError(t, f.Truncate(left))
		kept := want.String()[:left]
		want.Reset()
		want.WriteString(kept)
		write(99)
	})
	t.Run("has nothing else once it is closed", func(t *testing.T) {
		require.NoError(t, f.Close())
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want.String(), string(got))
	})
}

// TestMappedFileCutByAnotherProcess writes to memory that is no longer part of the file.
func TestMappedFileCutByAnotherProcess(t *testing.T) {
	_, path, f := openMapped(t)
	_, err := f.Write([]byte("before"))
	require.NoError(t, err)
	const written = int64(len("before"))
	require.NoError(t, f.Intact(written))
	require.NoError(t, os.Truncate(path, written))
	require.ErrorIs(t, f.Intact(written), ErrReplaced, "the next write has no memory to go to")
	require.NoError(t, os.Truncate(path, 0))
	n, err := f.Write([]byte("charge"))
	require.ErrorContains(t, err, "the file was cut short")
	require.Positive(t, n, "part of it may be in the file")
	require.NoError(t, f.Truncate(0))
	_, err = f.Write([]byte("after"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "after", string(got))
}

// TestSegmentThatWasNotClosed opens a segment as a crashed process or a power cut left it.
func TestSegmentThatWasNotClosed(t *testing.T) {
	d, path, f := openMapped(t)
	require.NoError(t, f.Close())
	k := &recorder{}
	j, _, _, _ := opened(t, d, k)
	require.NoError(t, put(j, k, "one", true))
	require.NoError(t, put(j, k, "two\x00", true))
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Greater(t, len(left), len(strings.TrimRight(string(left), "\x00"))+1, "it is longer than what was written")
	require.NoError(t, j.Close())

	for _, test := range []struct {
		name    string
		cut     int // bytes of the last record that did not reach the disk
		records []string
		torn    int
	}{
		{"crash: whole", 0, []string{"one", "two\x00"}, 0},
		{"power cut: without the end of its last record", 2, []string{"one"}, frameHead + 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			end := len(strings.TrimRight(string(left), "\x00")) + 1 // of the record
			content := append([]byte(nil), left...)
			clear(content[end-test.cut:])
			require.NoError(t, os.WriteFile(filepath.Join(root, segmentName(1)), content, 0o600))
			other, err := OpenDir(root)
			require.NoError(t, err)
			again, _, records, found := opened(t, other, k)
			require.Equal(t, test.records, records)
			require.EqualValues(t, test.torn, found.Torn)
			require.NoError(t, put(again, k, "after", true))
			require.NoError(t, again.Close())
			other, err = OpenDir(root)
			require.NoError(t, err)
			last, _, records, _ := opened(t, other, k)
			require.Equal(t, append(test.records, "after"), records)
			require.NoError(t, last.Close())
		})
	}
}

// TestFileThatCannotBeMapped opens a file without the right to read it, which a mapping needs.
func TestFileThatCannotBeMapped(t *testing.T) {
	file, err := os.OpenFile(filepath.Join(t.TempDir(), segmentName(1)), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer file.Close()
	f := &mappedFile{Mappable: osMappable{osFile{File: file}}}
	for range 3 {
		n, err := f.Write([]byte("charge"))
		require.ErrorIs(t, err, os.ErrPermission)
		require.Zero(t, n)
		info, err := file.Stat()
		require.NoError(t, err)
		require.Zero(t, info.Size(), "no attempt takes disk space")
	}
}

// TestDeviceThatNeedsStablePages reads the kernel's description of disks and partitions.
func TestDeviceThatNeedsStablePages(t *testing.T) {
	root := t.TempDir()
	devices := filepath.Join(root, "dev", "block")
	require.NoError(t, os.MkdirAll(devices, 0o700))
	for at, disk := range []struct{ name, says string }{{"plain", "0\n"}, {"raid", "1\n"}, {"silent", ""}} {
		queue := filepath.Join(root, "devices", disk.name, "queue")
		part := filepath.Join(root, "devices", disk.name, disk.name+"1")
		require.NoError(t, os.MkdirAll(queue, 0o700))
		require.NoError(t, os.MkdirAll(part, 0o700))
		if disk.says != "" {
			require.NoError(t, os.WriteFile(filepath.Join(queue, "stable_writes"), []byte(disk.says), 0o600))
		}
		for minor, folder := range []string{filepath.Dir(queue), part} {
			require.NoError(t, os.Symlink(folder, filepath.Join(devices, fmt.Sprintf("8:%d", 16*at+minor))))
			wants := needsStablePages(devices, unix.Mkdev(8, uint32(16*at+minor)))
			require.Equal(t, disk.name != "plain", wants, "%s, partition %d", disk.name, minor)
		}
	}
	require.True(t, needsStablePages(devices, unix.Mkdev(9, 0)), "a missing device")
}

// TestTheRoomOfADiskIsInBytes.
func TestTheRoomOfADiskIsInBytes(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	var system unix.Statfs_t
	require.NoError(t, unix.Fstatfs(int(file.Fd()), &system))
	room := osMappable{osFile{File: file}}.Room()
	left := float64(system.Bavail) * float64(system.Bsize)
	require.InEpsilon(t, left, float64(room), 0.5, "others write too")
}
