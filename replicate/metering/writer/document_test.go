package writer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"
)

func loadDocument(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(Document())
	require.NoError(t, err)
	require.NoError(t, doc.Validate(context.Background()))
	return doc
}

// documented is the path of a route as the document writes it.
func documented(path string) string {
	return strings.NewReplacer(":id", "{id}", ":name", "{name}").Replace(path)
}

// ofDocument lists the routes that the document describes: those that take an operators' or an owner's token
// and speak JSON.
func ofDocument(w *Writer) (routes []route) {
	for _, r := range w.table() {
		if r.needs != anyone && r.needs != edges && r.path != "/metrics" {
			routes = append(routes, r)
		}
	}
	return routes
}

// TestTheDocumentHasEveryRoute compares methods, paths, roles and parameters, both ways.
func TestTheDocumentHasEveryRoute(t *testing.T) {
	w, _, _ := runForRoles(t)
	doc := loadDocument(t)
	var served, described []string
	for _, r := range ofDocument(w) {
		served = append(served, r.method+" "+documented(r.path))
		item := doc.Paths.Value(documented(r.path))
		require.NotNil(t, item, "%s is not described", r.path)
		operation := item.GetOperation(r.method)
		require.NotNil(t, operation, "%s %s is not described", r.method, r.path)
		require.Equal(t, string(r.needs), operation.Extensions["x-role"], "role of %s %s", r.method, r.path)
		if r.needs == owners {
			require.Equal(t, openapi3.NewSecurityRequirements().With(openapi3.SecurityRequirement{"ownersToken": {}}), operation.Security)
		}
		var query []string
		for _, p := range operation.Parameters {
			if p.Value.In == "query" {
				query = append(query, p.Value.Name)
			}
		}
		require.ElementsMatch(t, r.params, query, "parameters of %s %s", r.method, r.path)
		require.Equal(t, r.method != http.MethodGet, operation.Parameters.GetByInAndName("header", IdempotencyHeader) != nil)
	}
	for path, item := range doc.Paths.Map() {
		var chapter []string
		for method, operation := range item.Operations() {
			described = append(described, method+" "+path)
			if chapter == nil {
				chapter = operation.Tags
			}
			require.Equal(t, chapter, operation.Tags, "%s: its operations are in one chapter", path)
		}
	}
	require.ElementsMatch(t, served, described)
}

// TestTheDocumentHasEveryField compares the answers' types with the schemas of their names, and the codes.
func TestTheDocumentHasEveryField(t *testing.T) {
	doc := loadDocument(t)
	for _, value := range []any{
		Account{}, AccountChange{}, Key{}, NewKey{}, KeyChange{}, Plan{}, PlanChange{}, CreditEntry{}, CreditChange{}, Unresolved{}, Node{}, NewNode{},
		UsageRow{}, UsageSum{}, UsageSums{}, OwnerToken{}, NewOwnerToken{}, OwnAccount{}, AuditEntry{}, Request{}, Report{}, Replica{}, Invitation{}, OperatorToken{}, NewOperatorToken{}, Health{},
	} {
		kind := reflect.TypeOf(value)
		requireFields(t, doc, kind.Name(), kind)
	}
	requireFields(t, doc, "Problem", reflect.TypeFor[problem]())
	var codes []any
	for _, e := range apiErrors {
		codes = append(codes, e.code)
	}
	require.ElementsMatch(t, codes, doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum)
}

// TestProblemsOfTheDocumentAreThoseOfTheAPI compares each example of a problem with the table of errors, and
// looks for a call that has it.
func TestProblemsOfTheDocumentAreThoseOfTheAPI(t *testing.T) {
	var seen []string
	for path, item := range loadDocument(t).Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				media := response.Value.Content["application/problem+json"]
				if media == nil {
					continue
				}
				for code, example := range media.Examples {
					row, value := tableRow(errorOf(code)), example.Value.Value.(map[string]any)
					require.Equal(t, row.code, code, "%s %s", method, path)
					require.Equal(t, code, value["code"])
					require.EqualValues(t, row.status, value["status"], code)
					require.Equal(t, http.StatusText(row.status), value["title"], code)
					require.Contains(t, []string{fmt.Sprint(row.status), "default"}, status, "%s %s", method, path)
					seen = append(seen, code)
				}
			}
		}
	}
	for _, e := range apiErrors {
		ofEdges := e.err == ErrNodeFenced || e.err == ErrVersion
		require.Equal(t, !ofEdges, slices.Contains(seen, e.code), e.code)
	}
}

func requireFields(t *testing.T, doc *openapi3.T, name string, kind reflect.Type) {
	t.Helper()
	schema := doc.Components.Schemas[name]
	require.NotNil(t, schema, name)
	var fields []string
	for _, f := range reflect.VisibleFields(kind) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" {
			fields = append(fields, tag)
		}
	}
	var described []string
	for property := range schema.Value.Properties {
		described = append(described, property)
	}
	require.ElementsMatch(t, fields, described, name)
}

// exchange sends a request and checks it and its answer by the document.
func exchangeAsDocumented(t *testing.T, w *Writer, doc *openapi3.T, r route, token, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	target, _, _ := strings.Cut(path, "?")
	request := httptest.NewRequest(r.method, "http://writer"+path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	item := doc.Paths.Value(documented(r.path))
	values := map[string]string{}
	pattern, parts := strings.Split(r.path, "/"), strings.Split(target, "/")
	for i, part := range pattern {
		if strings.HasPrefix(part, ":") {
			values[part[1:]] = parts[i]
		}
	}
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: values, QueryParams: request.URL.Query(),
		Route:   &routers.Route{Spec: doc, Path: documented(r.path), PathItem: item, Method: r.method, Operation: item.GetOperation(r.method)},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	require.NoError(t, openapi3filter.ValidateRequest(t.Context(), input), "%s %s %s", r.method, path, body)
	answer := httptest.NewRecorder()
	sent := request.Clone(t.Context())
	sent.Body = io.NopCloser(strings.NewReader(body))
	w.Handler().ServeHTTP(answer, sent)
	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.Code, Header: answer.Header(), Body: io.NopCloser(bytes.NewReader(answer.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}), "%s %s answered %d %s", r.method, path, answer.Code, answer.Body)
	return answer
}

// TestAnswersAreAsDocumented makes every call once with something to answer, in an order in which each finds
// what it needs, and every one once in vain.
func TestAnswersAreAsDocumented(t *testing.T) {
	w, _, clock := runForRoles(t)
	doc := loadDocument(t)
	later := clock.now().Add(time.Hour).UTC().Format(time.RFC3339)
	_, err := w.config.Ledger.Exec(`INSERT INTO unresolved (id, account, key, node, at) VALUES ('01M', 1, 1, 'edge-1', 1)`)
	require.NoError(t, err)
	calls := []struct{ method, path, body string }{
		{"POST", "/v1/accounts", `{"name":"Acme","plan":"starter"}`}, {"GET", "/v1/accounts?search=a&limit=1", ""},
		{"GET", "/v1/accounts/1", ""}, {"PATCH", "/v1/accounts/1", `{"email":"a@example.com"}`},
		{"POST", "/v1/accounts/1/keys", `{"name":"a","expires":"` + later + `"}`}, {"GET", "/v1/accounts/1/keys", ""},
		{"PATCH", "/v1/keys/1", `{"name":"b"}`}, {"POST", "/v1/keys/1/rotate", `{"overlap_seconds":60}`}, {"GET", "/v1/keys/1", ""},
		{"POST", "/v1/accounts/1/credits", `{"amount":5,"note":"n"}`}, {"GET", "/v1/accounts/1/credits", ""},
		{"POST", "/v1/nodes", `{"name":"edge-1"}`}, {"GET", "/v1/nodes", ""}, {"POST", "/v1/nodes/edge-1/token", ""},
		{"PUT", "/v1/nodes/edge-1/read-tokens", `{"read_tokens":{"access":"x"}}`}, {"POST", "/v1/nodes/edge-1/retire", `{}`},
		{"GET", "/v1/reports", ""}, {"GET", "/v1/usage?account=1", ""}, {"GET", "/v1/usage?format=csv", ""},
		{"GET", "/v1/accounts/1/usage?from=2026-01-01&to=2026-01-31&by=day,key,endpoint&key=1&endpoint=llps&limit=1&cursor=1.2.3", ""}, {"GET", "/v1/accounts/1/usage?format=csv", ""}, {"GET", "/v1/audit?account=1", ""}, {"GET", "/v1/requests?account=1&key=1&search=x&limit=1", ""},
		{"GET", "/v1/unresolved", ""}, {"POST", "/v1/unresolved/01M/credit", ""},
		{"POST", "/v1/invitations", `{"email":"b@example.com","account":1}`}, {"GET", "/v1/plans", ""}, {"PUT", "/v1/plans/own", `{"per_minute":1}`}, {"PATCH", "/v1/plans/own", `{"phone":true}`},
		{"POST", "/v1/tokens", `{"name":"ci","role":"read","life_seconds":60}`}, {"GET", "/v1/tokens", ""}, {"DELETE", "/v1/tokens/ci", ""},
		{"POST", "/v1/accounts/1/tokens", `{"name":"ci","role":"all","life_seconds":60}`}, {"GET", "/v1/accounts/1/tokens", ""},
		{"GET", "/v1/account", ""}, {"POST", "/v1/account/keys", `{"name":"c"}`}, {"GET", "/v1/account/keys?limit=1", ""}, {"GET", "/v1/account/keys/2", ""},
		{"PATCH", "/v1/account/keys/2", `{"name":"d"}`}, {"POST", "/v1/account/keys/2/rotate", `{"overlap_seconds":60}`},
		{"DELETE", "/v1/account/keys/2", ""}, {"GET", "/v1/account/usage?by=day,key", ""}, {"GET", "/v1/account/usage?format=csv", ""}, {"GET", "/v1/account/requests?key=1", ""},
		{"DELETE", "/v1/owner-tokens/1", ""}, {"GET", "/v1/health", ""}, {"DELETE", "/v1/keys/1", ""},
	}
	owner := ""
	token := func(r route) string {
		if r.needs == owners {
			return owner
		}
		return firstOperator
	}
	routes := ofDocument(w)
	done := map[string]bool{}
	for _, c := range calls {
		i := slices.IndexFunc(routes, func(r route) bool { return r.method == c.method && matches(r.path, c.path) })
		require.GreaterOrEqual(t, i, 0, c.path)
		answer := exchangeAsDocumented(t, w, doc, routes[i], token(routes[i]), c.path, c.body)
		require.Equal(t, http.StatusOK, answer.Code, "%s %s: %s", c.method, c.path, answer.Body)
		done[routes[i].method+routes[i].path] = true
		if c.path == "/v1/accounts/1/tokens" && c.method == "POST" {
			var made NewOwnerToken
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &made))
			owner = made.Token
		}
	}
	require.Len(t, done, len(routes), "each route is called")
	again := exchangeAsDocumented(t, w, doc, routes[slices.IndexFunc(routes, func(r route) bool { return r.path == "/v1/keys/:id/rotate" })],
		firstOperator, "/v1/keys/1/rotate", `{"overlap_seconds":60}`)
	require.Equal(t, http.StatusConflict, again.Code)
}

// matches reports whether a path with a query is of a route.
func matches(pattern, path string) bool {
	path, _, _ = strings.Cut(path, "?")
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == h || strings.HasPrefix(w, ":") })
}
