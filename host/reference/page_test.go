package reference_test

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/julienschmidt/httprouter"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/host/reference"
)

// newSite serves the pages alone.
func newSite(t *testing.T, config reference.Config) http.Handler {
	t.Helper()
	site, err := reference.New(config)
	require.NoError(t, err)
	router := httprouter.New()
	router.RedirectFixedPath, router.RedirectTrailingSlash = false, false // as in the host
	router.NotFound = http.NotFoundHandler()
	site.Routes(router)
	return router
}

func get(t *testing.T, site http.Handler, target string, change ...func(*http.Request)) *http.Response {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, target, nil)
	for _, c := range change {
		c(request)
	}
	recorder := httptest.NewRecorder()
	site.ServeHTTP(recorder, request)
	return recorder.Result()
}

func bodyOf(t *testing.T, response *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

func TestEveryPageIsSmallAndKeepsToItself(t *testing.T) {
	site := newSite(t, reference.Config{})
	shared := 0
	for _, file := range []string{"style.css", "icon.svg", "samples.js", "samples.json", "start.js", "suggestion.js", "reference.js", "reference.css"} {
		response := get(t, site, "/assets/"+file, acceptGzip)
		require.Equal(t, 200, response.StatusCode, file)
		shared += len(bodyOf(t, response))
	}
	for _, path := range allPaths() {
		response := get(t, site, path)
		require.Equal(t, 200, response.StatusCode, path)
		body := bodyOf(t, response)
		compressed := get(t, site, path, acceptGzip)
		require.Equal(t, "gzip", compressed.Header.Get("Content-Encoding"), path)
		packed := len(bodyOf(t, compressed))
		require.Less(t, packed+shared, 50_000, "%s with all that any page loads, transferred", path)
		require.Less(t, len(body), 150_000, "%s where nothing is compressed", path)
		requireStrictPolicy(t, response.Header.Get("Content-Security-Policy"))
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Content-Type": "text/html; charset=utf-8", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-cache", "Vary": "Accept, Accept-Encoding", "Content-Encoding": "",
		} {
			require.Equal(t, want, response.Header.Get(name), "%s %s", path, name)
		}
		require.NotRegexp(t, regexp.MustCompile(`(?i)<script(?:\s+[a-z]+(?:="module")?)*\s*>|<style|\son[a-z]+=|\sstyle=|javascript:`), body,
			"%s has a script or a style in it, which the policy refuses", path)
		for _, match := range regexp.MustCompile(`(?:src|<link[^>]*href)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			require.True(t, strings.HasPrefix(match[1], "/"), "%s loads %s", path, match[1])
		}
		require.Contains(t, body, "GODL-India", path)
		require.Equal(t, 1, strings.Count(body, "<h1"), path)
	}
}

func requireStrictPolicy(t *testing.T, policy string) {
	t.Helper()
	require.Contains(t, policy, "default-src 'none'")
	require.Contains(t, policy, "script-src 'self';")
	require.Contains(t, policy, "frame-ancestors 'none'")
	require.NotContains(t, policy, "unsafe")
	require.NotContains(t, policy, "http")
	require.NotContains(t, policy, "*")
}

// allPaths are all pages that there are.
func allPaths() []string {
	paths := pagePaths
	for _, problem := range handler.Problems() {
		paths = append(paths, "/problems/"+problem.Code)
	}
	return paths
}

func TestEveryCodeHasAPageWithAdvice(t *testing.T) {
	site := newSite(t, reference.Config{})
	all := html.UnescapeString(bodyOf(t, get(t, site, "/guides/errors")))
	for _, problem := range handler.Problems() {
		body := html.UnescapeString(bodyOf(t, get(t, site, "/problems/"+problem.Code)))
		require.Contains(t, body, problem.Title)
		for _, part := range []string{"What it means", "What to do", "Example", "Can the same call succeed later?"} {
			require.Contains(t, body, part, problem.Code)
		}
		require.NotRegexp(t, `<h2>What it means</h2>\s*<p></p>`, body, "%s has no advice", problem.Code)
		require.Regexp(t, `(?s)<h2>What to do</h2>\s*<ul>\s*<li>`, body, "%s has no advice", problem.Code)
		require.Regexp(t, `(GET|POST) /v1/\S+ HTTP/1.1`, body, problem.Code)
		require.Contains(t, all, `href="/problems/`+problem.Code+`"`, "the guide does not list it")
	}
}

// TestTheExampleOfACodeIsARequestThatGetsIt: with what is wrong in it, and nothing else.
func TestTheExampleOfACodeIsARequestThatGetsIt(t *testing.T) {
	site := newSite(t, reference.Config{})
	const key = "Authorization: Bearer <API_KEY>\n"
	special := map[string]string{
		handler.InvalidIdempotency:  "GET /v1/llps/ZZZ-0001 HTTP/1.1\n" + key + "Idempotency-Key: with a space\n",
		charge.IdempotencyKeyReused: "GET /v1/companies/U72900ZZ2015PTC000001 HTTP/1.1\n" + key + "Idempotency-Key: d9b2d63d-a233-4123-847a-7090ab1e4b1d\n",
		handler.MethodNotAllowed:    "POST /v1/llps/ZZZ-0001 HTTP/1.1\n" + key,
		handler.MissingAPIKey:       "GET /v1/llps/ZZZ-0001 HTTP/1.1\n",
		handler.InvalidAPIKey:       "GET /v1/llps/ZZZ-0001 HTTP/1.1\nAuthorization: Bearer reg_live_…\n",
	}
	for _, problem := range handler.Problems() {
		_, request, _ := strings.Cut(html.UnescapeString(bodyOf(t, get(t, site, "/problems/"+problem.Code))), `<p>This request</p>
<pre tabindex="0"><code>`)
		request, answer, _ := strings.Cut(request, "</code>")
		_, answer, _ = strings.Cut(answer, `<pre class="wrapped" tabindex="0"><code>`)
		answer, _, _ = strings.Cut(answer, "</code>")
		answer = regexp.MustCompile(`</?span[^>]*>`).ReplaceAllString(answer, "")
		require.True(t, strings.HasPrefix(answer, "{\n  \"type\": "), "%s: %s", problem.Code, answer)
		var document struct {
			Code   string
			Status int
		}
		require.NoError(t, json.Unmarshal([]byte(answer), &document), problem.Code)
		require.Equal(t, []any{problem.Code, problem.Status}, []any{document.Code, document.Status})
		if want, ok := special[problem.Code]; ok {
			require.Equal(t, want, request)
		} else {
			require.Regexp(t, `^GET /v1/\S+ HTTP/1\.1\n`+key+`$`, request, problem.Code)
		}
	}
}

// TestGuidesAreReadInOrder, and codes in tables break at their joints.
func TestGuidesAreReadInOrder(t *testing.T) {
	site := newSite(t, reference.Config{})
	turn := func(guide string) string {
		_, links, found := strings.Cut(bodyOf(t, get(t, site, "/guides/"+guide)), `aria-label="More guides">`)
		require.True(t, found)
		links, _, _ = strings.Cut(links, "</nav>")
		return links
	}
	require.NotContains(t, turn("first-call"), "←")
	require.Contains(t, turn("first-call"), `<a href="/guides/authentication">Authentication →</a>`)
	require.Contains(t, turn("sandbox"), `<a href="/guides/authentication">← Authentication</a>`)
	require.Contains(t, turn("sandbox"), `<a href="/guides/search">Search well →</a>`)
	require.Contains(t, turn("moving"), `<a href="/guides/changelog">Changelog →</a>`)
	require.NotContains(t, turn("changelog"), "→")
	require.Contains(t, bodyOf(t, get(t, site, "/guides/errors")), "<code>company_<wbr>not_<wbr>found</code>")
	require.Contains(t, bodyOf(t, get(t, site, "/")), "/v1/<wbr>companies/<wbr>{cin}")
}

func TestPagesOfNothingFoundNameTheSandbox(t *testing.T) {
	site := newSite(t, reference.Config{})
	for code, number := range map[string]string{handler.CompanyNotFound: "U72900ZZ2015PTC000001", handler.DirectorNotFound: "99999901", handler.LLPNotFound: "ZZZ-0001"} {
		body := bodyOf(t, get(t, site, "/problems/"+code))
		require.Contains(t, body, "With a live key "+number+" and the other made-up records of the guides are not found", code)
	}
	require.Contains(t, bodyOf(t, get(t, site, "/reference")), "A live key\ngets 404 for them")
}

func TestLinksBetweenPagesLeadSomewhere(t *testing.T) {
	site := newSite(t, reference.Config{})
	for _, path := range allPaths() {
		body := bodyOf(t, get(t, site, path))
		for _, match := range regexp.MustCompile(`(?:href|src)="(/[^"#]*)`).FindAllStringSubmatch(body, -1) {
			require.Equal(t, 200, get(t, site, match[1]).StatusCode, "%s links to %s", path, match[1])
		}
	}
}

func TestUnknownPagesAreMissing(t *testing.T) {
	site := newSite(t, reference.Config{})
	for _, path := range []string{
		"/none", "/guides/none", "/problems/none", "/problems/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "/assets/none.js",
		"/assets/..%2Freference.go", "/reference/component/index.html", "/reference/component/..%2f..%2fopenapi.yaml",
	} {
		response := get(t, site, path)
		require.Equal(t, 404, response.StatusCode, path)
		body := bodyOf(t, response)
		require.NotContains(t, body, "alert(1)")
		require.NotContains(t, body, "package reference")
		require.Contains(t, body, "No such page", path)
	}
}

// TestMistypedAddressesAnswerEveryoneInTheirWay asks the whole service.
func TestMistypedAddressesAnswerEveryoneInTheirWay(t *testing.T) {
	base := service(t)
	for _, path := range []string{"/nowhere", "/guides/none", "/problems/none", "/references/", "/assets/none.js"} {
		for accept, want := range map[string]string{"text/html,*/*;q=0.8": "text/html; charset=utf-8", "*/*": "application/problem+json"} {
			request, err := http.NewRequest(http.MethodGet, base+path, nil)
			require.NoError(t, err)
			request.Header.Set("Accept", accept)
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			body := bodyOf(t, response)
			require.NoError(t, response.Body.Close())
			require.Equal(t, http.StatusNotFound, response.StatusCode, path)
			require.Equal(t, want, response.Header.Get("Content-Type"), "%s for %s", path, accept)
			require.NotEmpty(t, response.Header.Get("X-Request-Id"))
			if accept == "*/*" {
				require.Contains(t, body, `"code":"route_not_found"`)
			} else {
				require.Contains(t, body, "<h1>No such page</h1>")
				requireStrictPolicy(t, response.Header.Get("Content-Security-Policy"))
			}
		}
	}
}

// TestNearlyRightAddressesLeadToThePage: with a slash at their end, in capitals, under another name or without the
// folder. Programs are told that there is nothing, as at any other path.
func TestNearlyRightAddressesLeadToThePage(t *testing.T) {
	base := service(t)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(path, accept string) (status int, to string) {
		request, err := http.NewRequest(http.MethodGet, base+path, nil)
		require.NoError(t, err)
		request.Header.Set("Accept", accept)
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		if accept != "*/*" && response.StatusCode == http.StatusPermanentRedirect {
			require.Equal(t, []string{"Accept"}, response.Header.Values("Vary"), path)
			require.Equal(t, "no-cache", response.Header.Get("Cache-Control"), path)
		}
		return response.StatusCode, response.Header.Get("Location")
	}
	for path, want := range map[string]string{
		"/reference/": "/reference", "/Reference": "/reference", "/reference/?a=b": "/reference?a=b", "/api": "/reference", "/docs": "/guides",
		"/guide": "/guides", "/guides/": "/guides", "/guides//search": "/guides/search", "/guide/first-call/": "/guides/first-call", "/sandbox": "/guides/sandbox",
		"/problem": "/problems", "/problems/": "/problems", "/problems/company_not_found/": "/problems/company_not_found",
		"/Problem/LLP_not_found": "/problems/llp_not_found", "/llp_not_found": "/problems/llp_not_found", "/errors": "/guides/errors",
		"/index.html": "/", "/openapi": "/openapi.json", "//reference//": "/reference", "/%72eference/": "/reference",
	} {
		status, to := ask(path, "text/html,*/*;q=0.8")
		require.Equal(t, http.StatusPermanentRedirect, status, path)
		require.Equal(t, want, to, path)
		status, _ = ask(path, "*/*")
		require.Equal(t, http.StatusNotFound, status, path)
		status, _ = ask(to, "text/html,*/*;q=0.8")
		require.Equal(t, http.StatusOK, status, to)
	}
	for _, path := range []string{"//evil.example", "//evil.example/", "/guides/none/", "/v1/", "/v1/companies/", "/assets/style.css/", "/\\evil.example"} {
		status, to := ask(path, "text/html,*/*;q=0.8")
		require.Equal(t, http.StatusNotFound, status, path)
		require.Empty(t, to, path)
	}
}

func TestSamplesNameTheHostThatThePageWasAskedFrom(t *testing.T) {
	site := newSite(t, reference.Config{})
	body := bodyOf(t, get(t, site, "/guides/first-call", func(r *http.Request) { r.Host = "edge-7.example:8443" }))
	require.Contains(t, body, "http://edge-7.example:8443/v1/")
	for _, host := range []string{`"><script>alert(1)</script>`, "a b", "a/b", "user@host", "host:port", strings.Repeat("a", 300)} {
		body := bodyOf(t, get(t, site, "/guides/first-call", func(r *http.Request) { r.Host = host }))
		require.NotContains(t, body, host)
		require.Contains(t, body, "http://localhost/v1/")
	}
	configured := newSite(t, reference.Config{BaseURL: "https://api.example/"})
	body = bodyOf(t, get(t, configured, "/guides/first-call", func(r *http.Request) { r.Host = "evil.example" }))
	require.Contains(t, body, "https://api.example/v1/")
	require.NotContains(t, body, "evil.example")
}

func TestTheDashboardIsLinkedWhenThereIsOne(t *testing.T) {
	require.NotContains(t, bodyOf(t, get(t, newSite(t, reference.Config{}), "/")), ">Dashboard</a>")
	site := newSite(t, reference.Config{DashboardURL: "https://accounts.example/"})
	require.Contains(t, bodyOf(t, get(t, site, "/")), `<a href="https://accounts.example/">Dashboard</a>`)
}

func TestBothDocumentsSayTheSame(t *testing.T) {
	site := newSite(t, reference.Config{})
	source, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	response := get(t, site, "/openapi.yaml")
	require.Equal(t, "application/yaml", response.Header.Get("Content-Type"))
	require.Equal(t, string(source), bodyOf(t, response))

	response = get(t, site, "/openapi.json")
	require.Equal(t, "application/json", response.Header.Get("Content-Type"))
	require.Equal(t, "*", response.Header.Get("Access-Control-Allow-Origin"))
	var want any
	require.NoError(t, yaml.Unmarshal(source, &want))
	wantJSON, err := json.Marshal(want)
	require.NoError(t, err)
	got := bodyOf(t, response)
	require.JSONEq(t, string(wantJSON), got)
	require.Less(t, strings.Index(got, `"/v1/search/companies"`), strings.Index(got, `"/v1/companies/{cin}"`), "the order is kept")
}

func TestADocumentThatCannotBeReadIsRefused(t *testing.T) {
	for name, document := range map[string]string{
		"no YAML":     "a: [",
		"empty":       "",
		"an alias":    "a: &x 1\nb: *x\n",
		"not in JSON": "a: .nan\n",
	} {
		_, err := reference.New(reference.Config{Document: []byte(document)})
		require.ErrorContains(t, err, "read OpenAPI document", name)
	}
}

func TestWhatABrowserHasIsNotSentAgain(t *testing.T) {
	site := newSite(t, reference.Config{})
	for _, path := range []string{"/assets/style.css", "/openapi.json", "/assets/reference.css"} {
		first := get(t, site, path, acceptGzip)
		require.Equal(t, "no-cache", first.Header.Get("Cache-Control"), path)
		tag := first.Header.Get("ETag")
		require.NotEmpty(t, tag, path)
		again := get(t, site, path, acceptGzip, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
		require.Equal(t, http.StatusNotModified, again.StatusCode, path)
	}
}

func acceptGzip(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }

func TestTheTableOfExamplesIsJSON(t *testing.T) {
	var samples []reference.Sample
	site := newSite(t, reference.Config{})
	require.NoError(t, json.Unmarshal([]byte(bodyOf(t, get(t, site, "/assets/samples.json"))), &samples))
	require.Len(t, samples, 4)
	for _, sample := range samples {
		require.Contains(t, sample.Code, "{url}")
		require.Contains(t, sample.Code, "{key}")
	}
}
