package handler

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"regedge/handler/charge"
)

func TestRoutes(t *testing.T) {
	for path, want := range map[string]charge.Endpoint{
		"/v1/companies/X":      charge.Companies,
		"/v1/directors/1":      charge.Directors,
		"/v1/llps/AAA-1234":    charge.LLPs,
		"/v1/search/companies": charge.SearchCompanies,
		"/v1/search/llps":      charge.SearchLLPs,
	} {
		got, ok := matchRoute(path)
		require.True(t, ok, path)
		require.Equal(t, want, got.endpoint, path)
	}
	for _, path := range []string{
		"", "/", "/v1", "/v1/", "/v1/companies", "/v1/companies/", "/v1/companies/X/", "/v1/companies/X/directors",
		"/v2/companies/X", "/v1/search", "/v1/search/", "/v1/search/companies/", "/v1/search/directors", "//v1/companies/X",
		"/V1/companies/X",
	} {
		_, ok := matchRoute(path)
		require.False(t, ok, path)
	}
}

// TestAPathWithoutAnEndpointIsAnsweredWithTheOneThatIsMeant: the fixed pattern of an endpoint, nothing of the request.
func TestAPathWithoutAnEndpointIsAnsweredWithTheOneThatIsMeant(t *testing.T) {
	b := newBench()
	for target, meant := range map[string]string{
		"/v1/companies/X/":             "/v1/companies/{cin}",
		"/v1/companies/X/directors":    "/v1/companies/{cin}",
		"/v1/company/X":                "/v1/companies/{cin}",
		"/V1/Companies/X":              "/v1/companies/{cin}",
		"/v2/companies/X":              "/v1/companies/{cin}",
		"/api/v1/companies/X?a=name":   "/v1/companies/{cin}",
		"/v1/companies":                "/v1/companies/{cin}",
		"/v1/companies/":               "/v1/companies/{cin}",
		"/v1/companies?name=tata":      "/v1/search/companies?name={name}",
		"/v1/companies//?name=tata":    "/v1/search/companies?name={name}",
		"/v1/search":                   "/v1/search/companies?name={name}",
		"/v1/search/company?name=tata": "/v1/search/companies?name={name}",
		"/v1/search/companies/":        "/v1/search/companies?name={name}",
		"/v1/director/1":               "/v1/directors/{din}",
		"/v1/search/directors?name=a":  "/v1/directors/{din}",
		"//v1/llp/AAA-1234":            "/v1/llps/{llpin}",
		"/v1/search/llp":               "/v1/search/llps?llpin={llpin}",
		"/v1":                          "",
		"/v1/":                         "",
		"/v1/<b>":                      "",
		"/v1/accounts/companiesX":      "",
	} {
		r := b.Serve(request("GET", target))
		require.Equal(t, RouteNotFound, problemOf(t, r), target)
		detail := gjson.GetBytes(r.Body, "detail").Str
		if meant == "" {
			require.Equal(t, "There is nothing at this path. See the reference for the five endpoints under /v1.", detail, target)
		} else {
			require.Equal(t, "There is nothing at this path. Perhaps "+meant+" is meant. See the reference for the five endpoints under /v1.", detail, target)
		}
	}
}

func TestUnescape(t *testing.T) {
	for _, c := range []struct {
		in    string
		query bool
		want  string
		ok    bool
	}{
		{"a%20b", false, "a b", true},
		{"a+b", false, "a+b", true},
		{"a+b%20c", false, "a+b c", true},
		{"a+b%2B", true, "a b+", true},
		{"%e0%A4%95", false, "क", true},
		{"%", false, "", false},
		{"%4", false, "", false},
		{"%zz", false, "", false},
		{"%4z", false, "", false},
		{"%z4", false, "", false},
		{"%41%", false, "", false},
	} {
		got, ok := unescape(c.in, c.query)
		require.Equal(t, c.ok, ok, c.in)
		require.Equal(t, c.want, got, c.in)
	}
}

// TestEveryOccurrenceOfAParameterCounts: one that cannot be decoded is not hidden by the
// next. Its name may be encoded.
func TestEveryOccurrenceOfAParameterCounts(t *testing.T) {
	for _, c := range []struct {
		query, value string
		times        int
		ok           bool
	}{
		{"name=a", "a", 1, true}, {"n%61me=a+b", "a b", 1, true}, {"limit=1", "", 0, true}, {"%zz=x&name=a", "a", 1, true},
		{"name=%zz&name=a", "a", 2, false}, {"name=a&name=b", "b", 2, true}, {"name", "", 1, true},
	} {
		value, times, ok := (&call{query: c.query}).queryParam("name")
		require.Equal(t, c.times, times, c.query)
		require.Equal(t, c.ok, ok, c.query)
		require.Equal(t, c.value, value, c.query)
	}
}
