package handler

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/directors"
	"regedge/internal/testkit/searchtest"
)

func TestDirectorsAreWrittenInOrder(t *testing.T) {
	for text, want := range map[string]string{
		"": `[]`,
		"00000001\tMADE-UP \"A\"\tDirector\t2020-01-02": `[{"din":"00000001","name":"MADE-UP \"A\"","designation":"Director","appointment_date":"2020-01-02"}]`,
		"00000001\tA\t\t\n00000002\tB\t\t": `[{"din":"00000001","name":"A","designation":null,"appointment_date":null},` +
			`{"din":"00000002","name":"B","designation":null,"appointment_date":null}]`,
	} {
		w := writer{}
		w.directors(Value{Kind: Text, Text: text})
		require.False(t, w.damaged)
		require.Equal(t, want, string(w.buf))
	}
}

func TestDamagedDirectorsListIsAnErrorThatCostsNothing(t *testing.T) {
	w := writer{}
	w.directors(Value{Kind: Text, Text: "00000001\tA"})
	result := render(&w)
	require.Equal(t, InternalError, result.problem.code)
	require.Equal(t, charge.Failed, result.outcome)
}

func TestRecordsAreWrittenWithoutGrowing(t *testing.T) {
	row := make([]Value, companyDirectors+2)
	for i := range row {
		row[i] = Value{Kind: Text, Text: "Some text, as a column has it"}
	}
	row[companyDirectors+1] = Value{Kind: Integer, Int: lastSecond}
	var lines []string
	for i := range directors.Max {
		lines = append(lines, fmt.Sprintf("%08d\tA\t\t", i))
	}
	row[companyDirectors].Text = strings.Join(lines, "\n")
	w := newWriter(row, directors.Len(row[companyDirectors].Text)*directorNames)
	room := cap(w.buf)
	writeCompany(w, row)
	require.Equal(t, room, cap(w.buf))
	require.True(t, json.Valid(w.buf))
}

func TestMasks(t *testing.T) {
	for in, want := range map[string]string{
		"registry@example.com": "r****@e******.com",
		"a@b.co.in":            "a****@b******.in",
		"éa@localhost":         "é****@l******",
		"not an address":       "n****",
		"@example.com":         "****@e******.com",
		"a@.com":               "a****@.******",
		`"odd@local"@sub.in`:   `"****@s******.in`,
	} {
		require.Equal(t, want, maskEmail(in), in)
	}
	for in, want := range map[string]string{
		"+919876543210":   "+91******3210",
		"+91 98765 43210": "+91******3210",
		"080-2345 6789":   "******6789",
		"+1 415 555 0123": "******0123",
		"+358401234567":   "******4567",
		"12345":           "******",
		"":                "******",
	} {
		require.Equal(t, want, maskPhone(in), in)
	}
}

func TestMaskNeverKeepsTheMiddle(t *testing.T) {
	require.NotContains(t, maskEmail("firstname.lastname@company.example.com"), "lastname")
	require.NotContains(t, maskEmail("firstname.lastname@company.example.com"), "company")
	require.NotContains(t, maskPhone("+919876543210"), "98765")
}

// connection is a Store on one SQLite connection.
type connection struct{ *sqlite3.Conn }

func (c connection) Query(statement string, args []Value) (*Result, error) {
	s, _, err := c.Prepare(statement)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for i, v := range args {
		if v.Kind == Integer {
			err = s.BindInt64(i+1, v.Int)
		} else {
			err = s.BindText(i+1, v.Text)
		}
		if err != nil {
			return nil, err
		}
	}
	result := &Result{Columns: s.ColumnCount()}
	for s.Step() {
		for i := range result.Columns {
			switch s.ColumnType(i) {
			case sqlite3.INTEGER:
				result.Values = append(result.Values, Value{Kind: Integer, Int: s.ColumnInt64(i)})
			case sqlite3.NULL:
				result.Values = append(result.Values, Value{})
			default:
				result.Values = append(result.Values, text(s.ColumnText(i)))
			}
		}
	}
	return result, s.Err()
}

// TestACompanyIsFoundInAnyRow looks up a company in the row of its number, and one whose row
// is taken by another: the hashes of CINs of unknown kinds may collide.
func TestACompanyIsFoundInAnyRow(t *testing.T) {
	const (
		usual   = "U72900KA2015PTC990001"
		unknown = "U72900KA2015XYZ990002" // no known ownership: its number is a hash
		nowhere = "U72900KA2015PTC990003"
	)
	conn := searchtest.Open(t)
	require.NoError(t, conn.Exec(firstRelease))
	insert := searchtest.Prepare(t, conn, `INSERT INTO company (rowid, cin, company_name, status, district, directors, as_of, last_updated)
		VALUES (cin_number(?1), ?2, ?3, 'ACTIVE', 'Bengaluru', ?4, '', 0)`)
	lookUp := func(cin string) answer {
		c := call{Handler: &Handler{Registry: connection{conn}}, route: route{param: cin}}
		return c.company()
	}
	searchtest.Run(t, insert, usual, usual, "MADE-UP EXAMPLE", "00000001\tMADE-UP ASHA\tDirector\t2016-02-01")
	inItsRow := lookUp(usual)
	require.Contains(t, string(inItsRow.data), `"district":"Bengaluru"`)
	require.Contains(t, string(inItsRow.data), `"din":"00000001"`)

	t.Run("another company is in its row", func(t *testing.T) {
		require.NoError(t, conn.Exec("UPDATE company SET rowid = 1"))
		searchtest.Run(t, insert, usual, unknown, "ANOTHER", "")
		require.Equal(t, inItsRow, lookUp(usual))
		require.Contains(t, string(lookUp(unknown).data), `"company_name":"ANOTHER"`)
	})
	t.Run("its ownership is not known", func(t *testing.T) {
		require.NoError(t, conn.Exec("UPDATE company SET rowid = 2 WHERE rowid = cin_number('"+usual+"')"))
		require.NoError(t, conn.Exec("UPDATE company SET rowid = cin_number(cin), directors = nullif(directors, '')"))
		require.Equal(t, inItsRow, lookUp(usual))
		require.Contains(t, string(lookUp(unknown).data), `"company_name":"ANOTHER"`)
		require.Contains(t, string(lookUp(unknown).data), `"directors":[]`)
	})
	t.Run("it is not in the registry", func(t *testing.T) {
		require.Equal(t, CompanyNotFound, lookUp(nowhere).problem.code)
	})
}
