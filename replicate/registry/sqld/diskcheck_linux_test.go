package sqld

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestADiskIsAskedAgainEachTime: one that wrote may hang, and one that hung may write. A named pipe that nobody reads stands
// for a disk that ends no write.
func TestADiskIsAskedAgainEachTime(t *testing.T) {
	disk := diskCheck{dir: t.TempDir()}
	require.True(t, disk.answers(time.Minute))
	require.NoFileExists(t, filepath.Join(disk.dir, checkedDisk))
	pipe := filepath.Join(disk.dir, checkedDisk)
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.False(t, disk.answers(50*time.Millisecond))
	require.False(t, disk.answers(50*time.Millisecond), "it is not asked twice at once")
	reader, err := os.Open(pipe)
	require.NoError(t, err)
	defer reader.Close()
	require.True(t, disk.answers(time.Minute), "the write has ended")
	written, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Len(t, written, 1, "one write waited, not one for each question")
	require.True(t, disk.answers(time.Minute))
}

// TestADiskThatRefusesAnswers: a full one, or one that may only be read, does not hang.
func TestADiskThatRefusesAnswers(t *testing.T) {
	disk := diskCheck{dir: filepath.Join(t.TempDir(), "none")}
	require.True(t, disk.answers(time.Minute))
}
