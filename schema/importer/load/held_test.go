package load

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatLookupsLackIsSaid(t *testing.T) {
	for want, h := range map[string]Held{
		"":                     {Companies: 1, LLPs: 1, Directors: 1, Appointments: 1, Partners: 1},
		"has no directors: ":   {Companies: 1, LLPs: 1, Partners: 1},
		"has no appointments:": {Companies: 1, LLPs: 1, Directors: 1, Partners: 1},
		"has no LLPs: ":        {Companies: 1, Directors: 1, Appointments: 1},
		"has no partners: ":    {Companies: 1, LLPs: 1, Directors: 1, Appointments: 1},
		"has no directors: GET /v1/directors/{din} answers 404, and companies have no directors;\nit has no LLPs: ": {Companies: 1},
	} {
		if want == "" {
			require.Empty(t, h.Lacking())
			continue
		}
		require.Contains(t, h.Lacking(), want)
	}
	require.Empty(t, Held{}.Lacking(), "of an empty registry")
}
