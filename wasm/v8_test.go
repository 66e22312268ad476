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
	"regedge/schema"
)

// The service's own host answers for the meter at once, in its process. Here the guest
// runs on V8 (testdata/jco) and meets a meter across HTTP, which may be silent or broken.

const v8Dir = "../testdata/jco"

// mood is how a scripted meter treats one charge call.
type mood int

const (
	answers mood = iota
	staysSilent
	breaksOff
	talksNonsense
)

// scriptedMeter treats its charge calls by its script, in order, and notes every call.
type scriptedMeter struct {
	mu      sync.Mutex
	script  []mood
	calls   []call
	release chan struct{} // closed when silent calls end
}

type call struct{ path, id, authorization string }

func (m *scriptedMeter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "not a meter's call", http.StatusMethodNotAllowed)
		return
	}
	switch m.next(r) {
	case staysSilent:
		<-m.release
	case breaksOff:
		panic(http.ErrAbortHandler)
	case talksNonsense:
		w.WriteHeader(http.StatusPaymentRequired)
	case answers:
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

// next notes a call and takes its mood off the script; voids are always answered.
func (m *scriptedMeter) next(r *http.Request) mood {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, call{r.URL.Path, r.URL.Query().Get("id"), r.Header.Get("Authorization")})
	if r.URL.Path == charge.VoidPath || len(m.script) == 0 {
		return answers
	}
	next := m.script[0]
	m.script = m.script[1:]
	return next
}

// begin starts another script and forgets the calls before it.
func (m *scriptedMeter) begin(script []mood) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script, m.calls = script, nil
}

func (m *scriptedMeter) noted() []call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

func TestGuestSettlesWithAMeterAcrossHTTP(t *testing.T) {
	meter := &scriptedMeter{release: make(chan struct{})}
	server := httptest.NewServer(meter)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(meter.release) })
	address := startV8(t, server.URL)

	for _, test := range []struct {
		name   string
		script []mood
		status int
		code   string
		paths  []string
	}{
		{"an answer counts", []mood{answers},
			404, "company_not_found", []string{charge.ChargePath}},
		{"a call that broke off is made again", []mood{breaksOff, answers},
			404, "company_not_found", []string{charge.ChargePath, charge.ChargePath}},
		{"silence is given up, and the charge voided", []mood{staysSilent, staysSilent},
			503, "metering_unavailable", []string{charge.ChargePath, charge.ChargePath, charge.VoidPath}},
		{"an answer outside the contract is none", []mood{talksNonsense, talksNonsense},
			503, "metering_unavailable", []string{charge.ChargePath, charge.ChargePath, charge.VoidPath}},
	} {
		t.Run(test.name, func(t *testing.T) {
			meter.begin(test.script)
			status, problem := ask(t, address)
			require.Equal(t, test.status, status)
			require.Equal(t, test.code, problem.Code)
			var paths []string
			for _, c := range meter.noted() {
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

// ask looks up a company that is not held, with the sandbox key.
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
		t.Skip("skipped: the component on V8 needs node on PATH")
	}
	if _, err := os.Stat(filepath.Join(v8Dir, "node_modules")); err != nil {
		t.Skip("skipped: the component on V8 needs its npm packages: run npm ci in testdata/jco")
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
	db, err := schema.OpenFile(path, false)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(context.Background(), db, database))
	require.NoError(t, db.Close())
	return path
}
