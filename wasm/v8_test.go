package wasm_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/internal/testkit"
	"regedge/schema"
)

// The service's own host answers meter calls at once, within its process. Here the guest runs on
// V8 (testdata/jco) and calls a meter by HTTP, which may time out or fail.

const v8Dir = "../testdata/jco"

// reaction is what a scripted meter does with one charge call.
type reaction int

const (
	succeed reaction = iota
	timeOut
	disconnect
	breakContract
)

// scriptedMeter reacts to its charge calls by its script, in order, and records every call.
type scriptedMeter struct {
	mu      sync.Mutex
	script  []reaction
	calls   []call
	release chan struct{} // closed at the end of calls that time out
}

type call struct{ path, id, authorization string }

func (m *scriptedMeter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "not a call of the meter's contract", http.StatusMethodNotAllowed)
		return
	}
	switch m.next(r) {
	case timeOut:
		<-m.release
	case disconnect:
		panic(http.ErrAbortHandler)
	case breakContract:
		w.WriteHeader(http.StatusPaymentRequired)
	case succeed:
		if r.URL.Path == charge.VoidPath {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		verdict := charge.Verdict{RateLimit: 30, RateRemaining: 29, RateReset: 12,
			CreditsRemaining: charge.Unsent, RetryAfter: charge.Unsent}
		verdict.Headers(w.Header().Set)
		w.WriteHeader(http.StatusOK)
	}
}

// next records a call and returns the reaction to it. Voids always succeed.
func (m *scriptedMeter) next(r *http.Request) reaction {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, call{r.URL.Path, r.URL.Query().Get("id"), r.Header.Get("Authorization")})
	if r.URL.Path == charge.VoidPath || len(m.script) == 0 {
		return succeed
	}
	next := m.script[0]
	m.script = m.script[1:]
	return next
}

// begin starts another script and discards the recorded calls.
func (m *scriptedMeter) begin(script []reaction) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script, m.calls = script, nil
}

func (m *scriptedMeter) recorded() []call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

func TestGuestCallsAMeterByHTTP(t *testing.T) {
	meter := &scriptedMeter{release: make(chan struct{})}
	server := httptest.NewServer(meter)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(meter.release) })
	address := startV8(t, server.URL)

	for _, test := range []struct {
		name   string
		script []reaction
		status int
		code   string
		paths  []string
	}{
		{"an answer is used", []reaction{succeed},
			404, "company_not_found", []string{charge.ChargePath}},
		{"a call that failed is retried", []reaction{disconnect, succeed},
			404, "company_not_found", []string{charge.ChargePath, charge.ChargePath}},
		{"after two timeouts the charge is voided", []reaction{timeOut, timeOut},
			503, "metering_unavailable", []string{charge.ChargePath, charge.ChargePath, charge.VoidPath}},
		{"an answer that breaks the contract is a failure", []reaction{breakContract, breakContract},
			503, "metering_unavailable", []string{charge.ChargePath, charge.ChargePath, charge.VoidPath}},
	} {
		t.Run(test.name, func(t *testing.T) {
			meter.begin(test.script)
			status, problem := ask(t, address)
			require.Equal(t, test.status, status)
			require.Equal(t, test.code, problem.Code)
			var paths []string
			for _, c := range meter.recorded() {
				paths = append(paths, c.path)
				require.Equal(t, problem.RequestID, c.id, "every call is for the same request")
				require.Equal(t, "Bearer "+v8Token, c.authorization)
			}
			require.Equal(t, test.paths, paths)
		})
	}
}

type problem struct {
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
}

// ask looks up a company that is not in the registry, with the sandbox key.
func ask(t *testing.T, address string) (status int, body problem) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+address+"/v1/companies/U74999SK2016PTC013232", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+ident.SandboxKey)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&body))
	return resp.StatusCode, body
}

const v8Token = "the-meter's-token"

// startV8 serves the component on V8 with empty databases, and returns its address.
func startV8(t *testing.T, meterURL string) (address string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		testkit.MissingTool(t, "the component on V8 needs node on PATH")
	}
	if _, err := os.Stat(filepath.Join(v8Dir, "node_modules")); err != nil {
		testkit.MissingTool(t, "the component on V8 needs its npm packages: run npm ci in testdata/jco")
	}
	command := exec.Command("node", "serve.mjs", "--component", "../../wasm/registry.wasm",
		"--access", emptyDatabase(t, schema.Access), "--registry", emptyDatabase(t, schema.Registry),
		"--meter-url", meterURL, "--meter-token", v8Token)
	command.Dir, command.Stderr = v8Dir, os.Stderr
	input, err := command.StdinPipe()
	require.NoError(t, err)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = input.Close() // ends it
		_ = command.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err, "the first line of the V8 server")
	return strings.TrimSpace(strings.TrimPrefix(line, "listening "))
}

func emptyDatabase(t *testing.T, database schema.Database) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "database.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(context.Background(), db, database))
	require.NoError(t, db.Close())
	return path
}
