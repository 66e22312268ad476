package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/internal/testkit"
)

// leastClientCalls is a lower bound of how many exchanges of the vectors are calls that a client
// library can make: a run that finds fewer is broken.
const leastClientCalls = 150

// library is a client library, driven by a program that makes the calls it reads from its
// standard input.
type library struct {
	name   string
	driver func(*testing.T) *exec.Cmd
}

var libraries = []library{
	{"Go", func(t *testing.T) *exec.Cmd {
		program := filepath.Join(t.TempDir(), "vectors")
		out, err := exec.Command("go", "build", "-C", "../../clients/go", "-o", program, "./internal/vectors").CombinedOutput()
		require.NoError(t, err, "%s", out)
		return exec.Command(program)
	}},
	{"TypeScript", func(t *testing.T) *exec.Cmd {
		dir := "../../clients/typescript"
		buildTypeScript(t, dir)
		command := exec.Command("node", "test/vectors.mjs")
		command.Dir = dir
		return command
	}},
	{"Python", func(t *testing.T) *exec.Cmd {
		python, err := exec.LookPath("python3")
		if err != nil {
			testkit.MissingTool(t, "the Python client needs python3")
		}
		command := exec.Command(python, "tests/vectors.py")
		command.Dir = "../../clients/python"
		command.Env = append(os.Environ(), "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1")
		return command
	}},
}

func buildTypeScript(t *testing.T, dir string) {
	compiler := filepath.Join(dir, "node_modules", ".bin", "tsc")
	if _, err := os.Stat(compiler); err != nil {
		testkit.MissingTool(t, "the TypeScript client needs `make tools`, which installs its compiler")
	}
	build := exec.Command("npm", "run", "build")
	build.Dir = dir
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestLibrariesPassTheirOwnTests runs each library's unit tests: retries, timeouts, errors.
func TestLibrariesPassTheirOwnTests(t *testing.T) {
	for _, run := range []struct{ name, dir, command string }{
		{"Go", "go", "go vet ./... && go test ./..."},
		{"TypeScript", "typescript", "node --test test/*.test.mjs"},
		{"Python", "python", "PYTHONDONTWRITEBYTECODE=1 python3 -m unittest discover -s tests"},
	} {
		t.Run(run.name, func(t *testing.T) {
			dir := filepath.Join("../../clients", run.dir)
			if run.name == "TypeScript" {
				buildTypeScript(t, dir)
			}
			if _, err := exec.LookPath("python3"); run.name == "Python" && err != nil {
				testkit.MissingTool(t, "the Python client needs python3")
			}
			command := exec.Command("sh", "-c", run.command)
			command.Dir = dir
			out, err := command.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// TestLibrariesKnowEveryCode compares the codes of the service with those of docs/contract.md, which has each once,
// and of the libraries that list them.
func TestLibrariesKnowEveryCode(t *testing.T) {
	var known []string
	for _, problem := range handler.Problems() {
		known = append(known, problem.Code)
	}
	require.ElementsMatch(t, known, documentedCodes(t), `docs/contract.md, "Errors"`)
	for _, path := range []string{"go/errors.go", "typescript/src/errors.ts"} {
		source, err := os.ReadFile(filepath.Join("../../clients", path))
		require.NoError(t, err)
		for _, code := range documentedCodes(t) {
			require.Contains(t, string(source), strconv.Quote(code), path)
		}
	}
}

// TestTheTypesOfTypeScriptHaveEveryField of the API document: at run time that library passes on what it gets, so that
// no vector notices a field that its types lack.
func TestTheTypesOfTypeScriptHaveEveryField(t *testing.T) {
	document, err := os.ReadFile("../../host/reference/openapi.yaml")
	require.NoError(t, err)
	types, err := os.ReadFile("../../clients/typescript/src/resources.ts")
	require.NoError(t, err)
	for schema, name := range map[string]string{
		"Company": "Company", "Contact": "Contact", "CompanyDirector": "DirectorItem", "Director": "Director", "LinkedCompany": "LinkedCompany",
		"LLP": "Llp", "Partner": "Partner", "SearchMatch": "Match",
	} {
		required := regexp.MustCompile(`(?m)^    ` + schema + `:\n(?:      .*\n|\n)*?      required: \[(.*)\]$`).FindSubmatch(document)
		require.NotNil(t, required, schema)
		shape := regexp.MustCompile(`(?m)^export interface ` + name + ` \{\n((?:.*\n)*?)\}`).FindSubmatch(types)
		require.NotNil(t, shape, name)
		for field := range strings.SplitSeq(string(required[1]), ", ") {
			require.Regexp(t, `(?m)^  `+field+`: `, string(shape[1]), "%s in clients/typescript/src/resources.ts", name)
		}
	}
}

// TestTheLibraryOfTypeScriptNamesItsTypes: all that its files export but helpers, so that a program can name what it holds.
func TestTheLibraryOfTypeScriptNamesItsTypes(t *testing.T) {
	read := func(name string) string {
		source, err := os.ReadFile(filepath.Join("../../clients/typescript/src", name))
		require.NoError(t, err)
		return string(source)
	}
	index := read("index.ts")
	for _, name := range []string{"client.ts", "errors.ts", "resources.ts"} {
		exported := regexp.MustCompile(`(?m)^export (?:class|const|interface|type) (\w+)`).FindAllStringSubmatch(read(name), -1)
		require.NotEmpty(t, exported, name)
		for _, e := range exported {
			require.Regexp(t, `\b`+e[1]+`\b`, index, name)
		}
	}
}

// documentedCodes reads the table of errors in docs/contract.md.
func documentedCodes(t *testing.T) []string {
	contract, err := os.ReadFile("../../docs/contract.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(contract), "\n## Errors\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var codes []string
	for _, line := range strings.Split(table, "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for i, part := range strings.Split(cells[2], "`") {
				if i%2 == 1 {
					codes = append(codes, part)
				}
			}
		}
	}
	require.Greater(t, len(codes), 20)
	return codes
}

// TestVectorsThroughLibraries makes the calls of the vectors with each client library and compares
// what it returns with the vectors' answers.
func TestVectorsThroughLibraries(t *testing.T) {
	files := readVectors(t)
	for _, library := range libraries {
		t.Run(library.name, func(t *testing.T) {
			driver := startDriver(t, library.driver(t))
			kit, calls := freshKit(t, engines[0].start), 0
			for _, f := range files {
				for _, v := range f.Vectors {
					t.Run(filepath.Base(f.Path)+"/"+v.Name, func(t *testing.T) { calls += kit.runThrough(t, driver, v) })
				}
			}
			require.GreaterOrEqual(t, calls, leastClientCalls, "calls that the library made")
		})
	}
}

// runThrough runs a vector with the driver's calls where a library can make them, and returns how many
// there were. The others are sent as they are, since they may change what later ones meet.
func (k *Kit) runThrough(t *testing.T, driver *driver, v *Vector) (calls int) {
	kit := k
	if v.advances() {
		kit = kit.Fresh(t)
	}
	if v.Outage != "" {
		kit = kit.Outage(t, v.Outage)
	}
	var account Account
	if v.Given != nil {
		account = kit.NewAccount(t, *v.Given)
	}
	client := v.Client
	if client == "" {
		client = clients.next()
	}
	expand := strings.NewReplacer("{key}", account.Key, "{second}", account.Second, "{revoked}", account.Revoked, "{expired}", account.Expired).Replace
	for _, e := range v.Exchanges {
		if e.Advance != 0 {
			kit.Advance(t, e.Advance)
		}
		call, ok := libraryCall(e, expand)
		var last *libraryOutcome
		for range e.Times {
			if !ok {
				kit.send(t, e, expand, client)
				continue
			}
			call.Base, call.Header = "http://"+kit.Address, map[string]string{kit.ClientHeader: client}
			last = driver.call(t, call)
			calls++
		}
		if ok {
			last.compare(t, e, kit.Release)
		}
	}
	return calls
}

// libraryRequest is what a driver reads.
type libraryRequest struct {
	Base     string            `json:"base"`
	Key      string            `json:"key"`
	Header   map[string]string `json:"header"`
	Method   string            `json:"method"`
	Argument string            `json:"argument"`
	Limit    int               `json:"limit"`
}

// libraryCall returns the call of a library that sends the request of e. ok is false when there
// is none: libraries send well-formed requests to the five endpoints, with one key.
func libraryCall(e *Exchange, expand func(string) string) (call libraryRequest, ok bool) {
	if len(e.Request) != 2 {
		return call, false
	}
	key, ok := strings.CutPrefix(expand(e.Request[1]), "Authorization: Bearer ")
	if !ok || key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return call, false
	}
	target, ok := strings.CutPrefix(e.Request[0], "GET ")
	if !ok {
		return call, false
	}
	call.Key = key
	path, query, _ := strings.Cut(target, "?")
	if endpoint, ok := map[string]string{"/v1/search/companies": "search", "/v1/search/llps": "find_llp"}[path]; ok {
		return call, call.search(endpoint, query)
	}
	for prefix, method := range map[string]string{"/v1/companies/": "company", "/v1/directors/": "director", "/v1/llps/": "llp"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok && query == "" && !strings.Contains(rest, "/") {
			argument, err := url.PathUnescape(rest)
			call.Method, call.Argument = method, argument
			return call, err == nil && utf8.ValidString(argument) && strings.Trim(argument, ".") != ""
		}
	}
	return call, false
}

// search reads the query of a search. It reports false for what no library sends: parameters that are
// unknown, repeated or malformed.
func (c *libraryRequest) search(method, query string) bool {
	values, err := url.ParseQuery(query)
	if err != nil {
		return false
	}
	name := map[string]string{"search": "name", "find_llp": "llpin"}[method]
	c.Method, c.Argument = method, values.Get(name)
	if limit := values.Get("limit"); len(values["limit"]) == 1 && method == "search" {
		if c.Limit, err = strconv.Atoi(limit); err != nil || c.Limit == 0 || strconv.Itoa(c.Limit) != limit {
			return false
		}
		values.Del("limit")
	}
	return len(values) == 1 && len(values[name]) == 1 && utf8.ValidString(c.Argument)
}

// libraryOutcome is what a driver writes.
type libraryOutcome struct {
	Data             json.RawMessage `json:"data"`
	RequestID        string          `json:"request_id"`
	CreditsRemaining *int64          `json:"credits_remaining"`
	Sandbox          bool            `json:"sandbox"`
	Release          string          `json:"release"`
	RateLimit        struct {
		Limit, Remaining, Reset *int
	} `json:"rate_limit"`
	Error *struct {
		Status                    int
		Code, Type, Title, Detail string
		RetryAfter                float64 `json:"retry_after"`
	} `json:"error"`
}

// compare holds what a library returned against the answer of the vector.
func (o *libraryOutcome) compare(t *testing.T, e *Exchange, release string) {
	header := http.Header{}
	for _, line := range e.Headers {
		name, value, _ := strings.Cut(line, ": ")
		header.Set(name, value)
	}
	for name, got := range map[string]*int{
		"RateLimit-Limit": o.RateLimit.Limit, "RateLimit-Remaining": o.RateLimit.Remaining, "RateLimit-Reset": o.RateLimit.Reset,
	} {
		value := ""
		if got != nil {
			value = strconv.Itoa(*got)
		}
		require.Equal(t, header.Get(name), value, "%s of %s", name, e.Request[0])
	}
	require.Len(t, o.RequestID, 26, "%s: request id", e.Request[0])
	if e.Status != http.StatusOK {
		o.compareError(t, e, header)
		return
	}
	require.Nil(t, o.Error, e.Request[0])
	var body struct {
		Data json.RawMessage
		Meta struct {
			CreditsRemaining *int64 `json:"credits_remaining"`
			Sandbox          bool
		}
	}
	require.NoError(t, json.Unmarshal(e.Body, &body))
	require.JSONEq(t, string(body.Data), string(o.Data), e.Request[0])
	require.Equal(t, body.Meta.CreditsRemaining, o.CreditsRemaining, "%s: credits", e.Request[0])
	require.Equal(t, body.Meta.Sandbox, o.Sandbox, "%s: sandbox", e.Request[0])
	require.Equal(t, release, o.Release, "%s: release", e.Request[0])
}

func (o *libraryOutcome) compareError(t *testing.T, e *Exchange, header http.Header) {
	require.NotNil(t, o.Error, "%s: got a success, want %d", e.Request[0], e.Status)
	var want struct{ Code, Type, Title, Detail string }
	require.NoError(t, json.Unmarshal(e.Body, &want))
	require.Equal(t, fmt.Sprint(e.Status, want), fmt.Sprint(o.Error.Status,
		struct{ Code, Type, Title, Detail string }{o.Error.Code, o.Error.Type, o.Error.Title, o.Error.Detail}), e.Request[0])
	seconds, _ := strconv.ParseFloat(header.Get("Retry-After"), 64)
	require.Equal(t, seconds, o.Error.RetryAfter, "%s: Retry-After", e.Request[0])
}

// driver is a running driver.
type driver struct {
	input  io.Writer
	output *bufio.Reader
}

func startDriver(t *testing.T, command *exec.Cmd) *driver {
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	require.NoError(t, err)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { input.Close(); command.Wait() })
	return &driver{input, bufio.NewReader(output)}
}

func (d *driver) call(t *testing.T, request libraryRequest) *libraryOutcome {
	line, err := json.Marshal(request)
	require.NoError(t, err)
	_, err = d.input.Write(append(line, '\n'))
	require.NoError(t, err)
	answer, err := d.output.ReadBytes('\n')
	require.NoError(t, err, "the driver ended")
	outcome := &libraryOutcome{}
	require.NoError(t, json.Unmarshal(answer, outcome))
	return outcome
}
