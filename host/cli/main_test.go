package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"regedge/host/hint"
	"regedge/host/service"
	"regedge/internal/testkit"
	"regedge/replicate/metering/writer"
)

// TestMain lets scripts run the program as the command regedge.
func TestMain(m *testing.M) {
	testscript.Main(quietTests{m}, map[string]func(){"regedge": Execute})
}

// quietTests fail, whichever of them ran, when a program has logged a secret. What it prints on standard
// output is for the person who asked for it.
type quietTests struct{ *testing.M }

// secret is the form of keys, tokens and private keys, but for those that are shown as an example or in part.
var secret = regexp.MustCompile(`reg_(live|owner|operator|node)_[0-9A-Za-z]{12}|\beyJ[\w-]+\.[\w-]+\.[\w-]{12}|PRIVATE KEY-----`)

func (m quietTests) Run() int {
	code := m.M.Run()
	started.Lock()
	defer started.Unlock()
	for _, p := range started.programs {
		for line := range strings.Lines(p.stderr.String()) {
			given := slices.ContainsFunc(p.secrets, func(s string) bool { return strings.Contains(line, s) })
			if given || secret.MatchString(line) {
				fmt.Fprintf(os.Stderr, "FAIL: regedge %s has logged a secret: %s", strings.Join(p.args, " "), line)
				code = 1
			}
		}
	}
	return code
}

// started are the programs of all tests.
var started struct {
	sync.Mutex
	programs []*program
}

// The scripts in testdata/script show what a person sees on the command line. Beside the
// commands of testscript they have:
//
//	boot DIR [--registry FILE]
//	                     run regedge dev on DIR, on ports of its own; sets LOOKUPS, and
//	                     REGEDGE_WRITER, REGEDGE_TOKEN and KEY as it prints them
//	halt                 stop it and wait for its end
//	get STATUS PATH KEY  look PATH up with KEY; the body is then in the file body
//	fails CODE COMMAND…  run COMMAND, which must exit with CODE
//	examples COMMAND     run the examples in the help of a command
//	pick NAME REGEXP     set NAME to the first group of REGEXP in the last output
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"boot": boot, "halt": halt, "get": get, "fails": fails, "pick": pick, "examples": runExamples,
		},
	})
}

// program is a running Main.
type program struct {
	args    []string
	secrets []string // given in the arguments
	stop    context.CancelFunc
	ended   chan int // its exit code
	stdout  *testkit.Log
	stderr  *testkit.Log

	mu    sync.Mutex
	addrs map[string]net.Addr
}

// start boots the program in this process.
func start(args ...string) *program {
	ctx, stop := context.WithCancel(context.Background())
	p := &program{
		args: args, secrets: tokensIn(args), stop: stop, ended: make(chan int, 1), addrs: map[string]net.Addr{},
		stdout: new(testkit.Log), stderr: new(testkit.Log),
	}
	main := &Main{
		Stdin: strings.NewReader(""), Stdout: p.stdout, Stderr: p.stderr,
		Environ: func() []string { return nil }, Now: time.Now,
		Listening: func(name string, addr net.Addr) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.addrs[name] = addr
		},
	}
	started.Lock()
	started.programs = append(started.programs, p)
	started.Unlock()
	go func() { p.ended <- main.Run(ctx, args) }()
	return p
}

// tokensIn are the tokens in arguments, and in the files that these name.
func tokensIn(args []string) (tokens []string) {
	for i, arg := range args[:max(0, len(args)-1)] {
		token := []byte(args[i+1])
		switch {
		case strings.HasSuffix(arg, "token-file"):
			if info, err := os.Stat(args[i+1]); err != nil || !info.Mode().IsRegular() {
				continue // what is in a pipe is for the program
			}
			token, _ = os.ReadFile(args[i+1])
		case !strings.HasSuffix(arg, "token"):
			continue
		}
		if text := strings.TrimSpace(string(token)); len(text) >= 8 {
			tokens = append(tokens, text)
		}
	}
	return tokens
}

func (p *program) addr(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr, ok := p.addrs[name]; ok {
		return addr.String()
	}
	return ""
}

// await waits until ready holds; it gives up when the program ends or after three minutes, since test machines may be slow.
func (p *program) await(ready func() bool) bool {
	deadline := time.After(3 * time.Minute)
	for !ready() {
		select {
		case code := <-p.ended:
			p.ended <- code
			return ready()
		case <-deadline:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// halt stops the program and returns its exit code.
func (p *program) halt() int {
	p.stop()
	code := <-p.ended
	p.ended <- code
	return code
}

func startDev(dir string, flags ...string) *program {
	return start(append([]string{"dev", "--listen", "127.0.0.1:0", "--writer-listen", "127.0.0.1:0", "--data", dir}, flags...)...)
}

// greeted reports whether dev has printed all that it prints.
func (p *program) greeted() bool { return strings.Contains(p.stdout.String(), "readable by you alone") }

func boot(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: boot DIR [--registry FILE]")
	}
	flags := args[1:]
	if len(flags) == 2 { // relative to the script's directory
		flags[1] = ts.MkAbs(flags[1])
	}
	p := startDev(ts.MkAbs(args[0]), flags...)
	ts.Defer(func() { p.halt() })
	if !p.await(p.greeted) {
		ts.Fatalf("regedge dev: %s%s", p.stdout, p.stderr)
	}
	out := p.stdout.String()
	ts.Setenv("LOOKUPS", "http://"+p.addr("lookups"))
	ts.Setenv("REGEDGE_WRITER", "http://"+p.addr("writer"))
	ts.Setenv("REGEDGE_TOKEN", after(out, "REGEDGE_TOKEN="))
	ts.Setenv("KEY", after(out, "Live key     "))
	ts.Check(os.WriteFile(ts.MkAbs("greeting"), []byte(out), 0o600))
	programs.Store(ts, p)
}

// programs are those that scripts have booted, by script.
var programs sync.Map

func halt(ts *testscript.TestScript, neg bool, args []string) {
	p, ok := programs.Load(ts)
	if neg || len(args) != 0 || !ok {
		ts.Fatalf("usage: halt, after boot")
	}
	if code := p.(*program).halt(); code != exitOK {
		ts.Fatalf("regedge dev ended with %d: %s", code, p.(*program).stderr)
	}
	if log := p.(*program).stderr.String(); strings.Contains(log, "level=ERROR") {
		ts.Fatalf("regedge dev was stopped, and logged %s", log)
	}
}

// after is the word that follows a mark.
func after(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	word, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(word)
}

func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: get STATUS PATH KEY")
	}
	request, err := http.NewRequest("GET", ts.Getenv("LOOKUPS")+args[1], nil)
	ts.Check(err)
	request.Header.Set("Authorization", "Bearer "+args[2])
	// What an operator changed reaches the node within two seconds (guarantee G8); the rest
	// is slack for a busy machine.
	var body []byte
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.DefaultClient.Do(request)
		ts.Check(err)
		body, err = io.ReadAll(response.Body)
		ts.Check(err)
		ts.Check(response.Body.Close())
		if strconv.Itoa(response.StatusCode) == args[0] {
			break
		}
		if time.Now().After(deadline) {
			ts.Fatalf("get %s: want %s, got %s: %s", args[1], args[0], response.Status, body)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("body"), body, 0o600))
}

func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails CODE COMMAND…")
	}
	var ended *exec.ExitError
	err := ts.Exec(args[1], args[2:]...)
	if !errors.As(err, &ended) {
		ts.Fatalf("want exit code %s, got %v", args[0], err)
	}
	if got := strconv.Itoa(ended.ExitCode()); got != args[0] {
		ts.Fatalf("want exit code %s, got %s: %s", args[0], got, ts.ReadFile("stderr"))
	}
}

func pick(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pick NAME REGEXP")
	}
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("no match of %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}

func TestAnAddressInUseIsExplained(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, flag := range []string{"--listen", "--writer-listen"} {
		other := map[string]string{"--listen": "--writer-listen", "--writer-listen": "--listen"}[flag]
		dir := filepath.Join(t.TempDir(), "data")
		p := start("dev", flag, taken.Addr().String(), other, "127.0.0.1:0", "--data", dir)
		require.Equal(t, exitFailure, <-p.ended)
		require.Contains(t, p.stderr.String(), "is in use\nhint: ")
		require.Contains(t, p.stderr.String(), flag+" takes another")
		require.NoDirExists(t, dir, "nothing was begun")
	}
}

func TestAnAuthorityThatIsNotTrustedIsExplained(t *testing.T) {
	stranger := httptest.NewTLSServer(http.NotFoundHandler())
	defer stranger.Close()
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Setenv("REGEDGE_TOKEN", "some-operator-token")
	p := start("account", "list", "--writer", stranger.URL)
	require.Equal(t, exitFailure, <-p.ended)
	require.Contains(t, p.stderr.String(), "\nhint: set SSL_CERT_FILE to the ca.crt of the cluster's trust directory")

	writers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		io.WriteString(w, word(r.URL.Path == writer.ReportPath, "[]", `{"data":[]}`))
	}))
	defer writers.Close()
	for _, command := range [][]string{{"status", "--writer", writers.URL}, {"push", "main_test.go", "--dry-run"}} {
		p = start(append(command, "--registry", stranger.URL)...)
		require.Equal(t, exitFailure, <-p.ended)
		require.Contains(t, p.stderr.String(), "\nhint: set SSL_CERT_FILE to the ca.crt that signed the certificate at "+stranger.URL)
	}
}

func TestDevFailsBeforeItBegins(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for want, flags := range map[string][]string{
		"--metrics takes another":         {"--metrics", taken.Addr().String()},
		"hint: --tls-cert is a chain in ": {"--tls-cert", "missing.pem", "--tls-key", "missing.pem"},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		p := start(append([]string{"dev", "--listen", "127.0.0.1:0", "--writer-listen", "127.0.0.1:0", "--data", dir}, flags...)...)
		require.Equal(t, exitFailure, <-p.ended)
		require.Contains(t, p.stderr.String(), want)
		require.NoDirExists(t, dir, "nothing was begun")
	}
}

func TestAnAddressOfEveryInterfaceIsPrintedAsOneToAsk(t *testing.T) {
	everywhere := &net.TCPAddr{IP: net.IPv6unspecified, Port: 8080}
	require.Equal(t, "http://127.0.0.1:8080", (&edgeFlags{}).docsURL(everywhere))
	require.Equal(t, "https://127.0.0.1:8080", (&edgeFlags{TLSCert: "chain.pem", TLSKey: "key.pem"}).docsURL(everywhere))
	require.True(t, (&edgeFlags{}).needsDocsURL(everywhere))
	require.False(t, (&edgeFlags{DocsURL: "https://docs.example"}).needsDocsURL(everywhere))
	loopback := &net.TCPAddr{IP: net.IPv6loopback, Port: 8080}
	require.Equal(t, "http://[::1]:8080", (&edgeFlags{}).docsURL(loopback))
	require.False(t, (&edgeFlags{}).needsDocsURL(loopback))
}

func TestATableIsNotSteeredByWhatItShows(t *testing.T) {
	for text, want := range map[string]string{
		"Söhne & \"Co\"": "Söhne & \"Co\"", "ന്\u200d": "ന്\u200d", "\x1b[2J": `"\x1b[2J"`, "a\tb": `"a\tb"`, "a\u202eb": `"a\u202eb"`, "": "",
	} {
		require.Equal(t, want, shown(text))
	}
}

func TestSeenTellsARestartFromNever(t *testing.T) {
	require.Equal(t, "never", seen(writer.Node{}))
	require.Equal(t, "before the writer's start", seen(writer.Node{Epoch: 1}))
	require.Equal(t, "2026-11-22T10:00:00Z", seen(writer.Node{Epoch: 3, Seen: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}))
}

// TestCookiesAreSecureBehindAProxyWithTLS: people reach the pages over TLS, though
// the writer does not speak it.
func TestCookiesAreSecureBehindAProxyWithTLS(t *testing.T) {
	for secure, flags := range map[bool][]string{true: {"--behind-tls"}, false: nil} {
		c := startCentre(t, flags...)
		response, err := http.Get(c.url() + "/sign-in")
		require.NoError(t, err)
		response.Body.Close()
		require.Len(t, response.Cookies(), 1)
		require.Equal(t, secure, response.Cookies()[0].Secure)
		require.Equal(t, secure, strings.HasPrefix(response.Cookies()[0].Name, "__Host-"))
	}
}

// TestAWriterThatHangsIsExplained: "deadline exceeded" alone says nobody what to do.
func TestAWriterThatHangsIsExplained(t *testing.T) {
	o := &operator{Writer: "http://127.0.0.1:8081/"}
	late := &url.Error{Op: "Get", URL: o.Writer, Err: context.DeadlineExceeded}
	require.Contains(t, hint.Of(o.explain(late)), "curl http://127.0.0.1:8081/readyz")
	late.Err = &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	require.Contains(t, hint.Of(o.explain(late)), "no machine answers there")
	late.Err = io.EOF
	require.Contains(t, hint.Of(o.explain(late)), "run the command again. Else is it another service", "as a writer that is stopping ends it")
	late.Err = errors.New("malformed HTTP response")
	require.Contains(t, hint.Of(o.explain(late)), "does not answer as a writer does: is it another service")
}

// TestANameServerThatHangsIsExplained: neither the writer nor the registry was
// asked, and the name may be right.
func TestANameServerThatHangsIsExplained(t *testing.T) {
	o := &operator{Writer: "http://centre.example:8081"}
	p := &pushFlags{Registry: "http://centre.example:8181"}
	s := &statusCommand{Registry: p.Registry}
	for want, name := range map[string]*net.DNSError{
		"the name servers of this machine do not say what centre.example is": {Name: "centre.example", Err: "i/o timeout", IsTimeout: true},
		"there is no machine of the name centre.example":                     {Name: "centre.example", Err: "no such host", IsNotFound: true},
	} {
		err := &url.Error{Op: "Get", URL: o.Writer, Err: &net.OpError{Op: "dial", Err: name}}
		for _, explained := range []error{o.explain(err), p.explain(err), s.explainRegistry(err)} {
			require.Contains(t, hint.Of(explained), want)
		}
	}
}

// TestACertificateThatHasEndedIsExplained: neither is it another service, nor does it lack TLS.
func TestACertificateThatHasEndedIsExplained(t *testing.T) {
	o := &operator{Writer: "https://centre.example:8081"}
	p := &pushFlags{Registry: "https://centre.example:8181"}
	ended := &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time is after"}}
	err := &url.Error{Op: "Get", URL: o.Writer, Err: ended}
	s := &statusCommand{Registry: p.Registry}
	for address, list := range map[string][]error{o.Writer: {o.explain(err)}, p.Registry: {p.explain(err), s.explainRegistry(err)}} {
		for _, explained := range list {
			require.Contains(t, hint.Of(explained), "the certificate at "+address+", or that of its authority, has ended or begins later")
			require.Contains(t, hint.Of(explained), "this machine's clock")
		}
	}
}

// TestAFileSteersNoTerminal, neither by its header in an error nor by a value in the report.
func TestAFileSteersNoTerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "companies.csv")
	for _, text := range []string{
		"CIN,\x1b[31mred\x07,COMPANY_NAME\nU1,2,3\n",
		"CORPORATE_IDENTIFICATION_NUMBER,COMPANY_NAME,COMPANY_STATUS\nU00001GA2020PTC900000,A,Active\nXX\x1b[31m,B,Active\n",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, said := ran("import", "--registry", filepath.Join(t.TempDir(), "registry.db"), "--as-of", "2025-01-01", file)
		require.NotContains(t, said, "\x1b")
		require.Contains(t, said, "\ufffd[31m")
		require.Greater(t, strings.Count(said, "\n"), 0)
	}
}

// TestALogOfErrorsHasWarnings too: a replica that does not follow is one. It has no requests.
func TestALogOfErrorsHasWarnings(t *testing.T) {
	var out bytes.Buffer
	var closers service.Closers
	log, _ := (&edgeFlags{Log: "errors"}).logger(&Main{Stderr: &out}, false, &closers)
	log.Info("request")
	log.Warn("reading the replica's endpoint")
	require.NoError(t, closers.Close())
	require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
	require.Contains(t, out.String(), "reading the replica's endpoint")
}

// TestALimitOfAddressesIsNamed: it ended in a panic of SQLite. Other panics stay what they are.
func TestALimitOfAddressesIsNamed(t *testing.T) {
	err := explainMemory(func() error { panic(fmt.Errorf("mmap: %w", syscall.ENOMEM)) })
	require.EqualError(t, err, "open a database: mmap: cannot allocate memory")
	require.Contains(t, hint.Of(err), "ulimit -v unlimited")
	require.PanicsWithValue(t, "a bug", func() { _ = explainMemory(func() error { panic("a bug") }) })
	require.PanicsWithError(t, "another", func() { _ = explainMemory(func() error { panic(errors.New("another")) }) })
	require.NoError(t, explainMemory(func() error { return nil }))
}
