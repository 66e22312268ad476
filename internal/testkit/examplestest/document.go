package examplestest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// shown matches the words of an example's summary that say what is asked for: a path, or the value
// of the search's parameter.
var shown = regexp.MustCompile("`([^`]+)`")

// checkDocument compares the examples of the OpenAPI document: examples of a 200 with the answers to
// the calls that their summaries name, examples of problems with the answers to the pages' calls.
func (s *Site) checkDocument() {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(s.page("/openapi.yaml")))
	require.NoError(s.t, err)
	compared := 0
	for path, item := range doc.Paths.Map() {
		parameters := append(slices.Clone(item.Parameters), item.Get.Parameters...)
		examples := item.Get.Responses.Status(http.StatusOK).Value.Content.Get("application/json").Examples
		require.NotEmpty(s.t, examples, path)
		answers := map[string]string{}
		for name, example := range examples {
			compared++
			call := shown.FindStringSubmatch(example.Value.Summary)
			require.NotNil(s.t, call, "the summary of %s %s names no call", path, name)
			target := call[1]
			if !strings.HasPrefix(target, "/") {
				target = path + "?" + parameters[0].Value.Name + "=" + escaped(target)
			}
			status, got := s.call(target)
			require.Equal(s.t, http.StatusOK, status, target)
			s.requireSame(path+" "+name, jsonOf(s, example.Value.Value), got)
			answers[target] = got
		}
		_, got := s.call(defaultCall(path, parameters))
		require.Contains(s.t, bodies(s, answers), fmt.Sprint(s.normal(got)), "the parameters of %s call for one of its examples", path)
	}
	require.Greater(s.t, compared, 7, "examples of 200")
	s.checkProblemExamples(doc)
}

func (s *Site) checkProblemExamples(doc *openapi3.T) {
	seen := map[string]bool{}
	for _, response := range doc.Components.Responses {
		media := response.Value.Content.Get("application/problem+json")
		if media == nil {
			continue
		}
		for code, example := range media.Examples {
			if slices.Contains(ofProblem, code) {
				seen[code] = true
				page := plain(s.page("/problems/" + code))
				s.requireSame(code, page[strings.Index(page, "{"):strings.LastIndex(page, "}")+1], jsonOf(s, example.Value.Value))
			}
		}
	}
	require.ElementsMatch(s.t, ofProblem, slices.Collect(maps.Keys(seen)))
}

// defaultCall is the call that the examples of an operation's parameters make.
func defaultCall(path string, parameters openapi3.Parameters) string {
	query := ""
	for _, p := range parameters {
		if p.Value.In == "header" {
			continue
		}
		value := fmt.Sprint(p.Value.Example)
		if p.Value.In == "path" {
			path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", value)
			continue
		}
		query += map[bool]string{true: "?", false: "&"}[query == ""] + p.Value.Name + "=" + escaped(value)
	}
	return path + query
}

func jsonOf(s *Site, value any) string {
	text, err := json.Marshal(value)
	require.NoError(s.t, err)
	return string(text)
}

func bodies(s *Site, answers map[string]string) (list []string) {
	for _, answer := range answers {
		list = append(list, fmt.Sprint(s.normal(answer)))
	}
	return list
}
