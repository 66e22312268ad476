package cli

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"regedge/handler/charge"
	"regedge/internal/testkit/collector"
	"regedge/internal/testkit/sampletest"
)

const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
)

// fetchTraced is fetch with a traceparent.
func (p *program) fetchTraced(t *testing.T, path, key string, traceparents ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequest("GET", "http://"+p.addr("lookups")+path, nil)
	require.NoError(t, err)
	request.Header["Traceparent"] = traceparents
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	response.Body.Close()
	return response
}

// heardTraced is the status of fetchTraced once it is another than 503, see heard.
func (p *program) heardTraced(t *testing.T, path, key string, traceparents ...string) (status int) {
	t.Helper()
	p.await(func() bool {
		status = p.fetchTraced(t, path, key, traceparents...).StatusCode
		return status != http.StatusServiceUnavailable
	})
	return status
}

// only returns the one span of a name in the client's trace.
func only(t *testing.T, c *collector.Collector, name string) collector.Span {
	t.Helper()
	var found []collector.Span
	for _, s := range c.Named(name) {
		if s.Trace == clientTrace {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "%s in %+v", name, c.Spans())
	return found[0]
}

// TestATraceReachesFromTheClientToTheCommit looks up a company for an account without a lease, so that
// the request waits for the writer.
func TestATraceReachesFromTheClientToTheCommit(t *testing.T) {
	for engine, run := range map[string]string{"wazero": "component", "native": "native"} {
		t.Run(engine, func(t *testing.T) {
			var spans *collector.Collector
			var c *centre
			var p *program
			var response *http.Response
			var id int64
			var key string
			// A lookup waits a second for the writer, which may take longer on a busy machine.
			for attempt := 0; attempt == 0 || attempt < 3 && response.StatusCode == 503; attempt++ {
				if attempt > 0 {
					p.halt()
					c.halt()
				}
				spans = collector.Start(t)
				secret := filepath.Join(t.TempDir(), "header")
				require.NoError(t, os.WriteFile(secret, []byte("Authorization: Bearer collectors-secret\n"), 0o600))
				asked := []string{"--traces", spans.URL, "--traces-share", "0", "--traces-header-file", secret}
				c = startCentre(t, asked...)
				id, key = c.account(t, 100)
				p = c.edge(t, "one", append(asked, "--engine", engine)...)
				response = p.fetchTraced(t, company, key, "00-"+clientTrace+"-"+clientSpan+"-01")
			}
			require.Equal(t, 200, response.StatusCode)
			require.Equal(t, exitOK, p.halt(), p.stderr.String())
			c.halt() // with 1 if a client holds a connection that it has not used

			root := only(t, spans, "GET /v1/companies/{cin}")
			require.Equal(t, clientSpan, root.Parent)
			require.Equal(t, "regedge-edge", root.Service)
			require.Equal(t, tracepb.Span_SPAN_KIND_SERVER, root.Kind)
			require.Equal(t, map[string]any{
				"http.request.method": "GET", "http.route": "/v1/companies/{cin}", "http.response.status_code": int64(200),
				"url.scheme": "http", "regedge.request_id": response.Header.Get("X-Request-Id"),
				"regedge.release": response.Header.Get("X-Registry-Release"),
				"regedge.account": id, "regedge.key": root.Attributes["regedge.key"], "regedge.cost": int64(1),
			}, root.Attributes)
			answer := only(t, spans, run)
			require.Equal(t, root.ID, answer.Parent)
			for _, database := range []string{"access", "registry"} {
				statement := only(t, spans, "SELECT "+database)
				require.Equal(t, answer.ID, statement.Parent)
				require.Equal(t, map[string]any{
					"db.system.name": "sqlite", "db.namespace": database, "db.operation.name": "SELECT", "db.response.returned_rows": int64(1),
				}, statement.Attributes)
			}
			charged := only(t, spans, "charge")
			require.Equal(t, answer.ID, charged.Parent)
			require.Contains(t, charged.Events, "waits for the writer")
			requireSync(t, spans, charged)

			require.Contains(t, p.stderr.String(), `"trace_id":"`+clientTrace+`"`)
			for _, secret := range []string{key, sampletest.CompanyEveryField, "collectors-secret"} {
				require.NotContains(t, spans.Bytes(), secret)
				require.NotContains(t, p.stderr.String()+c.stderr.String(), secret)
			}
			for _, header := range spans.Headers() {
				require.Equal(t, "Bearer collectors-secret", header.Get("Authorization"))
			}
		})
	}
}

// requireSync requires a sync for a charge that waits, at the edge and at the writer, and its commit.
func requireSync(t *testing.T, spans *collector.Collector, charged collector.Span) {
	t.Helper()
	all := map[string]collector.Span{}
	for _, s := range spans.Spans() {
		all[s.ID] = s
	}
	for _, commit := range spans.Named("commit") {
		atWriter := all[commit.Parent]
		sync := all[atWriter.Parent]
		if sync.Parent != charged.ID {
			continue
		}
		require.Equal(t, "regedge-writer", commit.Service)
		require.Equal(t, "POST /v1/sync", atWriter.Name)
		require.Equal(t, "regedge-writer", atWriter.Service)
		require.Equal(t, "one", atWriter.Attributes["regedge.node"])
		require.Equal(t, tracepb.Span_SPAN_KIND_SERVER, atWriter.Kind)
		require.Equal(t, "sync", sync.Name)
		require.Equal(t, tracepb.Span_SPAN_KIND_CLIENT, sync.Kind)
		require.Equal(t, "regedge-edge", sync.Service)
		for _, s := range []collector.Span{commit, atWriter, sync} {
			require.Equal(t, clientTrace, s.Trace)
			require.False(t, s.Failed)
		}
		return
	}
	t.Errorf("no commit of a sync of the charge %+v in %+v", charged, spans.Spans())
}

func TestTracesAreSampled(t *testing.T) {
	sampled, unsampled := "00-"+clientTrace+"-"+clientSpan+"-01", "00-"+clientTrace+"-"+clientSpan+"-00"
	t.Run("none but those asked for", func(t *testing.T) {
		spans := collector.Start(t)
		c := startCentre(t)
		_, key := c.account(t, 100) // before the edge, which else may see the key a moment later
		p := c.edge(t, "one", "--traces", spans.URL, "--traces-share", "0", "--traces-asked", "2")
		for _, traceparents := range [][]string{
			nil, {unsampled}, {sampled, sampled}, {strings.ToUpper(sampled)}, {"ff" + sampled[2:]}, {sampled[:54]}, {sampled + "-x"},
			{"00-" + strings.Repeat("0", 32) + "-" + clientSpan + "-01"}, {"00-" + clientTrace + "-" + strings.Repeat("0", 16) + "-01"},
		} {
			require.Equal(t, 200, p.heardTraced(t, company, key, traceparents...))
		}
		require.Equal(t, exitOK, p.halt(), p.stderr.String())
		require.Empty(t, spans.Spans())
	})
	t.Run("a share of all", func(t *testing.T) {
		spans := collector.Start(t)
		c := startCentre(t, "--traces", spans.URL, "--traces-share", "1")
		_, key := c.account(t, 100)
		p := c.edge(t, "one", "--traces", spans.URL, "--traces-share", "1", "--traces-asked", "0")
		for _, traceparents := range [][]string{nil, {"junk"}, {unsampled}, {sampled}} {
			require.Equal(t, 200, p.heardTraced(t, company, key, traceparents...))
		}
		require.Equal(t, 404, p.heardTraced(t, "/v1/companies/"+sampletest.CompanyNotHeld, key))
		require.Equal(t, 401, p.heardTraced(t, company, "reg_live_junk"))
		stranger, err := http.NewRequest("POST", c.url()+"/v1/sync", nil)
		require.NoError(t, err)
		stranger.Header.Set("Traceparent", sampled)
		response, err := http.DefaultClient.Do(stranger)
		require.NoError(t, err)
		response.Body.Close()
		require.Equal(t, 401, response.StatusCode)
		require.Equal(t, exitOK, p.halt(), p.stderr.String())
		c.halt()
		for _, s := range spans.Named("POST /v1/sync") { // not of strangers
			require.NotEqual(t, clientSpan, s.Parent)
		}

		traces, refusals := map[string]int{}, map[any]int{}
		for _, s := range spans.Named("GET /v1/companies/{cin}") {
			if code := s.Attributes["regedge.code"]; code != charge.MeteringUnavailable {
				traces[s.Parent]++
				refusals[code]++
			}
		}
		require.Equal(t, map[string]int{"": 4, clientSpan: 2}, traces)
		require.Equal(t, map[any]int{nil: 4, "company_not_found": 1, "invalid_api_key": 1}, refusals)
		made := spans.Named("POST /v1/accounts")
		require.Len(t, made, 1)
		require.Equal(t, int64(200), made[0].Attributes["http.response.status_code"])
		require.NotEmpty(t, made[0].Attributes["regedge.request_id"])
		for _, s := range spans.Named("commit") {
			if s.Parent == made[0].ID {
				return
			}
		}
		t.Errorf("no commit of the new account in %+v", spans.Spans())
	})
}

func TestDevTracesItsLookupAndItsWriter(t *testing.T) {
	spans := collector.Start(t)
	p := startDev(t.TempDir(), "--traces", spans.URL, "--traces-share", "1")
	defer p.halt()
	require.True(t, p.await(p.greeted), p.stderr.String())
	_, line, _ := strings.Cut(p.stdout.String(), "Live key     ")
	key, _, _ := strings.Cut(line, "\n")
	require.True(t, p.await(func() bool { return p.status(company, key) == 200 }))
	require.Equal(t, exitOK, p.halt(), p.stderr.String())
	for _, name := range []string{"GET /v1/companies/{cin}", "component", "charge", "sync", "POST /v1/sync", "commit"} {
		require.NotEmpty(t, spans.Named(name), name)
	}
}

// TestClientsGetAsManyTracesAsTheFlagAllows in a second.
func TestClientsGetAsManyTracesAsTheFlagAllows(t *testing.T) {
	const asked = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	f := traceFlags{Traces: "http://127.0.0.1:1", TracesAsked: 0}
	tracer, _, err := f.tracer(t.Context(), "edge", slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	_, sampled := tracer.Sample(asked)
	require.False(t, sampled)
	f.TracesAsked = 1
	tracer, _, err = f.tracer(t.Context(), "edge", slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	_, sampled = tracer.Sample(asked)
	require.True(t, sampled)
}

func TestFlagsOfTracesAreChecked(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "header")
	require.NoError(t, os.WriteFile(secret, []byte("collectors-secret\n"), 0o600))
	for _, c := range []struct {
		name, want string
		code       int
		flags      []string
	}{
		{"an endpoint that is none", "not the endpoint of a collector", exitMisuse, []string{"--traces", "127.0.0.1:4318"}},
		{"a password in it", "not the endpoint of a collector", exitMisuse, []string{"--traces", "http://me:collectors-secret@127.0.0.1"}},
		{"a share over all", "from 0 to 1", exitMisuse, []string{"--traces-share", "1.5"}},
		{"a share that is no number", "from 0 to 1", exitMisuse, []string{"--traces-share", "NaN"}},
		{"too many", "from 0 to 100", exitMisuse, []string{"--traces-asked", "101"}},
		{"a header for nobody", "needs --traces", exitMisuse, []string{"--traces-header-file", secret}},
		{"a header in the clear", "in the clear", exitMisuse, []string{"--traces", "http://192.0.2.1:4318", "--traces-header-file", secret}},
		{"a header that is none", "holds no header lines", exitFailure, []string{"--traces", "https://192.0.2.1", "--traces-header-file", secret}},
		{"as many as may be", "--listen is HOST:PORT", exitFailure, []string{"--traces-asked", "100", "--traces-share", "1", "--listen", "192.0.2.1:0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startDev(t.TempDir(), c.flags...)
			require.Equal(t, c.code, <-p.ended, p.stderr.String())
			require.Contains(t, p.stderr.String(), c.want)
			require.NotContains(t, p.stderr.String(), "collectors-secret")
		})
	}
}
