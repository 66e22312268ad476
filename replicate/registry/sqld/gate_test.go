package sqld

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// primary is sqld behind a gate.
type primary func(*http.Request) (*http.Response, error)

func (p primary) RoundTrip(r *http.Request) (*http.Response, error) { return p(r) }

// TestACallIsPassedOnAsItWasCompared: its path alone, and a body of a position in the log at most.
func TestACallIsPassedOnAsItWasCompared(t *testing.T) {
	g := &gate{target: "127.0.0.1:5001", calls: map[string]int{}, output: newOutput(io.Discard)}
	c := g.connect()
	var asked string
	var body error
	c.proxy.Transport = primary(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.String()
		_, body = io.Copy(io.Discard, r.Body)
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, body
	})
	call := func(bytes int) {
		r := httptest.NewRequest(http.MethodPost, "/wal_log.ReplicationLog/Hello?more=1", strings.NewReader(strings.Repeat("x", bytes)))
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{SerialNumber: big.NewInt(7)}}}
		g.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(t.Context(), connectionKey{}, c)))
	}
	for range callsAtOnce + 1 { // one after the other
		call(callBytes)
		require.NoError(t, body)
	}
	require.Equal(t, "https://127.0.0.1:5001/wal_log.ReplicationLog/Hello", asked)
	call(callBytes + 1)
	require.ErrorContains(t, body, "too large")
	require.Empty(t, g.calls)
}
