package directors_test

import (
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler/directors"
)

// TestTheOrderOfAList checks the order of docs/contract.md, "Company": by date, oldest first, then
// directors without a date, and by DIN for equal dates. The rows are inserted in another order.
func TestTheOrderOfAList(t *testing.T) {
	var dins []string
	for _, line := range listOf(t, `
		INSERT INTO director SELECT printf('%08d', 10 - value), 'MADE-UP', '', CASE value WHEN 3 THEN '2001-01-01' END
			FROM json_each('[9,8,7,6,5,4,3,2,1]');
		INSERT INTO appointment SELECT 'C', din, '', CASE WHEN din IN ('00000005', '00000002', '00000009') THEN '2020-05-05'
			WHEN din IN ('00000001', '00000006') THEN '2019-05-05' END, CASE din WHEN '00000004' THEN 'RESIGNED' END FROM director ORDER BY din DESC;`) {
		din, _, _ := strings.Cut(line, "\t")
		dins = append(dins, strings.TrimLeft(din, "0"))
	}
	require.Equal(t, "7 1 6 2 5 9 3 8", strings.Join(dins, " "))
}

// TestAnAppointmentHasItsOwnDesignationAndDate; the director's are for one that has none.
func TestAnAppointmentHasItsOwnDesignationAndDate(t *testing.T) {
	require.Equal(t, []string{"2\tRAVI\tDirector\t2003-03-03", "1\tASHA\tWhole-time Director\t2020-05-05"}, listOf(t, `
		INSERT INTO director VALUES (1, 'ASHA', 'Director', '2001-01-01'), (2, 'RAVI', 'Director', '2003-03-03');
		INSERT INTO appointment (cin, din, designation, appointment_date) VALUES ('C', 1, 'Whole-time Director', '2020-05-05'), ('C', 2, NULL, NULL);`))
}

func TestDirectorsThatTheRegistryLacksTakeNoPlace(t *testing.T) {
	require.Len(t, listOf(t, `
		INSERT INTO appointment (cin, din) SELECT 'C', value FROM generate_series(1, 60);
		INSERT INTO director (din, name) SELECT din, 'MADE-UP' FROM appointment WHERE din > 5;`), directors.Max)
}

// listOf returns the lines of the list of company C, beside the rows that are inserted.
func listOf(t *testing.T, inserted string) []string {
	db, err := sqlite3.Open(":memory:")
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.Exec(`
		CREATE TABLE director (din, name, designation, appointment_date);
		CREATE TABLE appointment (cin, din, designation, appointment_date, cessation);`+inserted))
	statement, _, err := db.Prepare("SELECT " + directors.Of("'C'"))
	require.NoError(t, err)
	defer statement.Close()
	require.True(t, statement.Step())
	return strings.Split(statement.ColumnText(0), "\n")
}
