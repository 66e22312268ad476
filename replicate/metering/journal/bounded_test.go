package journal

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// found is a frame as a reader should find it, and what it should leave unread.
type found struct {
	at, gap int64
	kind    byte
	record  string
}

// framesOf finds the frames of a whole file in memory, in the simplest way.
func framesOf(file fileOf, content []byte) (list []found, end, unread int64) {
	whole := len(bytes.TrimRight(content, "\x00"))
	limit := maxRecord
	for at := 0; at+frameHead <= len(content); {
		h := head(binary.LittleEndian.Uint64(content[at:]) ^ file.mask(int64(at)))
		to := at + frameHead + h.size()
		if at < whole && h.plausible(limit) && to <= len(content) && h.sums(content[at+frameHead:to]) {
			list = append(list, found{int64(at), int64(at) - end, h.kind(), string(content[at+frameHead : to])})
			at, end, limit = to, int64(to), maxRecord
			continue
		}
		at, limit = at+1, maxSearched
	}
	return list, end, max(int64(whole)-end, 0)
}

// requireFrames compares a reader, which gets its bytes from another, with framesOf.
func requireFrames(t *testing.T, file fileOf, content []byte, from io.Reader) {
	t.Helper()
	r := newReader(file, from)
	var got []found
	for {
		f, err := r.next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		got = append(got, found{f.at, f.gap, f.kind, string(f.record)})
	}
	want, end, unread := framesOf(file, content)
	require.Equal(t, want, got)
	require.Equal(t, end, r.at)
	require.Equal(t, unread, r.unread)
}

// TestAReaderFindsEveryFrame of files with flips, holes of zeros, frames that are missing or stand twice, and torn
// ends, whatever pieces they are read in.
func TestAReaderFindsEveryFrame(t *testing.T) {
	sizes := []int{0, 1, 7, 8, 9, 100, readAhead - frameHead, readAhead, 3 * readAhead, maxSearched, maxSearched + 1}
	file := segmentFile(7)
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		var content []byte
		for range 2 + random.IntN(12) {
			size := random.IntN(40)
			if random.IntN(8) == 0 {
				size = sizes[random.IntN(len(sizes))]
			}
			record := make([]byte, size)
			if random.IntN(3) > 0 {
				for i := range record {
					record[i] = byte(random.Uint32())
				}
			}
			at := len(content)
			content = appendFrame(content, byte(1+random.IntN(5)), record)
			file.place(content[at:], int64(at))
		}
		for range random.IntN(4) {
			at := random.IntN(len(content))
			to := min(len(content), at+1+random.IntN(200))
			switch random.IntN(5) {
			case 0:
				content[at] ^= 1 << random.IntN(8)
			case 1:
				clear(content[at:to])
			case 2:
				clear(content[at:min(len(content), at+2*readAhead)])
			case 3:
				copy(content[random.IntN(len(content)):], content[at:to])
			case 4:
				content = append(content[:at], make([]byte, random.IntN(3*readAhead))...)
				content = append(content, 1)
			}
		}
		content = append(content, make([]byte, random.IntN(20))...)
		requireFrames(t, file, content, bytes.NewReader(content))
		if len(content) < readAhead {
			requireFrames(t, file, content, iotest.OneByteReader(bytes.NewReader(content)))
		}
	}
}

// FuzzFrames compares a reader with the simplest way to find frames, in the bytes of a file and in the frames that
// are behind them.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("no frame"), uint16(20))
	f.Add(append(appendFrame(nil, frameRecord, []byte("record")), 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), uint16(0))
	f.Fuzz(func(t *testing.T, content []byte, zeros uint16) {
		content = append(slices.Clip(content), make([]byte, zeros)...)
		behind := len(content)
		content = appendFrame(content, frameRecord, []byte("behind"))
		for _, file := range []fileOf{0, segmentFile(3)} {
			file.place(content[behind:], int64(behind))
			requireFrames(t, file, content, bytes.NewReader(content))
			file.place(content[behind:], int64(behind))
		}
	})
}

// hole is a file of zeros, but for its beginning and its end.
func hole(begin []byte, zeros int64, end []byte) io.Reader {
	return io.MultiReader(bytes.NewReader(begin), io.LimitReader(nothing{}, zeros), bytes.NewReader(end))
}

type nothing struct{}

func (nothing) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// allocated is how many bytes do allocates in all.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestDamageOfAGigabyteTakesLittleMemory: somebody made the file that long, or a disk lost so much of it.
func TestDamageOfAGigabyteTakesLittleMemory(t *testing.T) {
	const long = 1 << 30
	file := archiveFile(archiveDay)
	first := appendFrame(nil, frameRecord, []byte("first"))
	file.place(first, 0)
	last := appendFrame(nil, frameRecord, make([]byte, maxSearched))
	file.place(last, int64(len(first))+long)
	took := allocated(func() {
		r := newReader(file, hole(first, long, last))
		f, err := r.next()
		require.NoError(t, err)
		require.EqualValues(t, "first", f.record)
		f, err = r.next()
		require.NoError(t, err)
		require.EqualValues(t, long, f.gap)
		require.Len(t, f.record, maxSearched)
		_, err = r.next()
		require.ErrorIs(t, err, io.EOF)

		r = newReader(file, hole(first, long, nil))
		_, err = r.next()
		require.NoError(t, err)
		_, err = r.next()
		require.ErrorIs(t, err, io.EOF)
		require.Zero(t, r.unread)
		require.EqualValues(t, len(first), r.at)
	})
	require.Less(t, took, uint64(5*maxRecord))
}

// long is a Dir whose files are longer than memory should be.
type long struct {
	*disk
	bytes int64
	wrote int64
}

func (d *long) Open(string) (io.ReadCloser, error) {
	return io.NopCloser(io.LimitReader(nothing{}, d.bytes)), nil
}

func (d *long) Append(name string) (File, error) {
	file, err := d.disk.Append(name)
	return &longFile{file, d}, err
}

type longFile struct {
	File
	d *long
}

func (f *longFile) Write(p []byte) (int, error) {
	f.d.wrote += int64(len(p))
	return len(p), nil
}

// TestACopyOfALongArchiveTakesLittleMemory: a day of a busy edge has gigabytes.
func TestACopyOfALongArchiveTakesLittleMemory(t *testing.T) {
	d := &long{disk: newDisk(), bytes: 1 << 30}
	a := reportArchive{dir: d, day: archiveDay}
	const good = 1<<28 + 5
	took := allocated(func() { require.NoError(t, a.copy(good)) })
	require.Less(t, took, uint64(2*maxRecord))
	require.EqualValues(t, good, d.wrote)
}

// TestASearchFindsRecordsUpToItsBound: behind damage, longer ones are not looked for.
func TestASearchFindsRecordsUpToItsBound(t *testing.T) {
	for size, want := range map[int]error{maxSearched: nil, maxSearched + 1: io.EOF} {
		damaged := append([]byte{1}, appendFrame(nil, frameRecord, make([]byte, size))...)
		_, err := newReader(0, bytes.NewReader(damaged)).next()
		require.Equal(t, want, err, size)
	}
}
