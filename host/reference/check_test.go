package reference_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheCheckSeesWhatIsNotDocumented spoils answers that are as documented, one thing at
// a time: each must be noticed.
func TestTheCheckSeesWhatIsNotDocumented(t *testing.T) {
	doc := loadDocument(t)
	require.NoError(t, check(doc, goodAnswer()))
	require.NoError(t, check(doc, goodProblem()))
	for name, spoil := range map[string]func(*answer){
		"a field that is missing":           func(a *answer) { a.replace(`"sandbox":true`, `"sand":true`) },
		"a field too many":                  func(a *answer) { a.replace(`"sandbox":true`, `"sandbox":true,"new":1`) },
		"a nested field too many":           func(a *answer) { a.replace(`"type":"llp"`, `"type":"llp","new":1`) },
		"null where it is always set":       func(a *answer) { a.replace(`"label":"AN LLP"`, `"label":null`) },
		"a value that is not enumerated":    func(a *answer) { a.replace(`"type":"llp"`, `"type":"person"`) },
		"a number as text":                  func(a *answer) { a.replace(`"credits_remaining":null`, `"credits_remaining":"7"`) },
		"a negative balance":                func(a *answer) { a.replace(`"credits_remaining":null`, `"credits_remaining":-1`) },
		"a match that is no identifier":     func(a *answer) { a.replace(`AAZ-9001`, `AAZ9001`) },
		"a header that is missing":          func(a *answer) { a.header.Del("X-Request-Id") },
		"a header too many":                 func(a *answer) { a.header.Set("X-New", "1") },
		"a header that is no number":        func(a *answer) { a.header.Set("RateLimit-Remaining", "many") },
		"a header that is another constant": func(a *answer) { a.header.Set("Cache-Control", "public") },
		"another content type":              func(a *answer) { a.header.Set("Content-Type", "text/html") },
		"a status that is not documented":   func(a *answer) { a.status = 206 },
		"a path that is not documented":     func(a *answer) { a.target = "/v1/people/1" },
		"a method that is not documented":   func(a *answer) { a.method = http.MethodPut },
	} {
		a := goodAnswer()
		spoil(&a)
		require.Error(t, check(doc, a), name)
	}
	for name, spoil := range map[string]func(*answer){
		"a code of another response":  func(a *answer) { a.replace("company_not_found", "llp_not_found") },
		"a code that nobody knows":    func(a *answer) { a.replace("company_not_found", "teapot") },
		"a problem without its id":    func(a *answer) { a.replace("request_id", "id") },
		"a code under another status": func(a *answer) { a.status = 400 },
	} {
		a := goodProblem()
		spoil(&a)
		require.Error(t, check(doc, a), name)
	}
}

func (a *answer) replace(old, new string) {
	a.body = []byte(strings.ReplaceAll(string(a.body), old, new))
}

func goodAnswer() answer {
	return withHeaders(answer{
		method: http.MethodGet, target: "/v1/search/companies?name=an", status: 200,
		body: []byte(`{"data":[{"value":"AAZ-9001","label":"AN LLP","type":"llp"}],` +
			`"meta":{"request_id":"` + exampleID + `","credits_remaining":null,"sandbox":true}}`),
	}, "application/json")
}

func goodProblem() answer {
	return withHeaders(answer{
		method: http.MethodGet, target: "/v1/companies/U99999MH1999PTC999999", status: 404,
		body: []byte(`{"type":"https://registry.example/problems/company_not_found","title":"Company not found",` +
			`"status":404,"detail":"None.","code":"company_not_found","request_id":"` + exampleID + `"}`),
	}, "application/problem+json")
}

func withHeaders(a answer, contentType string) answer {
	a.header = http.Header{}
	for field, value := range everyAnswer {
		a.header.Set(field, value)
	}
	a.header.Set("Content-Type", contentType)
	a.header.Set("X-Request-Id", exampleID)
	a.header.Set("RateLimit-Limit", "30")
	a.header.Set("RateLimit-Remaining", "29")
	a.header.Set("RateLimit-Reset", "7")
	return a
}
