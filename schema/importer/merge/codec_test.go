package merge

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/schema/importer/record"
)

// madeUpRecord is a record of a table with every kind of value in its columns.
func madeUpRecord(t *record.Table, seed int) record.Entry {
	p := record.Entry{Record: record.Record{Table: t, Values: make([]record.Value, len(t.Columns))}, File: seed, Line: seed * 1000, Raw: fmt.Sprint("raw ", seed)}
	p.Key[0] = fmt.Sprintf("KEY%d", seed)
	if len(t.Key) > 1 {
		p.Key[1] = fmt.Sprintf("~SECOND %d", seed)
	}
	for i := range p.Values {
		switch (i + seed) % 4 {
		case 0:
			p.Values[i] = record.NumberOf(int64(i*seed) - 3)
		case 1:
			p.Values[i] = record.TextOf(fmt.Sprintf("भारत %d", i))
		case 2:
			p.Values[i] = record.NumberOf(1 << 53)
		}
	}
	return p
}

func TestRecordsComeBackAsTheyWerePutAside(t *testing.T) {
	for _, table := range record.Tables {
		for seed := range 8 {
			want := madeUpRecord(table, seed)
			got, err := readEntry(table, appendKey(nil, &want.Record), appendEntry(nil, &want))
			require.NoError(t, err)
			if want.Complete() {
				want.Raw = ""
			}
			require.Equal(t, want, got)
		}
	}
}

func TestARecordThatIsCutOffIsDamaged(t *testing.T) {
	whole := madeUpRecord(record.CompanyTable, 1)
	whole.Raw = ""
	content := appendEntry(nil, &whole)
	for n := range content {
		_, err := readEntry(whole.Table, appendKey(nil, &whole.Record), content[:n])
		require.ErrorIs(t, err, errCodec, n)
	}
}

func FuzzReadEntry(f *testing.F) {
	for _, table := range record.Tables {
		p := madeUpRecord(table, 3)
		f.Add(appendKey(nil, &p.Record), appendEntry(nil, &p))
	}
	f.Fuzz(func(t *testing.T, key, content []byte) {
		for _, table := range record.Tables {
			p, err := readEntry(table, key, content)
			if err == nil {
				require.Len(t, p.Values, len(table.Columns))
			}
		}
	})
}
