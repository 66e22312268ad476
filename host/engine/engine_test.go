package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

func TestServeAnswersACompany(t *testing.T) {
	databases, key := newDatabases(t)
	meter := newLedger()
	e := newEngine(t, realConfig(databases, meter))
	var resp Response
	require.NoError(t, e.Serve(t.Context(), lookup("/v1/companies/"+madeUpCIN, key), &resp))
	require.Equal(t, 200, resp.Status, string(resp.Body))
	require.Equal(t, madeUpCIN, gjson.GetBytes(resp.Body, "data.cin").String())
	require.Equal(t, madeUpEmail, gjson.GetBytes(resp.Body, "data.contact.email").String())
	require.Len(t, gjson.GetBytes(resp.Body, "data.directors").Array(), 3)
	require.Equal(t, "r1", header(&resp, "X-Registry-Release"))
	require.Equal(t, "999", header(&resp, "X-Credits-Remaining"))
	require.Equal(t, 1, meter.standing())
}
