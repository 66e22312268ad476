package journal

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// memory is a Mappable in memory, on a disk with some room left.
type memory struct {
	content []byte
	room    int64
	mapped  int
	full    int64 // bytes that the file may have, 0 for no limit
	refusal error // of more than that
	cannot  error // of mapping
}

const memoryPage = 4096

func (m *memory) Write(p []byte) (int, error) {
	if m.full > 0 && int64(len(m.content)+len(p)) > m.full {
		return 0, &os.PathError{Op: "write", Err: m.refusal} // as of a file
	}
	m.content = append(m.content, p...)
	return len(p), nil
}

func (m *memory) Truncate(size int64) error {
	m.content = m.content[:size]
	return nil
}

func (m *memory) Sync() error          { return nil }
func (m *memory) Size() (int64, error) { return int64(len(m.content)), nil }
func (m *memory) Close() error         { return nil }
func (m *memory) Intact(int64) error   { return nil }
func (m *memory) PageSize() int64      { return memoryPage }
func (m *memory) Room() int64          { return m.room }

func (m *memory) Map(from, to int64) (Window, error) {
	if m.cannot != nil {
		return nil, m.cannot
	}
	m.mapped++
	return &part{m, from, to}, nil
}

type part struct {
	of       *memory
	from, to int64
}

func (p *part) Put(at int64, b []byte) bool {
	return copy(p.of.content[p.from+at:p.to], b) == len(b)
}

func (p *part) Close() error {
	p.of.mapped--
	return nil
}

// TestAWindowTakesLittleOfTheDisk: a megabyte, but no more than a part of the room that is left, and as
// much as the record needs in any case.
func TestAWindowTakesLittleOfTheDisk(t *testing.T) {
	for name, c := range map[string]struct{ room, written, want int64 }{
		"much room":               {1 << 40, 100, windowSize},
		"a window is a 64th":      {64 * windowSize, 100, windowSize},
		"less than that":          {64 * 10 * memoryPage, 100, 10 * memoryPage},
		"whole pages":             {64*10*memoryPage + 64*100, 100, 10 * memoryPage},
		"no room":                 {0, 100, memoryPage},
		"a large record":          {0, 3*memoryPage + 1, 4 * memoryPage},
		"a record of whole pages": {0, 2 * memoryPage, 2 * memoryPage},
		"a very large record":     {1 << 40, 3 * windowSize, 3 * windowSize},
	} {
		disk := &memory{room: c.room}
		f, err := Mapped(disk)
		require.NoError(t, err)
		n, err := f.Write(make([]byte, c.written))
		require.NoError(t, err)
		require.EqualValues(t, c.written, n)
		require.Len(t, disk.content, int(c.want), name)
		require.NoError(t, f.Close())
		require.Len(t, disk.content, int(c.written), name)
		require.Zero(t, disk.mapped, "nothing stays mapped")
	}
}

// TestAWindowMovesOn page by page, with one window at a time, and the file holds what was written.
func TestAWindowMovesOn(t *testing.T) {
	disk := &memory{room: 64 * 2 * memoryPage}
	f, err := Mapped(disk)
	require.NoError(t, err)
	var want []byte
	for n := range 100 {
		record := make([]byte, 700)
		for i := range record {
			record[i] = byte(n + 1)
		}
		want = append(want, record...)
		_, err := f.Write(record)
		require.NoError(t, err)
		require.LessOrEqual(t, len(disk.content), len(want)+2*memoryPage)
		require.Equal(t, 1, disk.mapped)
		size, err := f.Size()
		require.NoError(t, err)
		require.EqualValues(t, len(want), size)
	}
	require.NoError(t, f.Close())
	require.Equal(t, want, disk.content)
}

// TestAFullDiskTakesASmallWindow, and so does a full quota: what the record needs may fit where a window
// does not.
func TestAFullDiskTakesASmallWindow(t *testing.T) {
	for _, refusal := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		disk := &memory{room: 1 << 40, full: 2 * memoryPage, refusal: refusal}
		f, err := Mapped(disk)
		require.NoError(t, err)
		_, err = f.Write([]byte("fits"))
		require.NoError(t, err)
		_, err = f.Write(make([]byte, 3*memoryPage))
		require.ErrorIs(t, err, refusal)
		size, err := f.Size()
		require.NoError(t, err)
		require.EqualValues(t, 4, size)
		_, err = f.Write([]byte(" too"))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, "fits too", string(disk.content))
	}
}

// TestAFileThatCanNotBeMappedAnyMoreKeepsItsLength, so that nothing takes room for nothing.
func TestAFileThatCanNotBeMappedAnyMoreKeepsItsLength(t *testing.T) {
	disk := &memory{room: 64 * memoryPage}
	f, err := Mapped(disk)
	require.NoError(t, err)
	_, err = f.Write(make([]byte, memoryPage))
	require.NoError(t, err)
	disk.cannot = syscall.ENOMEM
	for range 3 {
		_, err = f.Write([]byte("more"))
		require.ErrorIs(t, err, syscall.ENOMEM)
		require.Len(t, disk.content, memoryPage)
	}
	disk.cannot = nil
	_, err = f.Write([]byte("more"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Len(t, disk.content, memoryPage+4)
}
