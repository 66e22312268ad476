package server_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regedge/host/server"
)

// TestALogOnAFullDiskGoesOnWithAWholeLine, once there is room, and says how many lines it lacks: the one that was cut off ran
// into the next one, and nothing was said.
func TestALogOnAFullDiskGoesOnWithAWholeLine(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Skipf("skipped: a small file system can't be mounted here: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	file, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer file.Close()
	told := make(chan int64, 10)
	buffer := server.NewLogBuffer(file)
	buffer.Lost = func(lines int64) { told <- lines }
	flush := func() error {
		for { // a write that takes a second goes on: on a busy machine one does
			if err := buffer.Flush(); err != server.ErrLogHangs {
				return err
			}
		}
	}
	line := func(i int) []byte { return fmt.Appendf(nil, "line %93d\n", i) } // a page is no whole number of them
	const refused = 2000
	for i := range refused {
		_, _ = buffer.Write(line(i))
		if i%10 == 0 {
			err = flush()
		}
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	_ = flush()
	require.Empty(t, told)

	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "size=10m"))
	_, err = buffer.Write(line(refused))
	require.NoError(t, err)
	require.NoError(t, flush())
	content, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	whole := 0
	for i := range refused + 1 {
		if bytes.HasPrefix(content, line(i)) || bytes.Contains(content, append([]byte{'\n'}, line(i)...)) {
			whole++
		}
	}
	require.True(t, bytes.HasSuffix(content, append([]byte{'\n'}, line(refused)...)), "%q", content[len(content)-150:])
	require.EqualValues(t, refused+1-whole, <-told)
	_, _ = buffer.Write(line(0))
	require.NoError(t, flush())
	require.Empty(t, told, "they are told once")
}
