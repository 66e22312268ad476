package cli

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/host/service"
	"regedge/replicate/metering/writer"
)

// TestNoServiceRunsBesideSigningKeys starts each service with a file of the trust directory itself.
func TestNoServiceRunsBesideSigningKeys(t *testing.T) {
	dir := t.TempDir()
	made, err := pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	cert, key, err := made.Certificate("machine", "127.0.0.1")
	require.NoError(t, err)
	tls := []string{"--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--token", operatorToken}
	writerFiles := []string{"--database", filepath.Join(dir, "ledger.db"), "--access", filepath.Join(dir, "access.db")}
	edge := []string{"--writer", "http://127.0.0.1:1", "--state", filepath.Join(dir, "state")}
	databases := []string{"--registry", filepath.Join(dir, "registry.db"), "--access", filepath.Join(dir, "access.db")}
	plain := []string{"--listen", "127.0.0.1:0", "--token", operatorToken}
	secret := filepath.Join(dir, "trust", "token")
	mailFlags := []string{"--smtp-host", "127.0.0.1:1", "--smtp-from", "notices@example.org", "--smtp-user", "notices", "--dashboard-url", "http://127.0.0.1:1"}
	onlyKey := append(slices.Clone(plain), "--tls-cert", filepath.Join(t.TempDir(), "machine.crt"), "--tls-key", key)
	for command, flags := range map[string][]string{
		"writer":                                 append(writerFiles, tls...),
		"edge":                                   slices.Concat(edge, databases, tls),
		"writer with only its key there":         slices.Concat(writerFiles, onlyKey),
		"edge with only its key there":           slices.Concat(edge, databases, onlyKey),
		"writer with its own token there":        slices.Concat(writerFiles, plain[:2], []string{"--token-file", secret}),
		"writer with the access token there":     slices.Concat(writerFiles, plain, []string{"--access-token-file", secret}),
		"edge with its own token there":          slices.Concat(edge, databases, plain[:2], []string{"--token-file", secret}),
		"meter with its own token there":         slices.Concat(edge, plain[:2], []string{"--meter-token", "meter-token-of-tests", "--token-file", secret}),
		"writer with the ledger's token there":   slices.Concat(writerFiles, plain, []string{"--database-token-file", secret}),
		"writer with the registry's token there": slices.Concat(writerFiles, plain, []string{"--registry-token-file", secret}),
		"writer with the mail password there":    slices.Concat(writerFiles, plain, mailFlags, []string{"--smtp-password-file", secret}),
		"edge with the registry's token there":   slices.Concat(edge, databases, plain, []string{"--registry-token-file", secret}),
		"edge with the access token there":       slices.Concat(edge, databases, plain, []string{"--access-token-file", secret}),
		"meter with its token there":             slices.Concat(edge, plain, []string{"--meter-token-file", secret}),
		"meter":                                  append(append(edge, "--meter-token", "meter-token-of-tests"), tls...),
		"replica": {"--dir", filepath.Join(dir, "replica"), "--listen", "127.0.0.1:1", "--primary", "http://127.0.0.1:1",
			"--jwt-key", made.ReplicaKeyFile("access"), "--sqld", os.Args[0]},
		"primary": {"--dir", filepath.Join(dir, "primary"), "--listen", "127.0.0.1:1", "--replication", "127.0.0.1:1",
			"--jwt-key", made.PrimaryKeyFile("access"), "--sqld", os.Args[0], "--tls-ca", made.AuthorityFile(), "--tls-cert", cert, "--tls-key", key},
	} {
		t.Run(command, func(t *testing.T) {
			command, _, _ := strings.Cut(command, " ")
			p := start(append([]string{command}, flags...)...)
			t.Cleanup(func() { p.halt() })
			require.Equal(t, exitFailure, <-p.ended, p.stderr.String())
			p.ended <- exitFailure
			require.Contains(t, p.stderr.String(), "which signs tokens or certificates\nhint: run it as a user of its own")
		})
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing was begun")
}

// putAwaySigningKeys leaves in a trust directory what services may read.
func putAwaySigningKeys(t *testing.T, trust string) {
	t.Helper()
	for _, name := range pki.SigningKeys {
		require.NoError(t, os.Remove(filepath.Join(trust, name)))
	}
}

// TestATokenEndsAfterItsLife, and without one when the keys are replaced: a token that was meant to end could be read for ever.
func TestATokenEndsAfterItsLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	run := func(args ...string) string {
		t.Helper()
		p := start(append(args, "--trust", dir)...)
		require.Equal(t, exitOK, <-p.ended, p.stderr.String())
		return strings.TrimSpace(p.stdout.String())
	}
	run("trust", "init")
	for _, right := range [][]string{nil, {"--read-only"}} {
		args := append([]string{"trust", "token", "access"}, right...)
		_, has := pki.Ends(run(args...))
		require.False(t, has, right)
		before := time.Now()
		ends, has := pki.Ends(run(append(args, "--life", "36h")...))
		require.True(t, has, right)
		require.WithinRange(t, ends, before.Add(36*time.Hour).Truncate(time.Second), time.Now().Add(36*time.Hour))
	}
}

// TestANewNodeIsOneDocument for programs, with what its edge needs. What can't be made costs nobody the node's token, which is
// shown once.
func TestANewNodeIsOneDocument(t *testing.T) {
	c := startCentre(t)
	dir := filepath.Join(t.TempDir(), "trust")
	require.Equal(t, exitOK, <-start("trust", "init", "--trust", dir).ended)
	add := func(name string, want int) (made map[string]any) {
		p := start("node", "add", name, "--json", "--trust", dir, "--writer", c.url(), "--token", operatorToken)
		require.Equal(t, want, <-p.ended, p.stderr.String())
		require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &made), p.stdout.String())
		require.Equal(t, name, made["name"])
		require.Contains(t, made["token"], "reg_node_")
		return made
	}
	made := add("mumbai", exitOK)
	for database, key := range made["jwt_keys"].(map[string]any) {
		good, err := pki.Verifier(key.(string), time.Now)
		require.NoError(t, err)
		token := made["read_tokens"].(map[string]any)[database].(string)
		require.True(t, good(token), database)
		ends, has := pki.Ends(token)
		require.True(t, has, database)
		require.WithinDuration(t, time.Now().Add(30*24*time.Hour), ends, time.Hour, "as is said of it")
	}
	require.Len(t, made["read_tokens"], 2)
	for _, file := range []string{"tls_ca", "tls_cert", "tls_key"} {
		require.FileExists(t, made[file].(string))
	}
	text := start("node", "add", "pune", "--trust", dir, "--writer", c.url(), "--token", operatorToken)
	require.Equal(t, exitOK, <-text.ended, text.stderr.String())
	require.Regexp(t, `(?m)^reg_node_\w+$[^$]*^registry  ey\S+$\n^access    ey\S+$[^$]*^--tls-ca \S+ --tls-cert \S+/edge-pune.crt --tls-key `, text.stdout.String(), "as scripts read it")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "edge-delhi.key"), 0o700)) // in its place
	require.NotContains(t, add("delhi", exitFailure), "read_tokens")
}

// TestARenewalOfNothingIsAnEmptyList for programs, which go through it.
func TestARenewalOfNothingIsAnEmptyList(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	require.Equal(t, exitOK, <-start("trust", "init", "--trust", dir).ended)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		io.WriteString(w, `{"data":[{"name":"gone","retired":true}]}`)
	}))
	defer server.Close()
	p := start("trust", "renew", "--json", "--trust", dir, "--writer", server.URL, "--token", "a token")
	require.Equal(t, exitOK, <-p.ended, p.stderr.String())
	require.Equal(t, "[]\n", p.stdout.String())
}

// TestOneNodeThatCanNotBeRenewedKeepsNoOtherFromItsTokens: theirs would end, and each edge would read no replica any more. Who
// runs it is told which, and that it failed; a node that was retired meanwhile needs none, and a writer that is busy is asked again.
func TestOneNodeThatCanNotBeRenewedKeepsNoOtherFromItsTokens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	require.Equal(t, exitOK, <-start("trust", "init", "--trust", dir).ended)
	answers := map[string]string{
		"bad": `{"status":500,"code":"internal","detail":"internal error of the writer"}`, "gone": `{"status":409,"code":"retired","detail":"retired"}`,
		"worse": `{"status":403,"code":"forbidden","detail":"not this one"}`,
	}
	busy := true // when it is first asked about east
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		if busy && strings.Contains(r.URL.Path, "/east/") {
			busy = false
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"status":503,"code":"unavailable","detail":"the ledger is busy"}`)
			return
		}
		if r.Method == http.MethodGet {
			io.WriteString(w, `{"data":[{"name":"bad"},{"name":"east"},{"name":"gone"},{"name":"worse"},{"name":"west"}]}`)
			return
		}
		if problem := answers[strings.Split(r.URL.Path, "/")[3]]; problem != "" {
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, problem)
			return
		}
		io.WriteString(w, "{}")
	}))
	defer server.Close()
	renew := func() *program {
		p := start("trust", "renew", "--json", "--trust", dir, "--writer", server.URL, "--token", "a token")
		require.Equal(t, exitFailure, <-p.ended)
		return p
	}
	p := renew()
	var renewed []writer.Node
	require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &renewed))
	require.Equal(t, []writer.Node{{Name: "east"}, {Name: "west"}}, renewed)
	require.Contains(t, p.stderr.String(), "2 of 5 nodes have no new tokens:\nrenew the tokens of bad: ")
	require.Contains(t, p.stderr.String(), "renew the tokens of worse: pass tokens on: not this one\nhint: ")

	answers["east"], answers["west"], answers["worse"] = answers["gone"], answers["gone"], answers["gone"]
	p = renew()
	require.Empty(t, p.stdout.String())
	require.Contains(t, p.stderr.String(), "regedge: renew the tokens of bad: ")
}

// TestAWriterThatStaysAwayIsWaitedForOnce, and not again for each node.
func TestAWriterThatStaysAwayIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	made, err := pki.Create(filepath.Join(t.TempDir(), "trust"), time.Now)
	require.NoError(t, err)
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[strings.Split(r.URL.Path, "/")[3]]++
		w.Header().Set(writer.RequestIDHeader, "R")
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"status":503,"code":"unavailable","detail":"the ledger is busy"}`)
	}))
	defer server.Close()
	client := writer.NewClient(server.URL, "a token", nil)
	patient := client.Retrying(1900*time.Millisecond, func(error, time.Duration) {})
	_, err = (&trustRenew{Life: time.Hour}).renewAll(t.Context(), patient, client, made, []writer.Node{{Name: "east"}, {Name: "north"}, {Name: "west"}})
	require.ErrorContains(t, err, "3 of 3 nodes have no new tokens")
	require.GreaterOrEqual(t, asked["east"], 2)
	delete(asked, "east")
	require.Equal(t, map[string]int{"north": 1, "west": 1}, asked)
}

// TestWhatSqldCouldNotReadIsNamed before it is started: its own error does not.
func TestWhatSqldCouldNotReadIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct {
		key   string
		flags sqldFlags
	}{{missing, sqldFlags{}}, {"", sqldFlags{CA: missing}}, {"", sqldFlags{Cert: missing}}, {"", sqldFlags{Key: missing}}} {
		c.flags.Sqld = os.Args[0]
		_, err := c.flags.program(c.key)
		require.ErrorContains(t, err, missing, "%+v", c)
	}
}

// TestRenewedTokensAreGoodForAsLongAsAsked, at replicas.
func TestRenewedTokensAreGoodForAsLongAsAsked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	require.Equal(t, exitOK, <-start("trust", "init", "--trust", dir).ended)
	passed := writer.ReportAnswer{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		if r.Method == http.MethodPut {
			assert.NoError(t, json.NewDecoder(r.Body).Decode(&passed))
		}
		io.WriteString(w, `{"data":[{"name":"mumbai"}]}`)
	}))
	defer server.Close()
	before := time.Now()
	p := start("trust", "renew", "--life", "36h", "--trust", dir, "--writer", server.URL, "--token", "a token")
	require.Equal(t, exitOK, <-p.ended, p.stderr.String())
	require.Len(t, passed.ReadTokens, 2)
	for database, token := range passed.ReadTokens {
		ends, has := pki.Ends(token)
		require.True(t, has, database)
		require.WithinDuration(t, before.Add(36*time.Hour), ends, time.Minute)
		good, err := pki.Verifier(filepath.Join(dir, database+"-replica.pub"), time.Now)
		require.NoError(t, err)
		require.True(t, good(token), "%s: it is for replicas", database)
	}
	require.Contains(t, p.stdout.String(), "mumbai")
}

// TestAnAccessDatabaseHasItsHeartbeatWithoutARegistry: edges would have no age of it, and refuse every live key.
func TestAnAccessDatabaseHasItsHeartbeatWithoutARegistry(t *testing.T) {
	for address, want := range map[string]int{"http://127.0.0.1:8282": 1, "access.db": 0} {
		services, err := (&heartbeatFlags{}).heartbeats(&accessFlags{Access: address}, nil, &Main{Now: time.Now}, new(writer.Writer), slog.New(slog.DiscardHandler), new(service.Closers))
		require.NoError(t, err)
		require.Len(t, services, want, address)
	}
}
