package load

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/schema/importer/merge"
	"regedge/schema/importer/record"
)

// TestRowsAreComparedWithTheFirstOfTheirOwnFile: several files may have the same company.
func TestRowsAreComparedWithTheFirstOfTheirOwnFile(t *testing.T) {
	row := func(file, line int, status string) record.Entry {
		values := make([]record.Value, record.CompanyColumns)
		values[record.CompanyStatus] = record.TextOf(status)
		return record.Entry{Record: record.New(record.CompanyTable, values, "U55101GA2006PTC900001"), File: file, Line: line}
	}
	w := NewWritten(2)
	w.noteContradictions([]record.Entry{
		row(0, 2, "ACTIVE"), row(0, 9, "STRUCK_OFF"), row(1, 7, "STRUCK_OFF"), row(1, 5, "ACTIVE"), row(1, 8, "STRUCK_OFF"),
	}, merge.NewState(record.CompanyTable), "2025-05-05")
	const what = "status of U55101GA2006PTC900001"
	require.Equal(t, []Contradiction{{1, 9, what}, {1, 7, what}}, w.Contradictions)
	require.Equal(t, []Contradiction{{}, {1, 7, what}}, w.WithOthers, "with the first of all")
}
