package extsort

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

type pair struct{ key, value string }

func read(t *testing.T, s *Sorter) (list []pair) {
	t.Helper()
	rows, err := s.Rows()
	require.NoError(t, err)
	for rows.Next() {
		list = append(list, pair{string(rows.Key()), string(rows.Value())})
	}
	require.NoError(t, rows.Err())
	require.False(t, rows.Next())
	return list
}

func requireEmpty(t *testing.T, folder string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, files)
}

// TestOffsetsFitIn32Bits whatever memory there is.
func TestOffsetsFitIn32Bits(t *testing.T) {
	require.EqualValues(t, unsafe.Sizeof(entry{}), entryBytes)
	require.LessOrEqual(t, New(t.TempDir(), math.MaxInt).budget, math.MaxInt32)
}

// made are records whose keys repeat, with values that tell when each was added.
func made(count int) (list []pair) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range count {
		key := fmt.Sprintf("%0*d", 1+random.IntN(12), random.IntN(count/3+1))
		list = append(list, pair{key[:random.IntN(len(key)+1)], fmt.Sprintf("%d%s", i, bytes.Repeat([]byte("x"), random.IntN(40)))})
	}
	return list
}

func TestRecordsComeInOrderHoweverMuchFits(t *testing.T) {
	list := made(20_000)
	want := slices.Clone(list)
	slices.SortStableFunc(want, func(a, b pair) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	for _, budget := range []int{200, 10_000, 400_000, 1 << 24} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			folder := t.TempDir()
			s := New(folder, budget)
			for _, p := range list {
				require.NoError(t, s.Add([]byte(p.key), []byte(p.value)))
				require.LessOrEqual(t, len(s.texts)+len(s.index)*entryBytes, budget)
			}
			require.EqualValues(t, len(list), s.Len())
			if runtime.GOOS != "windows" {
				requireEmpty(t, folder) // its file would go with the process
			}
			got := read(t, s)
			require.Len(t, got, len(want))
			for i := range want {
				require.Equal(t, want[i], got[i])
			}
			require.NoError(t, s.Close())
			requireEmpty(t, folder)
			require.NoError(t, s.Close(), "again")
		})
	}
}

// TestSeveralMayReadAtATime each in a goroutine of its own, from memory or the file.
func TestSeveralMayReadAtATime(t *testing.T) {
	list := made(20_000)
	for _, budget := range []int{10_000, 1 << 24} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			s := New(t.TempDir(), budget)
			defer s.Close()
			for _, p := range list {
				require.NoError(t, s.Add([]byte(p.key), []byte(p.value)))
			}
			one, err := s.Rows()
			require.NoError(t, err)
			other, err := s.Rows()
			require.NoError(t, err)
			counted := make(chan int)
			go func() {
				n := 0
				for other.Next() {
					n++
				}
				counted <- n
			}()
			n := 0
			for one.Next() {
				n++
			}
			require.Equal(t, len(list), n)
			require.Equal(t, len(list), <-counted)
			require.NoError(t, errors.Join(one.Err(), other.Err()))
		})
	}
}

// TestClosingEndsAReading that is not done, with an error where the rest was in the file.
func TestClosingEndsAReading(t *testing.T) {
	s := New(t.TempDir(), 1<<20)
	for _, p := range made(100_000) {
		require.NoError(t, s.Add([]byte(p.key), []byte(p.value)))
	}
	rows, err := s.Rows()
	require.NoError(t, err)
	require.True(t, rows.Next())
	require.NoError(t, s.Close())
	for rows.Next() {
	}
	require.ErrorIs(t, rows.Err(), os.ErrClosed)
}

func TestSortedRunsComeBehindWhatWasAddedBefore(t *testing.T) {
	s := New(t.TempDir(), 1<<20)
	defer s.Close()
	require.NoError(t, s.Add([]byte("b"), []byte("1")))
	run := []pair{{"a", "2"}, {"b", "3"}, {"c", "4"}}
	require.NoError(t, s.AddSorted(func() (key, value []byte, ok bool) {
		if len(run) == 0 {
			return nil, nil, false
		}
		p := run[0]
		run = run[1:]
		return []byte(p.key), []byte(p.value), true
	}))
	require.NoError(t, s.Add([]byte("b"), []byte("5")))
	require.EqualValues(t, 5, s.Len())
	require.Equal(t, []pair{{"a", "2"}, {"b", "1"}, {"b", "3"}, {"b", "5"}, {"c", "4"}}, read(t, s))
}

// TestALengthMayLieAcrossTheEndOfTheBuffer, whose second part is read later.
func TestALengthMayLieAcrossTheEndOfTheBuffer(t *testing.T) {
	value := bytes.Repeat([]byte("x"), 200) // its length takes two bytes
	for within := 1; within <= 3; within++ {
		before := (readBuffer - within) % (3 + len("000") + len(value)) // so that a record begins so many bytes before the end
		s := New(t.TempDir(), 1<<20)
		added := 0
		require.NoError(t, s.AddSorted(func() (key, v []byte, ok bool) {
			added++
			if added == 1 {
				return []byte("000"), append(make([]byte, before), value...), true
			}
			return []byte("001"), value, added <= readBuffer/len(value)+2
		}))
		rows, err := s.Rows()
		require.NoError(t, err)
		got := 0
		for ; rows.Next(); got++ {
			if want := map[bool]int{true: before + len(value), false: len(value)}[got == 0]; len(rows.Value()) != want {
				require.Len(t, rows.Value(), want, "record %d, of which %d bytes are read first", got, within)
			}
		}
		require.NoError(t, rows.Err())
		require.EqualValues(t, s.Len(), got)
		require.NoError(t, s.Close())
	}
}

func TestARecordMayBeLongerThanTheBuffers(t *testing.T) {
	s := New(t.TempDir(), 1<<20)
	defer s.Close()
	long := string(bytes.Repeat([]byte("v"), 600_000))
	want := []pair{{"", ""}, {"k", long}, {"l", long}, {"m", "short"}, {"n", long}}
	for _, i := range []int{3, 1, 4, 0, 2} {
		require.NoError(t, s.Add([]byte(want[i].key), []byte(want[i].value)))
	}
	require.Equal(t, want, read(t, s))
	require.ErrorIs(t, s.Add(nil, make([]byte, 1<<20)), errRecordTooLong)
}

// TestARecordMayTakeTheWholeBudget, with the lengths that stand before it.
func TestARecordMayTakeTheWholeBudget(t *testing.T) {
	const budget = 1000
	s := New(t.TempDir(), budget)
	defer s.Close()
	longest := make([]byte, budget-2*binary.MaxVarintLen32)
	require.ErrorIs(t, s.Add([]byte("k"), longest), errRecordTooLong)
	require.Zero(t, s.Len())
	require.NoError(t, s.Add(nil, longest))
	require.NoError(t, s.Add(longest, nil))
	require.Len(t, read(t, s), 2)
}

// TestWhatFitsInMemoryNeedsNoFile, so that small imports write none.
func TestWhatFitsInMemoryNeedsNoFile(t *testing.T) {
	s := New(t.TempDir()+"/none", 1<<20)
	require.NoError(t, s.Add([]byte("b"), nil))
	require.NoError(t, s.Add([]byte("a"), nil))
	require.Equal(t, []pair{{"a", ""}, {"b", ""}}, read(t, s))
	require.NoError(t, s.Close())
}

// TestWhatAKilledProcessLeftIsRemoved, and nothing else.
func TestWhatAKilledProcessLeftIsRemoved(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{".sorting-1234", ".sorting", "registry.db"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	s := New(folder, 1000)
	for _, pair := range made(100) {
		require.NoError(t, s.Add([]byte(pair.key), []byte(pair.value)))
	}
	require.Len(t, read(t, s), 100)
	require.NoError(t, s.Close())
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, ".sorting registry.db", entries[0].Name()+" "+entries[1].Name())
}

func TestWithoutRecordsThereIsNothing(t *testing.T) {
	s := New(t.TempDir(), 100)
	require.Empty(t, read(t, s))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "again")
}

func TestAFolderThatIsNotThereIsNamed(t *testing.T) {
	s := New(t.TempDir()+"/none", 100)
	var err error
	for range 100 {
		if err = s.Add([]byte("key"), []byte("value")); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "make a temporary file to sort")
}

// TestAFullDiskIsAnError wherever records are written, so that none is lost in silence.
func TestAFullDiskIsAnError(t *testing.T) {
	full := func(t *testing.T, budget int) *Sorter {
		file, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
		if err != nil {
			t.Skip("this system has no /dev/full")
		}
		s := New(t.TempDir(), budget)
		require.NoError(t, s.spill.begin(s.folder))
		require.NoError(t, s.spill.file.Close())
		s.spill.file = file
		t.Cleanup(func() { file.Close() })
		return s
	}
	record := func() []byte { return make([]byte, 1000) }
	t.Run("a run that fits into the buffer", func(t *testing.T) {
		s := full(t, 10_000)
		var err error
		for n := 0; n < 20 && err == nil; n++ {
			err = s.Add(nil, record())
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
	})
	t.Run("the last run", func(t *testing.T) {
		s := full(t, 1<<20)
		s.runs = []section{{}} // there is one in the file
		require.NoError(t, s.Add(nil, record()))
		_, err := s.Rows()
		require.ErrorIs(t, err, syscall.ENOSPC)
	})
	t.Run("records that were sorted before", func(t *testing.T) {
		n := 0
		next := func() ([]byte, []byte, bool) { n++; return nil, record(), n < 1000 }
		require.ErrorIs(t, full(t, 1<<20).AddSorted(next), syscall.ENOSPC)
	})
	// roomAgain gives the sorter a file of its own after some records.
	roomAgain := func(t *testing.T, s *Sorter, after int) func() (key, value []byte, ok bool) {
		n := 0
		return func() ([]byte, []byte, bool) {
			if n++; n == after {
				file, err := os.Create(t.TempDir() + "/room")
				require.NoError(t, err)
				t.Cleanup(func() { file.Close() })
				s.spill.file = file
			}
			return nil, record(), n < 1000
		}
	}
	t.Run("records before a sorted run, with room again for that", func(t *testing.T) {
		s := full(t, 1<<20)
		require.NoError(t, s.Add(nil, record()))
		require.ErrorIs(t, s.AddSorted(roomAgain(t, s, 1)), syscall.ENOSPC)
	})
	t.Run("the beginning of a sorted run, with room again for its end", func(t *testing.T) {
		s := full(t, 1<<20)
		require.ErrorIs(t, s.AddSorted(roomAgain(t, s, 600)), syscall.ENOSPC)
	})
	t.Run("a disk that has room again before the run ends", func(t *testing.T) {
		s := full(t, 2*spillBuffer)
		require.NoError(t, s.spill.write(make([]byte, spillBuffer)))
		require.ErrorIs(t, s.spill.write([]byte("next")), syscall.ENOSPC)
	})
}

func BenchmarkSort(b *testing.B) {
	random := rand.New(rand.NewPCG(3, 4))
	s := New(b.TempDir(), 32<<20)
	defer s.Close()
	key, value := make([]byte, 30), make([]byte, 40)
	for b.Loop() {
		binary.BigEndian.PutUint64(key, random.Uint64())
		if err := s.Add(key, value); err != nil {
			b.Fatal(err)
		}
	}
	rows, err := s.Rows()
	require.NoError(b, err)
	for rows.Next() {
	}
	require.NoError(b, rows.Err())
}
