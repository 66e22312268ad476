package cli

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/writer"
	"regedge/schema/sample"
)

const operatorToken = "operator-token-of-the-tests"

// centre is a writer of its own, with what an edge needs.
type centre struct {
	*program
	dir    string
	client *writer.Client
}

func (c *centre) path(name string) string { return filepath.Join(c.dir, name) }

func startCentre(t *testing.T, flags ...string) *centre {
	t.Helper()
	c := &centre{dir: t.TempDir()}
	c.program = start(append([]string{
		"writer", "--listen", "127.0.0.1:0", "--token", operatorToken,
		"--database", c.path("ledger.db"), "--access", c.path("access.db"),
	}, flags...)...)
	t.Cleanup(func() { c.halt() })
	require.True(t, c.await(func() bool { return c.addr("writer") != "" }), c.stderr.String())
	c.client = writer.NewClient(c.url(), operatorToken, nil)
	_, err := sample.Import(t.Context(), c.path("registry.db"), time.Now)
	require.NoError(t, err)
	return c
}

func (c *centre) url() string { return "http://" + c.addr("writer") }

// account makes an account with credits, and a key.
func (c *centre) account(t *testing.T, credits int64) (id int64, key string) {
	t.Helper()
	account, err := c.client.AddAccount(t.Context(), "Acme", "", "scale")
	require.NoError(t, err)
	_, err = c.client.ChangeCredits(t.Context(), account.ID, writer.CreditChange{Amount: credits})
	require.NoError(t, err)
	made, err := c.client.AddKey(t.Context(), account.ID, "")
	require.NoError(t, err)
	return account.ID, made.Secret
}

// edge starts an edge node named name, and waits until it is ready.
func (c *centre) edge(t *testing.T, name string, flags ...string) *program {
	t.Helper()
	node, err := c.client.AddNode(t.Context(), name)
	require.NoError(t, err)
	return c.edgeWith(t, name, node.Token, flags...)
}

func (c *centre) edgeWith(t *testing.T, name, token string, flags ...string) *program {
	t.Helper()
	tokenFile := c.path(name + ".token")
	require.NoError(t, os.WriteFile(tokenFile, []byte(token+"\n"), 0o600))
	p := start(append([]string{
		"edge", "--listen", "127.0.0.1:0", "--registry", c.path("registry.db"), "--access", c.path("access.db"),
		"--writer", c.url(), "--state", c.path(name), "--token-file", tokenFile,
	}, flags...)...)
	t.Cleanup(func() { p.halt() })
	require.True(t, p.await(func() bool { return p.status("/readyz", "") == 200 }), p.stderr.String())
	return p
}

// fetch asks the program's lookups.
func (p *program) fetch(path, key string) (*http.Response, string, error) {
	request, err := http.NewRequest("GET", "http://"+p.addr("lookups")+path, nil)
	if err != nil {
		return nil, "", err
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, string(body), err
}

// status is the status of a path, 0 while nothing answers.
func (p *program) status(path, key string) int {
	if p.addr("lookups") == "" {
		return 0
	}
	response, _, err := p.fetch(path, key)
	if err != nil {
		return 0
	}
	return response.StatusCode
}

// heard is the status of a path once it is another than 503: a lookup waits for the writer a second, which a busy machine
// may need for something else.
func (p *program) heard(path, key string) (status int) {
	p.await(func() bool {
		status = p.status(path, key)
		return status != http.StatusServiceUnavailable
	})
	return status
}

const company = "/v1/companies/" + sampletest.CompanyEveryField

func TestAnEdgeServesOnBothEngines(t *testing.T) {
	c := startCentre(t)
	_, key := c.account(t, 100)
	bodies := map[string]string{}
	for _, engine := range []string{"wazero", "native"} {
		p := c.edge(t, engine, "--engine", engine, "--metrics", "127.0.0.1:0")
		var response *http.Response
		var body string
		var err error
		p.await(func() bool { // see heard
			response, body, err = p.fetch(company, key)
			return err != nil || response.StatusCode != http.StatusServiceUnavailable
		})
		require.NoError(t, err)
		require.Equal(t, 200, response.StatusCode, body)
		require.NotEmpty(t, response.Header["Ratelimit-Limit"], "%v", response.Header)
		require.NotEmpty(t, response.Header.Get("X-Registry-Release"))
		bodies[engine], _, _ = strings.Cut(body, `"meta"`)

		response, err = http.Get("http://" + p.addr("metrics") + "/metrics")
		require.NoError(t, err)
		metrics, err := io.ReadAll(response.Body)
		response.Body.Close()
		require.NoError(t, err)
		require.Contains(t, string(metrics), `regedge_requests_total{route="/v1/companies/{cin}",status="200"} 1`)
		require.Equal(t, exitOK, p.halt(), p.stderr.String())
		require.NotContains(t, p.stderr.String(), key)
		require.NotContains(t, p.stderr.String(), sampletest.CompanyEveryField)
	}
	require.Equal(t, bodies["native"], bodies["wazero"])
}

func TestAProblemLeadsToItsPage(t *testing.T) {
	p := startCentre(t).edge(t, "one")
	_, body, err := p.fetch("/v1/companies/x", ident.SandboxKey)
	require.NoError(t, err)
	var problem struct{ Type, Code string }
	require.NoError(t, json.Unmarshal([]byte(body), &problem))
	require.Equal(t, "http://"+p.addr("lookups")+"/problems/"+problem.Code, problem.Type)
	response, err := http.Get(problem.Type)
	require.NoError(t, err)
	page, err := io.ReadAll(response.Body)
	response.Body.Close()
	require.NoError(t, err)
	require.Equal(t, 200, response.StatusCode)
	require.Contains(t, string(page), problem.Code)
	require.Contains(t, response.Header.Get("Content-Security-Policy"), "default-src 'none'")
	for _, path := range []string{"/", "/reference", "/openapi.yaml", "/healthz"} {
		require.Equal(t, 200, p.status(path, ""), path)
	}
}

func TestTLSAndProxiesByFlag(t *testing.T) {
	c := startCentre(t)
	certFile, keyFile, roots := certificate(t)
	p := c.edge(t, "one", "--trusted-proxy", "127.0.0.0/8", "--docs-url", "https://docs.example/")
	request, err := http.NewRequest("GET", "http://"+p.addr("lookups")+company, nil)
	require.NoError(t, err)
	request.Header.Set("X-Forwarded-For", "203.0.113.9")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	require.NoError(t, err)
	require.Contains(t, string(body), "https://docs.example/problems/missing_api_key")
	require.Equal(t, exitOK, p.halt(), p.stderr.String())
	require.Contains(t, p.stderr.String(), `"client":"203.0.113.9"`)

	node, err := c.client.AddNode(t.Context(), "two")
	require.NoError(t, err)
	secure := start("edge", "--listen", "127.0.0.1:0", "--registry", c.path("registry.db"), "--access", c.path("access.db"),
		"--writer", c.url(), "--state", c.path("two"), "--token", node.Token, "--tls-cert", certFile, "--tls-key", keyFile)
	t.Cleanup(func() { secure.halt() })
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	require.True(t, secure.await(func() bool {
		response, err := client.Get("https://" + secure.addr("lookups") + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == 200
	}), secure.stderr.String())
}

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	donor := httptest.NewTLSServer(nil)
	defer donor.Close()
	pair := donor.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	require.NoError(t, os.WriteFile(certFile, chain, 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	roots = x509.NewCertPool()
	roots.AddCert(donor.Certificate())
	return certFile, keyFile, roots
}

func TestChargesOutliveTheEdge(t *testing.T) {
	c := startCentre(t)
	account, key := c.account(t, 10)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	for range 2 {
		p := c.edgeWith(t, "one", node.Token)
		for range 3 {
			require.Equal(t, 200, p.heard(company, key))
		}
		require.Equal(t, exitOK, p.halt(), p.stderr.String())
	}
	p := c.edgeWith(t, "one", node.Token)
	require.Equal(t, 404, p.heard("/v1/companies/"+sampletest.CompanyNotHeld, key))
	require.Eventually(t, func() bool {
		now, err := c.client.Account(t.Context(), account)
		return err == nil && now.Spent == 6
	}, time.Minute, 10*time.Millisecond)
}

func TestTwoProcessesCannotShareAState(t *testing.T) {
	c := startCentre(t)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	c.edgeWith(t, "one", node.Token)
	second := start("edge", "--listen", "127.0.0.1:0", "--registry", c.path("registry.db"), "--access", c.path("access.db"),
		"--writer", c.url(), "--state", c.path("one"), "--token", node.Token)
	require.Equal(t, exitFailure, <-second.ended)
	require.Contains(t, second.stderr.String(), "hint: another regedge runs on")
}

func TestTheSandboxKeyWorksWithoutAWriter(t *testing.T) {
	c := startCentre(t)
	p := c.edge(t, "one")
	_, key := c.account(t, 10)
	made := time.Now()
	require.Equal(t, exitOK, c.halt(), c.stderr.String())
	require.Equal(t, 200, p.status(company, ident.SandboxKey))
	answered, asked := 401, made
	for answered == 401 && asked.Sub(made) < 2*time.Second { // G8: a key is known everywhere
		asked = time.Now()
		answered = p.status(company, key)
	}
	require.Equal(t, 503, answered, "no lease was held: not free, and no untrue 402")
}

func TestTheMeterServesAComponentElsewhere(t *testing.T) {
	c := startCentre(t)
	account, _ := c.account(t, 5)
	node, err := c.client.AddNode(t.Context(), "spin")
	require.NoError(t, err)
	secret := c.path("meter.token")
	require.NoError(t, os.WriteFile(secret, []byte("a-secret-of-the-component\n"), 0o600))
	p := start("meter", "--listen", "127.0.0.1:0", "--writer", c.url(), "--state", c.path("spin"),
		"--token", node.Token, "--meter-token", "another-secret", "--meter-token-file", secret)
	t.Cleanup(func() { p.halt() })
	require.True(t, p.await(func() bool { return p.addr("meter") != "" }), p.stderr.String())
	request := charge.Request{
		ID: "one", Account: account, Key: 1, PerMinute: 60, Endpoint: charge.Companies, Outcome: charge.Found,
	}
	verdict := func(token string) int {
		ask, err := http.NewRequest("POST", "http://"+p.addr("meter")+request.Target(), bytes.NewReader(nil))
		require.NoError(t, err)
		ask.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(ask)
		require.NoError(t, err)
		response.Body.Close()
		if response.StatusCode == 200 {
			require.Equal(t, "4", response.Header.Get(charge.HeaderCreditsRemaining))
		}
		return response.StatusCode
	}
	require.Equal(t, 401, verdict("another-secret"))
	require.Eventually(t, func() bool { return verdict("a-secret-of-the-component") == 200 }, time.Minute, 50*time.Millisecond)
	require.Equal(t, exitOK, p.halt(), p.stderr.String())
}

func TestDevsPagesLinkToItsDashboard(t *testing.T) {
	p := startDev(filepath.Join(t.TempDir(), "data"))
	t.Cleanup(func() { p.halt() })
	require.True(t, p.await(p.greeted), p.stderr.String())
	require.True(t, p.await(func() bool { return p.status("/readyz", "") == 200 }), p.stderr.String())
	_, page, err := p.fetch("/", "")
	require.NoError(t, err)
	require.Contains(t, page, `<a href="http://`+p.addr("writer")+`">Dashboard</a>`)
}

func TestASecondDevOnTheSameDirectoryIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := startDev(dir)
	t.Cleanup(func() { first.halt() })
	require.True(t, first.await(first.greeted), first.stderr.String())
	second := startDev(dir)
	require.Equal(t, exitFailure, <-second.ended)
	require.Contains(t, second.stderr.String(), "hint: another regedge runs on")
	require.True(t, first.await(func() bool { return first.status("/readyz", "") == 200 }), "the first one goes on")
}
