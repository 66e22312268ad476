package reference_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/ident"
	"regedge/host/reference"
	"regedge/internal/testkit"
)

// clients is where the client libraries are.
const clients = "../../clients"

// prints are what the programs of the guides print, in every language.
var prints = map[string][]string{
	"production": {"SANDBOX EVERY FIELD (MADE-UP) PRIVATE LIMITED\nrequest 01"},
	"recorded":   {"SANDBOX EVERY FIELD (MADE-UP) PRIVATE LIMITED", "llp_not_found"},
	"retry":      {"SANDBOX EVERY FIELD (MADE-UP) PRIVATE LIMITED"},
	"suggest":    {"Did you mean: EVERY FIELD", "llp AAZ-9001 EVERY FIELD (MADE-UP) LLP"},
	"compare": {"U72900ZZ2015PTC000001 is the same\nU72900ZZ2017PTC000003 has another status: STRUCK_OFF\n" +
		"U72900ZZ2015PTC999999 is not in this registry\n"},
}

// TestProgramsOfTheGuidesRun runs each as people copy it, with the library as it is installed.
func TestProgramsOfTheGuidesRun(t *testing.T) {
	base := behindProxy(t, service(t))
	files, err := filepath.Glob("programs/*")
	require.NoError(t, err)
	ran := 0
	for name, wants := range prints {
		programs, err := reference.Programs(base, name)
		require.NoError(t, err)
		for _, program := range programs {
			ran++
			t.Run(name+" in "+program.Language, func(t *testing.T) {
				out := runWithLibrary(t, program.Name, program.Code)
				for _, want := range wants {
					require.Contains(t, out, want)
				}
			})
		}
	}
	require.Equal(t, len(files), ran, "each program is run")
}

// TestAProgramNamesTheSandboxKeyOnce, where it calls: a function that takes a key
// uses the one that it is given.
func TestAProgramNamesTheSandboxKeyOnce(t *testing.T) {
	for name := range prints {
		programs, err := reference.Programs("http://localhost", name)
		require.NoError(t, err)
		for _, program := range programs {
			require.LessOrEqual(t, strings.Count(program.Code, ident.SandboxKey), 1, "%s in %s", name, program.Language)
		}
	}
}

// TestTheRetryingProgramAsksAgainForAnAnswerThatBrokeOff, under the same Idempotency-Key: it may have been charged.
func TestTheRetryingProgramAsksAgainForAnAnswerThatBrokeOff(t *testing.T) {
	var keys []string // of the requests, which come one after another
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		const answer = `{"data": {"company_name": "ACME LIMITED"}}`
		rw.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		io.WriteString(rw, answer[:len(answer)*len(keys)/2])
	}))
	defer server.Close()
	programs, err := reference.Programs(server.URL, "retry")
	require.NoError(t, err)
	pause := "time.sleep(wait + random.random())"
	require.Contains(t, programs[0].Code, pause)
	require.Equal(t, "ACME LIMITED\n", runWithLibrary(t, programs[0].Name, strings.Replace(programs[0].Code, pause, "", 1)))
	server.Close()
	require.Len(t, keys, 2)
	require.Equal(t, keys[0], keys[1])
}

// firstCodes are those of version 1.0.0.
var firstCodes = strings.Fields("invalid_cin invalid_din missing_api_key invalid_api_key insufficient_credits plan_without_api_access account_suspended " +
	"company_not_found director_not_found route_not_found method_not_allowed rate_limit_exceeded monthly_volume_exceeded not_found_cap_exceeded " +
	"internal_error metering_unavailable registry_unavailable overloaded")

// TestTheChangelogNamesWhatTheContractDoes compares the codes of each version. Those that the first one lacked are all there.
func TestTheChangelogNamesWhatTheContractDoes(t *testing.T) {
	contract, err := os.ReadFile("../../docs/contract.md")
	require.NoError(t, err)
	changes, err := os.ReadFile("guides/changelog.html")
	require.NoError(t, err)
	_, versions, found := strings.Cut(string(contract), "\n## Versions\n")
	require.True(t, found)
	versions, _, _ = strings.Cut(versions, "\n## ")
	codes := regexp.MustCompile("`([a-z]+(?:_[a-z]+)+)`").FindAllStringSubmatch(versions, -1)
	require.Greater(t, len(codes), 5)
	for _, code := range codes {
		require.Contains(t, string(changes), "<code>"+code[1]+"</code>")
	}
	for _, code := range documentedCodes(loadDocument(t)) {
		require.Equal(t, !slices.Contains(firstCodes, code), strings.Contains(versions, "`"+code+"`"), code)
	}
}

// TestSamplesOfTheReferenceRun runs the samples of every call as the page shows them.
func TestSamplesOfTheReferenceRun(t *testing.T) {
	base := behindProxy(t, service(t))
	site := newSite(t, reference.Config{BaseURL: base})
	page := bodyOf(t, get(t, site, "/reference"))
	for operation, want := range map[string]string{
		"searchCompanies": "U72900ZZ2015PTC000001", "searchLLPs": "ZZZ-0001", "getCompany": "SANDBOX EVERY FIELD", "getDirector": "ASHA SANDBOX", "getLLP": "SANDBOX EVERY FIELD",
	} {
		_, section, found := strings.Cut(page, `<section class="op" id="`+operation+`"`)
		require.True(t, found, operation)
		section, _, _ = strings.Cut(section, "</section>")
		samples := regexp.MustCompile(`(?s)data-language="([a-z]+)">.*?<code>(.*?)</code></pre>`).FindAllStringSubmatch(section, -1)
		require.Len(t, samples, 4, operation)
		for _, sample := range samples {
			code := regexp.MustCompile(`(?s)<span data-if="[^"]*" hidden>.*?</span>[^<]*</span>`).ReplaceAllString(sample[2], "")
			code = html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(code, ""))
			if folder, ok := libraryFolders[sample[1]]; ok {
				requireInstall(t, folder, code)
			}
			t.Run(operation+" in "+sample[1], func(t *testing.T) { require.Contains(t, runWithLibrary(t, sample[1], code), want) })
		}
	}
}

// TestSnippetsOfTheReadmesRun runs them as they stand, but for the address of the service.
func TestSnippetsOfTheReadmesRun(t *testing.T) {
	base := behindProxy(t, service(t))
	for language, folder := range libraryFolders {
		t.Run(language, func(t *testing.T) {
			readme, err := os.ReadFile(filepath.Join(clients, folder, "README.md"))
			require.NoError(t, err)
			found := regexp.MustCompile("(?s)```(?:go|python|ts)\n(.*?)```").FindStringSubmatch(string(readme))
			require.NotNil(t, found)
			code := found[1]
			require.Contains(t, code, "http://127.0.0.1:8080")
			code = strings.ReplaceAll(code, "http://127.0.0.1:8080", base)
			if language == "go" {
				install := regexp.MustCompile("`(go mod edit[^`]*)`").FindStringSubmatch(string(readme))
				require.NotNil(t, install)
				code = "// " + strings.Join(strings.Fields(install[1]), " ") + "\n" + code
			}
			require.Contains(t, runWithLibrary(t, language, code), "SANDBOX EVERY FIELD")
		})
	}
}

// libraryFolders names the folder of each client library by the language name that the samples use.
var libraryFolders = map[string]string{"go": "go", "python": "python", "javascript": "typescript"}

// installOf is the command in the first line of a program, a comment.
func installOf(code string) string {
	line, _, _ := strings.Cut(code, "\n")
	return strings.TrimLeft(line, "/# ")
}

// requireInstall holds that a program begins with the command that its library's README names.
func requireInstall(t *testing.T, folder, code string) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(clients, folder, "README.md"))
	require.NoError(t, err)
	install := installOf(code)
	require.Contains(t, install, "./clients/"+folder)
	require.Contains(t, strings.Join(strings.Fields(string(readme)), " "), "`"+install+"`")
}

// behindProxy is the service as clients of another address reach it: each has a sandbox rate of its own.
func behindProxy(t *testing.T, base string) string {
	to, err := url.Parse(base)
	require.NoError(t, err)
	var calls atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Set("X-Forwarded-For", fmt.Sprintf("198.18.201.%d", calls.Add(1)%250))
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// runWithLibrary runs a program in a folder where the library of its language is installed, and the
// recorded sandbox lies.
func runWithLibrary(t *testing.T, language, code string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	recording, err := os.ReadFile("sandbox.json")
	require.NoError(t, err)
	write("sandbox.json", string(recording))
	library, err := filepath.Abs(clients)
	require.NoError(t, err)
	var command *exec.Cmd
	switch language {
	case "curl":
		write("call.sh", code)
		command = exec.Command("sh", "call.sh")
	case "python":
		write("call.py", code)
		command = exec.Command("python3", "call.py")
	case "go":
		write("main.go", code)
		require.NoError(t, os.Symlink(library, filepath.Join(dir, "clients")))
		command = exec.Command("sh", "-c", "go mod init sample && "+installOf(code)+" && go run .")
		command.Env = append(os.Environ(), "GOPROXY=off")
	case "javascript":
		write("call.mjs", code)
		installTypeScript(t, filepath.Join(library, "typescript"), filepath.Join(dir, "node_modules", "regedge"))
		command = exec.Command("node", "call.mjs")
	}
	if _, err := exec.LookPath(command.Args[0]); err != nil {
		testkit.MissingTool(t, command.Args[0], " is not installed")
	}
	command.Dir = dir
	command.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(library, "python"), "PYTHONDONTWRITEBYTECODE=1", "GOFLAGS=-mod=mod")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, code)
	return string(out)
}

// typeScript is the folder of the built library, and what its compiler said; once builds it, which takes seconds.
var typeScript struct {
	once     sync.Once
	dir, out string
	err      error
}

// installTypeScript builds the library, once, and links to it.
func installTypeScript(t *testing.T, library, to string) {
	t.Helper()
	compiler := filepath.Join(library, "node_modules", ".bin", "tsc")
	if _, err := os.Stat(compiler); err != nil {
		testkit.MissingTool(t, "the TypeScript client needs `make tools`, which installs its compiler")
	}
	typeScript.once.Do(func() {
		if typeScript.dir, typeScript.err = os.MkdirTemp("", "regedge-typescript-"); typeScript.err != nil {
			return
		}
		stops = append(stops, func() { os.RemoveAll(typeScript.dir) })
		out, err := exec.Command(compiler, "-p", library, "--outDir", filepath.Join(typeScript.dir, "dist")).CombinedOutput()
		typeScript.out, typeScript.err = string(out), err
	})
	require.NoError(t, typeScript.err, typeScript.out)
	description, err := os.ReadFile(filepath.Join(library, "package.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(typeScript.dir, "package.json"), description, 0o600))
	require.NoError(t, os.Mkdir(filepath.Dir(to), 0o700))
	require.NoError(t, os.Symlink(typeScript.dir, to))
}
