package handler

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/directors"
)

func TestBoardIsWrittenAsDirectors(t *testing.T) {
	for text, want := range map[string]string{
		"": `[]`,
		"00000001\tMADE-UP \"A\"\tDirector\t2020-01-02": `[{"din":"00000001","name":"MADE-UP \"A\"","designation":"Director","appointment_date":"2020-01-02"}]`,
		"00000001\tA\t\t\n00000002\tB\t\t": `[{"din":"00000001","name":"A","designation":null,"appointment_date":null},` +
			`{"din":"00000002","name":"B","designation":null,"appointment_date":null}]`,
	} {
		w := writer{}
		w.board(Value{Kind: Text, Text: text})
		require.False(t, w.damaged)
		require.Equal(t, want, string(w.buf))
	}
}

func TestDamagedBoardIsAnErrorThatCostsNothing(t *testing.T) {
	w := writer{}
	w.board(Value{Kind: Text, Text: "00000001\tA"})
	result := render(&w)
	require.Equal(t, InternalError, result.problem.code)
	require.Equal(t, charge.Failed, result.outcome)
}

func TestRecordsAreWrittenWithoutGrowing(t *testing.T) {
	row := make([]Value, companyBoard+2)
	for i := range row {
		row[i] = Value{Kind: Text, Text: "Some text, as a column has it"}
	}
	row[companyBoard+1] = Value{Kind: Integer, Int: lastSecond}
	var lines []string
	for i := range directors.Max {
		lines = append(lines, fmt.Sprintf("%08d\tA\t\t", i))
	}
	row[companyBoard].Text = strings.Join(lines, "\n")
	w := newWriter(row, directors.Len(row[companyBoard].Text)*directorNames)
	room := cap(w.buf)
	writeCompany(w, row)
	require.Equal(t, room, cap(w.buf))
	require.True(t, json.Valid(w.buf))
}
