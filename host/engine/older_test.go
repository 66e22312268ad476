package engine

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/handler/names"
	"regedge/schema"
)

// TestSearchOfAnOlderRegistry has the component search where its first statement can't be
// prepared, as edges do that are upgraded before the registry is. The failure is no cause to
// tell an operator of.
func TestSearchOfAnOlderRegistry(t *testing.T) {
	const form = "made up example private limited"
	older := newDatabase(t, schema.Registry, madeUpRegistry+`
		ALTER TABLE search_name DROP COLUMN label;
		INSERT INTO search_name VALUES (16, '`+madeUpCIN+`', '`+form+`');
		INSERT INTO search_index (rowid, terms) VALUES (16, '`+string(names.AppendTerms(nil, form))+`');`)
	e := newEngine(t, realConfig(map[string]Database{"registry": older}, forgetful{}))
	var answer Response
	require.NoError(t, e.Serve(context.Background(), lookup("/v1/search/companies?name=example", ident.SandboxKey), &answer))
	require.Equal(t, 200, answer.Status, string(answer.Body))
	require.Contains(t, string(answer.Body), `"label":"MADE-UP EXAMPLE PRIVATE LIMITED"`)
	require.NoError(t, answer.Cause)
}

// TestACompanyIsFoundInAnyRow has the component look a company up where a lookup expects it, and
// where earlier programs or another SQLite may have put it.
func TestACompanyIsFoundInAnyRow(t *testing.T) {
	const path = "/v1/companies/" + madeUpCIN
	usual := newDatabase(t, schema.Registry, madeUpRegistry+madeUpBoards)
	want := answerOf(t, usual, path)
	require.Contains(t, want, `"din":"00000003"`)
	const other = `INSERT INTO company (rowid, cin, company_name, status, as_of, last_updated)
		VALUES (cin_number('` + madeUpCIN + `'), 'U72900KA2015XYZ990002', 'ANOTHER', '', '', 0);`
	for name, change := range map[string]string{
		"another company is in its row":     "UPDATE company SET rowid = 1;" + other,
		"its board is not kept":             "UPDATE company SET directors = NULL;",
		"version 9 made its row":            boardByCompany,
		"version 8 made its row":            boardByCIN + "UPDATE company SET rowid = 1;",
		"schema version 9":                  boardByCompany + noDirectors,
		"schema version 9, and not a board": noDirectors,
		"schema version 8":                  boardByCIN + "DROP TABLE company_board;" + noDirectors,
		"schema version 8, and not a board": "DROP TABLE company_board;" + noDirectors,
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, want, answerOf(t, newDatabase(t, schema.Registry, madeUpRegistry+madeUpBoards+change), path))
		})
	}
	t.Run("its ownership is not known", func(t *testing.T) {
		changed := newDatabase(t, schema.Registry, madeUpRegistry+strings.Replace(other, madeUpCIN, "U72900KA2015XYZ990002", 1))
		require.Contains(t, answerOf(t, changed, "/v1/companies/U72900KA2015XYZ990002"), `"company_name":"ANOTHER"`)
	})
	t.Run("it is not there", func(t *testing.T) {
		require.Contains(t, answerOf(t, usual, "/v1/companies/U72900KA2015PTC990002"), "company_not_found")
	})
}

// What puts the boards where they were in earlier schema versions. No appointment is left from
// which they could be gathered.
const (
	boardByCompany = `INSERT INTO company_board SELECT cin, directors FROM company; ` + boardsAlone
	boardByCIN     = `INSERT INTO board SELECT cin, directors FROM company; ` + boardsAlone
	boardsAlone    = `UPDATE company SET directors = NULL; DELETE FROM appointment;`
	noDirectors    = `ALTER TABLE company DROP COLUMN directors; ALTER TABLE company DROP COLUMN district;`
)

// answerOf is the body of the component's answer, but for what differs from one request to the
// next.
func answerOf(t *testing.T, registry Database, path string) string {
	t.Helper()
	e := newEngine(t, realConfig(map[string]Database{"registry": registry}, forgetful{}))
	var answer Response
	require.NoError(t, e.Serve(context.Background(), lookup(path, ident.SandboxKey), &answer))
	require.NoError(t, answer.Cause)
	return requestIDs.ReplaceAllString(string(answer.Body), "")
}

var requestIDs = regexp.MustCompile(`"request_id":"[^"]*"`)
