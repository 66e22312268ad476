package engine

import (
	"context"
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
