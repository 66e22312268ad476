package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"regedge/host/server"
)

func TestLogHasNoSecrets(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		request, err := http.NewRequest("GET", r.url+"/v1/companies/SECRETCIN?name=SECRETNAME", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer SECRETKEY")
		request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		response, err := r.client.Do(request)
		require.NoError(t, err)
		response.Body.Close()
		r.get(t, "/SECRETPATH")
		request.Header.Set("Traceparent", "00-SECRET")
		request.Method = "SECRETMETHOD"
		response, err = r.client.Do(request)
		require.NoError(t, err)
		response.Body.Close()
		require.NoError(t, r.stop())
		require.NotContains(t, r.log.String(), "SECRET")
		lines := r.log.lines()
		require.Len(t, lines, 3, "one line a request")
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(lines[0]), &line))
		require.Equal(t, "GET", line["method"])
		require.Equal(t, "/v1/companies/{cin}", line["route"])
		require.EqualValues(t, 200, line["status"])
		require.Equal(t, "from-the-answerer", line["request_id"])
		require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", line["traceparent"])
		require.Equal(t, "127.0.0.1", line["client"])
		require.Contains(t, line, "duration_us")
	})
}

func TestRequestsAreCountedByRouteAndStatus(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		for _, path := range []string{
			"/v1/companies/a", "/v1/companies/b", "/v1/directors/1", "/v1/llps/c", "/v1/search/companies",
			"/v1/search/llps", "/v1/search/else", "/nowhere", "/healthz",
		} {
			r.get(t, path)
		}
		require.NoError(t, r.stop())
		counted := httptest.NewRecorder()
		promhttp.HandlerFor(r.metrics, promhttp.HandlerOpts{}).ServeHTTP(counted, httptest.NewRequest("GET", "/", nil))
		var got []string
		for line := range strings.Lines(counted.Body.String()) {
			if strings.HasPrefix(line, "regedge_requests_total{") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		require.Equal(t, []string{
			`regedge_requests_total{route="/v1/companies/{cin}",status="200"} 2`,
			`regedge_requests_total{route="/v1/directors/{din}",status="200"} 1`,
			`regedge_requests_total{route="/v1/llps/{llpin}",status="200"} 1`,
			`regedge_requests_total{route="/v1/search/companies",status="200"} 1`,
			`regedge_requests_total{route="/v1/search/llps",status="200"} 1`,
			`regedge_requests_total{route="other",status="200"} 2`,
			`regedge_requests_total{route="page",status="200"} 1`,
		}, got)
	})
}

func TestLogBufferWritesWholeLines(t *testing.T) {
	var to bytes.Buffer
	b := server.NewLogBuffer(&to)
	b.Write([]byte("one\n"))
	require.Empty(t, to.String())
	require.NoError(t, b.Flush())
	require.Equal(t, "one\n", to.String())
	long := strings.Repeat("x", 40<<10) + "\n"
	b.Write([]byte(long))
	b.Write([]byte(long))
	require.Equal(t, "one\n"+long+long, to.String(), "a full buffer does not wait")
}
