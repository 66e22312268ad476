// Package examplestest makes every call that the pages of a running service, its OpenAPI document
// and the repository's documents show, and compares the answers with those shown.
package examplestest

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/ident"
)

// Site is a running service. It must believe the header X-Forwarded-For from this machine, or the
// calls exceed the sandbox's rate.
type Site struct {
	t     testing.TB
	base  string
	calls int
}

// Check makes the calls that the service at base shows, and those in the documents of the
// repository, whose root is the folder root.
func Check(t testing.TB, base, root string) {
	s := &Site{t: t, base: base}
	found := 0
	for where, text := range s.texts(root) {
		for _, target := range targets(text) {
			found++
			status, body := s.call(target)
			require.Equal(t, wantedStatus(where, target), status, "%s shows %s, which is answered %s", where, target, body)
		}
		for _, number := range numbers(text) {
			s.requireKnown(where, number)
		}
	}
	require.Greater(t, found, 40, "calls that pages and documents show")
	s.checkStart()
	s.checkProblems()
	s.checkDocument()
}

// texts returns the documents that clients read, by path.
func (s *Site) texts(root string) map[string]string {
	texts := map[string]string{"/openapi.yaml": s.page("/openapi.yaml")}
	pages := []string{"/", "/reference"}
	for _, from := range []string{"/", "/guides/errors"} {
		for _, match := range regexp.MustCompile(`href="(/(?:guides|problems)/[^"]*)"`).FindAllStringSubmatch(s.page(from), -1) {
			pages = append(pages, match[1])
		}
	}
	for _, path := range pages {
		texts[path] = plain(s.page(path))
	}
	require.Greater(s.t, len(texts), 30, "pages")
	for _, pattern := range []string{"*.md", "docs/*.md", "clients/*.md", "clients/*/README.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(s.t, err)
		require.NotEmpty(s.t, paths)
		for _, path := range paths {
			content, err := os.ReadFile(path)
			require.NoError(s.t, err)
			texts[path] = string(content)
		}
	}
	return texts
}

// plain is the text of a page.
func plain(page string) string {
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " "))
}

var (
	target = regexp.MustCompile(`/v1/(?:companies|directors|llps)/[0-9A-Za-z-]+|/v1/search/(?:companies|llps)\?[a-z]+=[0-9A-Za-z%+][0-9A-Za-z%+&=-]*`)
	number = regexp.MustCompile(`\b(?:[LUlu]\d{5}[A-Za-z]{2}\d{4}[A-Za-z]{3}\d{6}|[A-Z]{3}-\d{4}|\d{8})\b`)
)

// targets are the calls that a text shows.
func targets(text string) []string {
	found := target.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// numbers returns what looks like a CIN, an LLPIN or a DIN.
func numbers(text string) []string {
	found := number.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// ofProblem are the codes whose page shows a call that provokes them with the sandbox key.
var ofProblem = []string{
	handler.InvalidCIN, handler.InvalidDIN, handler.InvalidLLPIN, handler.InvalidQuery,
	handler.CompanyNotFound, handler.DirectorNotFound, handler.LLPNotFound,
}

func wantedStatus(where, target string) int {
	code := strings.TrimPrefix(where, "/problems/")
	if slices.Contains(ofProblem, code) {
		described, _ := handler.FindProblem(code)
		return described.Status
	}
	if value := target[strings.LastIndex(target, "/")+1:]; neverFound(value) {
		return http.StatusNotFound
	}
	return http.StatusOK
}

func neverFound(value string) bool {
	return slices.Contains([]string{handler.SandboxNoCompany, handler.SandboxNoDirector, handler.SandboxNoLLP}, value)
}

// notNumbers look like numbers of records but are none: the first ones of a series, and a date in
// the name of a release.
var notNumbers = regexp.MustCompile(`^(?:AAA-\d{4}|00000001|20\d{6})$`)

// requireKnown requires that a number in a text is found, or is known to be absent.
func (s *Site) requireKnown(where, number string) {
	if neverFound(number) || notNumbers.MatchString(number) {
		return
	}
	collection := map[bool]string{true: "companies", false: "directors"}[len(number) == ident.CINLength]
	if strings.Contains(number, "-") {
		collection = "llps"
	}
	status, body := s.call("/v1/" + collection + "/" + number)
	require.Equal(s.t, http.StatusOK, status, "%s shows %s, which is answered %s", where, number, body)
}

// call makes a lookup with the sandbox key, from an address of its own.
func (s *Site) call(target string) (status int, body string) {
	s.t.Helper()
	s.calls++
	request, err := http.NewRequest(http.MethodGet, s.base+target, nil)
	require.NoError(s.t, err)
	request.Header.Set("Authorization", "Bearer "+ident.SandboxKey)
	request.Header.Set("X-Forwarded-For", fmt.Sprintf("198.19.%d.%d", s.calls/250, s.calls%250+1))
	return s.do(request)
}

func (s *Site) page(path string) string {
	s.t.Helper()
	request, err := http.NewRequest(http.MethodGet, s.base+path, nil)
	require.NoError(s.t, err)
	status, body := s.do(request)
	require.Equal(s.t, http.StatusOK, status, path)
	return body
}

func (s *Site) do(request *http.Request) (status int, body string) {
	s.t.Helper()
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return response.StatusCode, string(content)
}

// checkStart compares the answer that the start page shows beside its call, and searches for the names to try.
func (s *Site) checkStart() {
	page := s.page("/")
	shown := regexp.MustCompile(`(?s)<div class="samples">.*?(/v1/[^\s"]*?)&#34;.*<pre class="answer"[^>]*>(.*?)</pre>`).FindStringSubmatch(page)
	require.NotNil(s.t, shown, "the start page shows no answer")
	_, got := s.call(html.UnescapeString(shown[1]))
	s.requireSame("/", plain(shown[2]), got)
	names := regexp.MustCompile(`data-query="([^"]*)"`).FindAllStringSubmatch(page, -1)
	require.NotEmpty(s.t, names, "the start page has no names to try")
	for _, name := range names {
		status, got := s.call("/v1/search/companies?name=" + escaped(html.UnescapeString(name[1])))
		require.Equal(s.t, http.StatusOK, status, name[1])
		require.NotEmpty(s.t, s.normal(got)["data"], name[1])
	}
}

// checkProblems compares the answers that the pages of codes show beside their calls.
func (s *Site) checkProblems() {
	for _, code := range ofProblem {
		page := plain(s.page("/problems/" + code))
		asked := regexp.MustCompile(`GET (\S+) HTTP/1.1`).FindStringSubmatch(page)
		require.NotNil(s.t, asked, code)
		_, got := s.call(asked[1])
		s.requireSame(code, page[strings.Index(page, "{"):strings.LastIndex(page, "}")+1], got)
	}
}

// requireSame compares two answers in JSON but for their request ids and the address of the service.
func (s *Site) requireSame(where, shown, got string) {
	s.t.Helper()
	require.Equal(s.t, s.normal(shown), s.normal(got), "what %s shows is not what the service answers", where)
}

func (s *Site) normal(text string) (value map[string]any) {
	s.t.Helper()
	require.NoError(s.t, json.Unmarshal([]byte(text), &value), "%s", text)
	forget(value)
	return value
}

// forget drops the parts that differ from call to call.
func forget(answer map[string]any) {
	if meta, ok := answer["meta"].(map[string]any); ok {
		delete(meta, "request_id")
	}
	delete(answer, "request_id")
	if kind, ok := answer["type"].(string); ok {
		answer["type"] = kind[strings.LastIndex(kind, "/"):]
	}
}

// escaped is a name as a part of a query.
func escaped(name string) string { return url.QueryEscape(name) }
