package importer

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// say is what one source says of a record.
type say struct {
	asOf   string
	values []value
}

func mergeAll(t *table, says []say) *state {
	s := newState(t)
	for _, x := range says {
		s.merge(t, x.values, x.asOf)
		// As the database does: a state is written and read between merges.
		back := newState(t)
		copy(back.values, s.values)
		back.asOf = s.asOf
		back.setDates(t, s.older(t).s)
		s = back
	}
	return s
}

// TestMergeDoesNotDependOnOrder merges random sources, of few dates and few values so that
// they collide, in random orders and with repetitions.
func TestMergeDoesNotDependOnOrder(t *testing.T) {
	for _, table := range tables {
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
				require.Equal(t, want, got, "table %s, seed %d: %v", table.name, seed, again)
			}
		}
	}
}

func randomSay(t *table, random *rand.Rand) say {
	x := say{fmt.Sprintf("202%d-01-01", random.IntN(3)), make([]value, len(t.columns))}
	for i := range x.values {
		switch random.IntN(3) {
		case 0:
			x.values[i] = textValue(fmt.Sprintf("202%d-0%d-01", random.IntN(3), 1+random.IntN(3)))
		case 1:
			x.values[i] = numberValue(int64(random.IntN(3)))
		}
	}
	return x
}

func TestNullNeverOverwrites(t *testing.T) {
	s := newState(directorTable)
	s.merge(directorTable, []value{textValue("A"), numberValue(1), textValue("Director"), {}}, "2020-01-01")
	did := s.merge(directorTable, make([]value, directorColumns), "2025-01-01")
	require.Equal(t, effect{content: false, stored: true}, did)
	require.Equal(t, "Director", s.values[directorDesignation].s)
	require.Equal(t, `{"designation":"2020-01-01","disqualified":"2020-01-01","name":"2020-01-01"}`, s.older(directorTable).s)
}

func TestOlderSourceFillsWhatIsEmpty(t *testing.T) {
	s := newState(companyTable)
	now, before := make([]value, companyColumns), make([]value, companyColumns)
	now[companyName], before[companyName] = textValue("NEW"), textValue("OLD")
	before[companyEmail] = textValue("a@example.com")
	s.merge(companyTable, now, "2025-01-01")
	did := s.merge(companyTable, before, "2021-01-01")
	require.True(t, did.content)
	require.Equal(t, "NEW", s.values[companyName].s)
	require.Equal(t, "a@example.com", s.values[companyEmail].s)
	require.Equal(t, "2025-01-01", s.asOf)
	require.Equal(t, `{"email":"2021-01-01"}`, s.older(companyTable).s)
}

func TestAppointmentIsTakenAsAWhole(t *testing.T) {
	current := []value{{}, textValue("2020-01-01"), {}, {}}
	ceased := []value{{}, textValue("2021-01-01"), textValue("2022-01-01"), textValue("RESIGNED")}
	t.Run("a newer source ends it", func(t *testing.T) {
		s := newState(appointmentTable)
		s.merge(appointmentTable, current, "2021-06-01")
		require.True(t, s.merge(appointmentTable, ceased, "2023-01-01").content)
		require.Equal(t, ceased, s.values)
	})
	t.Run("of equal date the current one stands", func(t *testing.T) {
		s := newState(appointmentTable)
		s.merge(appointmentTable, ceased, "2023-01-01")
		require.True(t, s.merge(appointmentTable, current, "2023-01-01").content)
		require.Equal(t, current, s.values)
		require.False(t, s.merge(appointmentTable, ceased, "2023-01-01").stored)
	})
}

func TestPartnershipIsTakenAsAWhole(t *testing.T) {
	there := []value{{}, textValue("A"), textValue(active), textValue("2020-01-01"), {}}
	left := []value{{}, textValue("A"), textValue(active), textValue("2021-01-01"), textValue("2022-01-01")}
	s := newState(partnerTable)
	s.merge(partnerTable, left, "2023-01-01")
	require.True(t, s.merge(partnerTable, there, "2023-01-01").content, "of equal date the one who is there stands")
	require.False(t, s.merge(partnerTable, left, "2023-01-01").stored)
	require.True(t, s.merge(partnerTable, left, "2024-01-01").content, "a newer source ends it")
	require.Equal(t, left, s.values)
}
