package merge

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/schema/extsort"
	"regedge/schema/importer/record"
)

// say is what one source says of a record.
type say struct {
	asOf   string
	values []record.Value
}

func mergeAll(t *record.Table, says []say) *State {
	s := NewState(t)
	for _, x := range says {
		s.Merge(t, x.values, x.asOf)
		// As the database does: a state is written and read between merges.
		back := NewState(t)
		copy(back.Values, s.Values)
		back.AsOf = s.AsOf
		back.SetDates(t, s.Older(t).Text)
		s = back
	}
	return s
}

// TestMergeDoesNotDependOnOrder merges random sources, of few dates and few values so that
// they collide, in random orders and with repetitions.
func TestMergeDoesNotDependOnOrder(t *testing.T) {
	for _, table := range record.Tables {
		for seed := range uint64(200) {
			random := rand.New(rand.NewPCG(seed, 1))
			says := make([]say, 2+random.IntN(5))
			for i := range says {
				says[i] = randomSay(table, random)
			}
			want := mergeAll(table, says)
			for range 5 {
				again := append([]say{}, says...)
				again = append(again, says[random.IntN(len(says))])
				random.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
				got := mergeAll(table, again)
				require.Equal(t, want, got, "table %s, seed %d: %v", table.Name, seed, again)
			}
		}
	}
}

func randomSay(t *record.Table, random *rand.Rand) say {
	x := say{fmt.Sprintf("202%d-01-01", random.IntN(3)), make([]record.Value, len(t.Columns))}
	for i := range x.values {
		switch random.IntN(3) {
		case 0:
			x.values[i] = record.TextOf(fmt.Sprintf("202%d-0%d-01", random.IntN(3), 1+random.IntN(3)))
		case 1:
			x.values[i] = record.NumberOf(int64(random.IntN(3)))
		}
	}
	return x
}

func TestNullNeverOverwrites(t *testing.T) {
	s := NewState(record.DirectorTable)
	s.Merge(record.DirectorTable, []record.Value{record.TextOf("A"), record.NumberOf(1), record.TextOf("Director"), {}}, "2020-01-01")
	did := s.Merge(record.DirectorTable, make([]record.Value, record.DirectorColumns), "2025-01-01")
	require.Equal(t, Effect{Content: false, Stored: true}, did)
	require.Equal(t, "Director", s.Values[record.DirectorDesignation].Text)
	require.Equal(t, `{"designation":"2020-01-01","disqualified":"2020-01-01","name":"2020-01-01"}`, s.Older(record.DirectorTable).Text)
}

func TestOlderSourceFillsWhatIsEmpty(t *testing.T) {
	s := NewState(record.CompanyTable)
	now, before := make([]record.Value, record.CompanyColumns), make([]record.Value, record.CompanyColumns)
	now[record.CompanyName], before[record.CompanyName] = record.TextOf("NEW"), record.TextOf("OLD")
	before[record.CompanyEmail] = record.TextOf("a@example.com")
	s.Merge(record.CompanyTable, now, "2025-01-01")
	did := s.Merge(record.CompanyTable, before, "2021-01-01")
	require.True(t, did.Content)
	require.Equal(t, "NEW", s.Values[record.CompanyName].Text)
	require.Equal(t, "a@example.com", s.Values[record.CompanyEmail].Text)
	require.Equal(t, "2025-01-01", s.AsOf)
	require.Equal(t, `{"email":"2021-01-01"}`, s.Older(record.CompanyTable).Text)
}

func TestAppointmentIsTakenAsAWhole(t *testing.T) {
	current := []record.Value{{}, record.TextOf("2020-01-01"), {}, {}}
	ceased := []record.Value{{}, record.TextOf("2021-01-01"), record.TextOf("2022-01-01"), record.TextOf("RESIGNED")}
	t.Run("a newer source ends it", func(t *testing.T) {
		s := NewState(record.AppointmentTable)
		s.Merge(record.AppointmentTable, current, "2021-06-01")
		require.True(t, s.Merge(record.AppointmentTable, ceased, "2023-01-01").Content)
		require.Equal(t, ceased, s.Values)
	})
	t.Run("of equal date the current one stands", func(t *testing.T) {
		s := NewState(record.AppointmentTable)
		s.Merge(record.AppointmentTable, ceased, "2023-01-01")
		require.True(t, s.Merge(record.AppointmentTable, current, "2023-01-01").Content)
		require.Equal(t, current, s.Values)
		require.False(t, s.Merge(record.AppointmentTable, ceased, "2023-01-01").Stored)
	})
	t.Run("of equal date one that began on a known day stands", func(t *testing.T) {
		s := NewState(record.AppointmentTable)
		s.Merge(record.AppointmentTable, make([]record.Value, record.AppointmentColumns), "2023-01-01")
		require.True(t, s.Merge(record.AppointmentTable, current, "2023-01-01").Content)
	})
}

func TestPartnershipIsTakenAsAWhole(t *testing.T) {
	there := []record.Value{{}, record.TextOf("A"), record.TextOf("ACTIVE"), record.TextOf("2020-01-01"), {}}
	left := []record.Value{{}, record.TextOf("A"), record.TextOf("ACTIVE"), record.TextOf("2021-01-01"), record.TextOf("2022-01-01")}
	s := NewState(record.PartnerTable)
	s.Merge(record.PartnerTable, left, "2023-01-01")
	require.True(t, s.Merge(record.PartnerTable, there, "2023-01-01").Content, "of equal date the one who is there stands")
	require.False(t, s.Merge(record.PartnerTable, left, "2023-01-01").Stored)
	later := []record.Value{{}, record.TextOf("A"), record.TextOf("ACTIVE"), record.TextOf("2020-02-01"), {}}
	earlier := []record.Value{{}, record.TextOf("A"), record.TextOf("RETIRED"), record.TextOf("2020-01-01"), {}}
	require.True(t, s.Merge(record.PartnerTable, later, "2023-01-01").Content)
	require.False(t, s.Merge(record.PartnerTable, earlier, "2023-01-01").Stored, "the later begin stands, whatever the status")
	require.True(t, s.Merge(record.PartnerTable, left, "2024-01-01").Content, "a newer source ends it")
	require.Equal(t, left, s.Values)
	sooner := []record.Value{{}, record.TextOf("A"), record.TextOf("RETIRED"), record.TextOf("2021-01-01"), record.TextOf("2021-06-01")}
	require.False(t, s.Merge(record.PartnerTable, sooner, "2024-01-01").Stored, "the later end stands, whatever the status")
}

// TestAMergeOfNewRecordsDropsWhatTheStoreRejects: the index has what the table has.
func TestAMergeOfNewRecordsDropsWhatTheStoreRejects(t *testing.T) {
	entry := func(name, status string) record.Entry {
		v := make([]record.Value, record.CompanyColumns)
		v[record.CompanyName], v[record.CompanyStatus] = record.TextOf(name), record.TextOf(status)
		return record.Entry{Record: record.New(record.CompanyTable, v, "U11111GA2020PTC000001")}
	}
	s := NewState(record.CompanyTable)
	require.False(t, s.MergeNew([]record.Entry{entry("Z", "")}, "2025-01-01"))
	require.True(t, s.MergeNew([]record.Entry{entry("Z", ""), entry("A", "ACTIVE")}, "2025-01-01"))
	require.Equal(t, "A", s.Values[record.CompanyName].Text)
}

// TestAStateThatIsResetHasNothingOfTheRecordBefore, whose sources were newer perhaps.
func TestAStateThatIsResetHasNothingOfTheRecordBefore(t *testing.T) {
	name := make([]record.Value, record.DirectorColumns)
	name[record.DirectorName] = record.TextOf("A")
	designation := make([]record.Value, record.DirectorColumns)
	designation[record.DirectorDesignation] = record.TextOf("Director")
	s := NewState(record.DirectorTable)
	s.Merge(record.DirectorTable, designation, "2024-01-01")
	s.Merge(record.DirectorTable, name, "2025-01-01")
	require.Equal(t, `{"designation":"2024-01-01"}`, s.Older(record.DirectorTable).Text)
	s.Reset()
	require.Equal(t, Effect{Content: true, Stored: true}, s.Merge(record.DirectorTable, name, "2023-01-01"))
	require.Equal(t, name, s.Values)
	require.Equal(t, "2023-01-01", s.AsOf)
	require.Equal(t, record.Value{}, s.Older(record.DirectorTable), "NULL, not an empty object")
	require.Equal(t, Effect{Stored: true}, s.Merge(record.DirectorTable, name, "2024-01-01"), "only its date")
	require.Equal(t, Effect{}, s.Merge(record.DirectorTable, name, "2024-01-01"))
	other := slices.Clone(name)
	other[record.DirectorName] = record.TextOf("B")
	require.Equal(t, Effect{Content: true, Stored: true}, s.Merge(record.DirectorTable, other, "2024-01-01"), "the greater of the same day")
}

// TestRecordsOfOneKeyAreInOneBatch also where a batch is full: a table that was empty takes a key of the next
// one for a new record.
func TestRecordsOfOneKeyAreInOneBatch(t *testing.T) {
	g := NewSorters(filepath.Join(t.TempDir(), "registry.db"))
	defer g.Close()
	add := func(n int) {
		p := record.Entry{Record: record.New(record.DirectorTable, make([]record.Value, record.DirectorColumns), fmt.Sprintf("%08d", n))}
		require.NoError(t, g.Add(&p))
	}
	for n := range record.BatchRecords {
		add(n)
	}
	add(record.BatchRecords - 1)
	add(record.BatchRecords)
	sorted, err := g.Read([]*record.Table{record.DirectorTable})
	require.NoError(t, err)
	groups := ReadGroups(record.DirectorTable, sorted[0].Rows)
	defer groups.Stop()
	var sizes []int
	for batch := range groups.Batches {
		sizes = append(sizes, len(batch))
	}
	require.NoError(t, groups.Err())
	require.Equal(t, []int{record.BatchRecords + 1, 1}, sizes)
}

// TestRecordsOfOneKeyWithoutEndAreAnError: all of them are in memory at once, and millions took gigabytes. Those of the next key count
// anew.
func TestRecordsOfOneKeyWithoutEndAreAnError(t *testing.T) {
	for rows, want := range map[int]string{maxOfKey: "", maxOfKey + 1: "more than 20000 rows of 00000001"} {
		g := NewSorters(filepath.Join(t.TempDir(), "registry.db"))
		defer g.Close()
		p := record.Entry{Record: record.New(record.DirectorTable, make([]record.Value, record.DirectorColumns), "00000001")}
		for range rows {
			require.NoError(t, g.Add(&p))
		}
		next := record.Entry{Record: record.New(record.DirectorTable, make([]record.Value, record.DirectorColumns), "00000002")}
		require.NoError(t, g.Add(&next))
		sorted, err := g.Read([]*record.Table{record.DirectorTable})
		require.NoError(t, err)
		groups := ReadGroups(record.DirectorTable, sorted[0].Rows)
		defer groups.Stop()
		read := 0
		for batch := range groups.Batches {
			read += len(batch)
		}
		if want == "" {
			require.NoError(t, groups.Err())
			require.Equal(t, rows+1, read)
			continue
		}
		require.ErrorContains(t, groups.Err(), want)
		require.Zero(t, read)
	}
}

// TestADamagedRecordEndsItsTable with an error: a temporary file may be damaged on the disk.
func TestADamagedRecordEndsItsTable(t *testing.T) {
	sorter := extsort.New(t.TempDir(), 1<<20)
	defer sorter.Close()
	require.NoError(t, sorter.Add([]byte("00000001"), []byte{0x80}))
	rows, err := sorter.Rows()
	require.NoError(t, err)
	groups := ReadGroups(record.DirectorTable, rows)
	defer groups.Stop()
	for range groups.Batches {
		require.Fail(t, "there is no record")
	}
	require.ErrorIs(t, groups.Err(), errCodec)
}

// TestRecordsThatCanNotBeReadAreNotMissing: they lie in a file that is lost meanwhile.
func TestRecordsThatCanNotBeReadAreNotMissing(t *testing.T) {
	sorter := extsort.New(t.TempDir(), 1<<20)
	p := record.Entry{Record: record.New(record.DirectorTable, make([]record.Value, record.DirectorColumns), "")}
	p.Raw = strings.Repeat("x", 1000)
	for n := range 3000 {
		require.NoError(t, sorter.Add(fmt.Appendf(nil, "%08d", n), appendEntry(nil, &p)))
	}
	rows, err := sorter.Rows()
	require.NoError(t, err)
	require.NoError(t, sorter.Close())
	groups := ReadGroups(record.DirectorTable, rows)
	defer groups.Stop()
	for range groups.Batches {
	}
	require.ErrorIs(t, groups.Err(), os.ErrClosed)
}

// TestAReaderThatIsStoppedEnds although nobody takes its batches.
func TestAReaderThatIsStoppedEnds(t *testing.T) {
	g := NewSorters(filepath.Join(t.TempDir(), "registry.db"))
	defer g.Close()
	for n := range 3*record.BatchRecords + 1 {
		p := record.Entry{Record: record.New(record.DirectorTable, make([]record.Value, record.DirectorColumns), fmt.Sprintf("%08d", n))}
		require.NoError(t, g.Add(&p))
	}
	sorted, err := g.Read([]*record.Table{record.DirectorTable})
	require.NoError(t, err)
	groups := ReadGroups(record.DirectorTable, sorted[0].Rows)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		groups.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		require.Fail(t, "it still waits for somebody to take a batch")
	}
	left := 0
	for range groups.Batches {
		left++
	}
	require.LessOrEqual(t, left, 2)
}
