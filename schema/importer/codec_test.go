package importer

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// madeUpRecord is a record of a table with every kind of value in its columns.
func madeUpRecord(t *table, seed int) pending {
	p := pending{record: record{table: t, values: make([]value, len(t.columns))}, line: seed * 1000, raw: fmt.Sprint("raw ", seed)}
	p.key[0] = fmt.Sprintf("KEY%d", seed)
	if len(t.key) > 1 {
		p.key[1] = fmt.Sprintf("~SECOND %d", seed)
	}
	for i := range p.values {
		switch (i + seed) % 4 {
		case 0:
			p.values[i] = numberValue(int64(i*seed) - 3)
		case 1:
			p.values[i] = textValue(fmt.Sprintf("भारत %d", i))
		case 2:
			p.values[i] = numberValue(maxCapital)
		}
	}
	return p
}

func TestRecordsComeBackAsTheyWerePutAside(t *testing.T) {
	for _, table := range tables {
		for seed := range 8 {
			want := madeUpRecord(table, seed)
			got, file, err := readPending(table, want.appendKey(nil), appendPending(nil, seed, &want))
			require.NoError(t, err)
			require.Equal(t, seed, file)
			if want.complete() {
				want.raw = ""
			}
			require.Equal(t, want, got)
		}
	}
}

func FuzzReadPending(f *testing.F) {
	for _, table := range tables {
		p := madeUpRecord(table, 3)
		f.Add(p.appendKey(nil), appendPending(nil, 3, &p))
	}
	f.Fuzz(func(t *testing.T, key, content []byte) {
		for _, table := range tables {
			p, _, err := readPending(table, key, content)
			if err == nil {
				require.Len(t, p.values, len(table.columns))
			}
		}
	})
}
