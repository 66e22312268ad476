package writer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/network"
)

// TestTheDocumentHasTheLimitsOfTheAPI: programs check their input by the document before they send it.
func TestTheDocumentHasTheLimitsOfTheAPI(t *testing.T) {
	doc := loadDocument(t)
	parameter := func(name string) *openapi3.Schema { return doc.Components.Parameters[name].Value.Schema.Value }
	limit := parameter("Limit")
	require.EqualValues(t, 1, *limit.Min)
	require.EqualValues(t, maxPage, *limit.Max)
	require.EqualValues(t, defaultPage, limit.Default)
	require.EqualValues(t, maxSearch, *parameter("Search").MaxLength)
	key := parameter("IdempotencyKey")
	require.True(t, validIdempotencyKey(strings.Repeat("k", int(key.MinLength))))
	require.False(t, validIdempotencyKey(strings.Repeat("k", int(key.MinLength)-1)))
	require.True(t, validIdempotencyKey(strings.Repeat("k", int(*key.MaxLength))))
	require.False(t, validIdempotencyKey(strings.Repeat("k", int(*key.MaxLength)+1)))
	require.Contains(t, doc.Components.Parameters["IdempotencyKey"].Value.Description, fmt.Sprintf("for %d days", answerKept/(24*time.Hour)))
	require.Equal(t, ByDay, parameter("By").Default)

	var endpoints []any
	for e := charge.Companies; e.String() != "unknown"; e++ {
		endpoints = append(endpoints, e.String())
	}
	require.ElementsMatch(t, endpoints, parameter("Endpoint").Enum)
	require.Contains(t, endpoints, doc.Components.Schemas["UsageRow"].Value.Properties["endpoint"].Value.Example)
	require.Contains(t, endpoints, doc.Components.Schemas["Request"].Value.Properties["endpoint"].Value.Example)
	for _, name := range []string{"KeyRequest", "KeyChange"} {
		require.EqualValues(t, network.MaxNetworks, *doc.Components.Schemas[name].Value.Properties["allowed_addresses"].Value.MaxItems)
	}
	for said, limit := range map[string]int64{
		"How long the secret before works, 0 to %s.": int64(MaxOverlap / time.Second), "An account has at most %s active ones.": maxKeys,
		"Active ones, of at most %s.": maxKeys, "and %s times a minute": requestsPerToken, "its own account alone, %s times a minute": requestsPerToken,
		"its account made %s changes": changesPerAccount, "or %s keys within a day": newKeysADay, "over at most %s days": MaxUsageDays,
		"without them the last %s.": defaultUsageDays, "The first day, UTC; %s days before": defaultUsageDays - 1,
	} {
		words := strings.Join(strings.Fields(string(Document())), " ")
		require.Contains(t, words, fmt.Sprintf(said, withCommas(limit)))
	}
	for code, e := range map[string]error{"too_many_keys": ErrTooManyKeys, "too_many_tokens": ErrTooManyTokens, "token_ended": ErrTokenEnded, "unauthorized": ErrUnauthorized,
		"key_ended": ErrKeyEnded, "account_suspended": ErrSuspended, "retired": ErrRetired, "fenced": ErrFenced, "unavailable": ErrUnavailable, "idempotency_key_reused": ErrKeyReused} {
		require.Contains(t, string(Document()), "detail: '"+strings.ReplaceAll(e.Error(), "'", "''")+"'\n                code: "+code+"\n")
	}
}

// withCommas writes a number with a comma before each three digits.
func withCommas(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", withCommas(n/1000), n%1000)
}

// ofExamples makes a value as the page of the API does, of the examples in the document.
func ofExamples(schema *openapi3.Schema, later string) any {
	switch {
	case schema.Example != nil:
		return schema.Example
	case schema.Type.Is("object"):
		made := map[string]any{}
		for name, property := range schema.Properties {
			made[name] = ofExamples(property.Value, later)
		}
		return made
	case schema.Type.Is("array"):
		return []any{ofExamples(schema.Items.Value, later)}
	case schema.Type.Is("integer"):
		return 1
	case schema.Type.Is("boolean"):
		return false
	case schema.Format == "date-time":
		return later
	}
	return "text"
}

// documentedCalls makes calls to a writer, and holds that each answer's status is described, and the code of a problem too.
type documentedCalls struct {
	t     *testing.T
	w     *Writer
	doc   *openapi3.T
	later string
	seen  []string
}

// call fills the path with an id and a name, by default that of the example, and the body with the examples. It returns the status.
func (c *documentedCalls) call(r route, token, id, name, key, query string) int {
	c.t.Helper()
	operation, body := c.doc.Paths.Value(documented(r.path)).GetOperation(r.method), []byte(nil)
	if operation.RequestBody != nil {
		var err error
		body, err = json.Marshal(ofExamples(operation.RequestBody.Value.Content["application/json"].Schema.Value, c.later))
		require.NoError(c.t, err)
	}
	if given := c.doc.Paths.Value(documented(r.path)).Parameters.GetByInAndName("path", "name"); name == "" && given != nil {
		name = given.Example.(string)
	}
	path := strings.NewReplacer(":id", id, ":name", name).Replace(r.path) + query
	request := httptest.NewRequest(r.method, "http://writer"+path, strings.NewReader(string(body)))
	request.Header.Set("Authorization", "Bearer "+token)
	if key != "" {
		request.Header.Set(IdempotencyHeader, key)
	}
	answer := httptest.NewRecorder()
	c.w.Handler().ServeHTTP(answer, request)
	response := operation.Responses.Status(answer.Code)
	require.NotNil(c.t, response, "%s %s answered %d %s", r.method, path, answer.Code, answer.Body)
	require.Contains(c.t, response.Value.Headers, RequestIDHeader)
	require.Equal(c.t, answer.Header().Get("Retry-After") != "", response.Value.Headers["Retry-After"] != nil, "%s %s %d", r.method, path, answer.Code)
	if answer.Code >= 400 {
		var problem struct{ Code string }
		require.NoError(c.t, json.Unmarshal(answer.Body.Bytes(), &problem))
		require.Contains(c.t, response.Value.Content["application/problem+json"].Examples, problem.Code, "%s %s answered %s", r.method, path, answer.Body)
		c.seen = append(c.seen, problem.Code)
	}
	return answer.Code
}

// TestEveryStatusOfTheAPIIsDocumented makes each call as the document shows it: with a thing that there is, with one that there is not,
// without a token, with a parameter that it does not have, and, where it changes something, under the key of another change.
// What the document shows must not be malformed.
func TestEveryStatusOfTheAPIIsDocumented(t *testing.T) {
	w, first, clock := runForRoles(t)
	doc := loadDocument(t)
	calls := &documentedCalls{t: t, w: w, doc: doc, later: clock.now().Add(time.Hour).UTC().Format(time.RFC3339)}
	account, err := first.AddAccount(t.Context(), "Acme", "", "scale")
	require.NoError(t, err)
	_, err = first.AddOwnerToken(t.Context(), account.ID, "the one that a call ends", RoleAll, time.Hour)
	require.NoError(t, err)
	owner, err := first.AddOwnerToken(t.Context(), account.ID, "ci", RoleAll, time.Hour)
	require.NoError(t, err)
	_, err = first.AddKey(t.Context(), account.ID, "backend")
	require.NoError(t, err)
	const used = "another-change-of-it"
	request := httptest.NewRequest("POST", "http://writer/v1/nodes", strings.NewReader(`{"name":"edge-2"}`))
	request.Header.Set("Authorization", "Bearer "+firstOperator)
	request.Header.Set(IdempotencyHeader, used)
	w.Handler().ServeHTTP(httptest.NewRecorder(), request)

	routes := ofDocument(w)
	ends := func(r route) bool { return r.method == http.MethodDelete || strings.HasSuffix(r.path, "/retire") }
	slices.SortStableFunc(routes, func(a, b route) int { // what ends a thing comes last
		switch {
		case ends(a) == ends(b):
			return 0
		case ends(a):
			return 1
		}
		return -1
	})
	token := func(r route) string {
		if r.needs == owners {
			return owner.Token
		}
		return firstOperator
	}
	for range 2 { // the second time what is made is there already, and what ends has ended
		for _, r := range routes {
			require.NotEqual(t, http.StatusBadRequest, calls.call(r, token(r), "1", "", "", ""), "%s %s", r.method, r.path)
		}
	}
	for _, r := range routes {
		calls.call(r, token(r), "999", "nobody", "", "")
		require.Equal(t, http.StatusUnauthorized, calls.call(r, "wrong", "1", "", "", ""))
		require.Equal(t, http.StatusBadRequest, calls.call(r, token(r), "1", "", "", "?colour=red"))
		if r.method != http.MethodGet && r.needs != owners {
			require.Equal(t, http.StatusUnprocessableEntity, calls.call(r, token(r), "1", "", used, ""), "%s %s", r.method, r.path)
		}
	}
	for _, path := range []string{"/v1/accounts/:id/keys", "/v1/account/keys"} {
		r := routes[slices.IndexFunc(routes, func(r route) bool { return r.method == http.MethodPost && r.path == path })]
		for range maxKeys {
			calls.call(r, token(r), "1", "", "", "")
		}
		require.Equal(t, http.StatusConflict, calls.call(r, token(r), "1", "", "", ""), path)
	}
	suspended := true
	_, err = first.ChangeAccount(t.Context(), account.ID, AccountChange{Suspended: &suspended})
	require.NoError(t, err)
	limited := 0
	for range requestsPerToken {
		for _, r := range routes {
			if r.needs == owners && calls.call(r, owner.Token, "1", "", "", "") == http.StatusTooManyRequests {
				limited++
			}
		}
	}
	require.Positive(t, limited)
	require.Subset(t, calls.seen, []string{"malformed", "unauthorized", "not_found", "idempotency_key_reused", "account_suspended", "too_many_requests", "key_ended", "taken", "retired"})
}

// TestTheDocumentSaysWhichFieldsAreAlwaysThere: those that an answer never leaves out.
func TestTheDocumentSaysWhichFieldsAreAlwaysThere(t *testing.T) {
	doc := loadDocument(t)
	for _, value := range []any{
		Account{}, Key{}, NewKey{}, Plan{}, CreditEntry{}, Unresolved{}, Node{}, NewNode{}, UsageRow{}, UsageSum{}, UsageSums{}, OwnerToken{},
		NewOwnerToken{}, OwnAccount{}, AuditEntry{}, Request{}, Report{}, Replica{}, Invitation{}, OperatorToken{}, NewOperatorToken{}, Health{}, problem{},
	} {
		kind := reflect.TypeOf(value)
		name := strings.ToUpper(kind.Name()[:1]) + kind.Name()[1:]
		var always []string
		for _, f := range reflect.VisibleFields(kind) {
			if tag, options, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" && !strings.HasPrefix(options, "omit") {
				always = append(always, tag)
			}
		}
		require.ElementsMatch(t, always, doc.Components.Schemas[name].Value.Required, name)
	}
}

// TestChangesThatEdgesLearnLaterAreDocumented: what may be pending is answered with 202 then.
func TestChangesThatEdgesLearnLaterAreDocumented(t *testing.T) {
	doc, found := loadDocument(t), 0
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			schema := operation.Responses.Status(http.StatusOK).Value.Content["application/json"].Schema
			if method == http.MethodGet || schema.Value.Properties["pending"] == nil {
				require.Nil(t, operation.Responses.Status(http.StatusAccepted), "%s %s", method, path)
				continue
			}
			found++
			later := operation.Responses.Status(http.StatusAccepted)
			require.NotNil(t, later, "%s %s", method, path)
			require.Equal(t, schema.Ref, later.Value.Content["application/json"].Schema.Ref, "%s %s", method, path)
		}
	}
	require.Greater(t, found, 8)
}
