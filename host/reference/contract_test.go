package reference_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/internal/conformance"
)

// everyAnswer are the headers that the vectors leave out, because the conformance kit
// checks them on each answer. They are given back before an answer is validated.
var everyAnswer = map[string]string{
	"Cache-Control":               "private, no-store",
	"X-Content-Type-Options":      "nosniff",
	"Access-Control-Allow-Origin": "*",
	"Access-Control-Expose-Headers": "X-Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, " +
		"X-Credits-Remaining, X-Registry-Release, Retry-After, Idempotent-Replayed, Search-Suggestion",
}

// serverFaults are the codes that any path may answer while a part of the service fails.
var serverFaults = []string{
	handler.InternalError, handler.RegistryUnavailable, handler.Overloaded, "metering_unavailable",
}

// loadDocument reads and checks the document, its examples too.
func loadDocument(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	require.NoError(t, err)
	require.NoError(t, doc.Validate(context.Background()))
	return doc
}

// answer is one exchange as the document should describe it.
type answer struct {
	name   string
	method string
	target string
	status int
	header http.Header
	body   []byte
}

func TestEveryVectorIsAsDocumented(t *testing.T) {
	doc := loadDocument(t)
	filled := 0
	for _, a := range vectorAnswers(t) {
		filled++
		t.Run(a.name, func(t *testing.T) { require.NoError(t, check(doc, a), "%s %s answered %s", a.method, a.target, a.body) })
	}
	require.Greater(t, filled, 100, "there are more vectors with a response")
}

func TestServerFaultsAreAsDocumented(t *testing.T) {
	doc := loadDocument(t)
	for _, code := range serverFaults {
		var retryAfter int64
		if code != handler.InternalError {
			retryAfter = 1
		}
		problem, _ := handler.FindProblem(code)
		response := handler.NewProblem("https://registry.example", problem, exampleID, retryAfter)
		header := http.Header{}
		for _, field := range response.Headers {
			header.Add(field.Name, field.Value)
		}
		for path := range doc.Paths.Map() {
			require.NoError(t, check(doc, answer{
				name: code, method: http.MethodGet, target: path,
				status: response.Status, header: header, body: response.Body,
			}))
		}
	}
}

func TestEveryDocumentedCodeHasAVector(t *testing.T) {
	var seen []string
	filled := false
	for _, a := range vectorAnswers(t) {
		filled = filled || len(a.body) > 0
		if a.status >= 400 {
			seen = append(seen, codeOf(t, a.body))
		}
	}
	require.True(t, filled, "no vector holds a response")
	for _, code := range documentedCodes(loadDocument(t)) {
		if !slices.Contains(beforeTheHandler, code) {
			require.Contains(t, seen, code, "no vector shows this code")
		}
	}
}

// beforeTheHandler are the codes that only a server of bytes can give; package server tests them.
var beforeTheHandler = []string{handler.InvalidRequest, handler.RequestTimeout, handler.URITooLong, handler.HeaderTooLarge}

// exampleID stands in for the request id that a vector leaves open.
const exampleID = "01KADN4XQ0V8R5T2M7C3B9HZ6E"

// vectorAnswers are the responses that the vectors hold.
func vectorAnswers(t *testing.T) []answer {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/vectors/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var answers []answer
	for _, path := range paths {
		file, err := os.Open(path)
		require.NoError(t, err)
		vectors, err := conformance.Parse(file)
		require.NoError(t, file.Close())
		require.NoError(t, err, path)
		for _, vector := range vectors.Vectors {
			for _, exchange := range vector.Exchanges {
				if len(exchange.Headers) == 0 {
					continue // only asked so far, not yet answered
				}
				answers = append(answers, answerOf(vector.Name, exchange))
			}
		}
	}
	return answers
}

func answerOf(name string, e *conformance.Exchange) answer {
	fill := strings.NewReplacer("{id}", exampleID, "{release}", "a-release").Replace
	method, target, _ := strings.Cut(e.Request[0], " ")
	a := answer{name: name, method: method, target: target, status: e.Status, header: http.Header{}}
	for _, line := range e.Headers {
		field, value, _ := strings.Cut(line, ": ")
		a.header.Add(field, fill(value))
	}
	if method != http.MethodOptions || e.Status != http.StatusNoContent {
		for field, value := range everyAnswer {
			a.header.Set(field, value)
		}
	}
	a.body = []byte(fill(string(e.Body)))
	return a
}

// check holds an answer against the document: status, headers, body, and that nothing
// comes which the document does not name. nil when all is as documented.
func check(doc *openapi3.T, a answer) error {
	response, err := documentedResponse(doc, a)
	if err != nil {
		return err
	}
	for field := range a.header {
		if field != "Content-Type" && !slices.Contains(canonical(response.Headers), field) {
			return fmt.Errorf("header %s is not documented", field)
		}
	}
	if a.method == http.MethodHead {
		return nil
	}
	operation := openapi3.NewOperation()
	operation.Responses = openapi3.NewResponses(openapi3.WithStatus(a.status, &openapi3.ResponseRef{Value: response}))
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: &http.Request{Method: a.method, URL: &url.URL{Path: "/"}},
			Route:   &routers.Route{Spec: doc, Operation: operation},
		},
		Status:  a.status,
		Header:  a.header,
		Body:    io.NopCloser(bytes.NewReader(a.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
	if err != nil {
		return err
	}
	return checkBody(response, a)
}

// documentedResponse is what the document says of an answer. A path that is none of the
// service's, or a method that a path has not, is described in the components.
func documentedResponse(doc *openapi3.T, a answer) (*openapi3.Response, error) {
	item := documentedPath(doc, a.target)
	switch {
	case item == nil && a.status == http.StatusNotFound:
		return doc.Components.Responses["RouteNotFound"].Value, nil
	case item == nil:
		return nil, fmt.Errorf("%s is no documented path", a.target)
	}
	operation := item.GetOperation(a.method)
	if operation == nil && a.status == http.StatusMethodNotAllowed {
		operation = item.Get
	}
	if operation == nil {
		return nil, fmt.Errorf("%s has no documented method %s", a.target, a.method)
	}
	ref := operation.Responses.Status(a.status)
	if ref == nil {
		return nil, fmt.Errorf("%s %s has no documented status %d", a.method, a.target, a.status)
	}
	return ref.Value, nil
}

// documentedPath finds the path item of a request target, nil for none.
func documentedPath(doc *openapi3.T, target string) *openapi3.PathItem {
	path, _, _ := strings.Cut(target, "?")
	if item := doc.Paths.Value(path); item != nil {
		return item
	}
	segments := strings.Split(path, "/")
	if len(segments) != 4 || segments[0] != "" || segments[1] != "v1" || segments[3] == "" || segments[2] == "search" {
		return nil
	}
	for _, template := range doc.Paths.InMatchingOrder() {
		if strings.HasPrefix(template, "/v1/"+segments[2]+"/{") {
			return doc.Paths.Value(template)
		}
	}
	return nil
}

// canonical lists the documented headers as net/http spells them.
func canonical(headers openapi3.Headers) []string {
	var names []string
	for name := range headers {
		names = append(names, http.CanonicalHeaderKey(name))
	}
	return names
}
