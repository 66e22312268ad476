package cli

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/host/service"
)

func TestAServerIsToldFromAFile(t *testing.T) {
	for name, want := range map[string]bool{
		"http://127.0.0.1:8181": true, "https://primary.example": true, "libsql://primary.example": true,
		"registry.db": false, "/var/lib/registry.db": false, "file:registry.db": false, "c:registry.db": false, "": false,
	} {
		require.Equal(t, want, isRemote(name), name)
	}
}

// TestLimitsOfAnEdgeAreThoseOfItsFlags: each is of its own flag.
func TestLimitsOfAnEdgeAreThoseOfItsFlags(t *testing.T) {
	f := edgeFlags{Listen: "127.0.0.1:0", MaxInFlight: 11, MaxConnections: 12, MaxConnectionsPerAddress: 13}
	var closers service.Closers
	open, err := f.open(&Main{}, &closers)
	require.NoError(t, err)
	defer closers.Close()
	config, err := f.config(open, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, []int{11, 12, 13}, []int{config.MaxInFlight, config.MaxConnections, config.MaxConnectionsPerAddress})
}

// TestAServiceWithTLSIsProbedByTLS, whoever its certificate is for.
func TestAServiceWithTLSIsProbedByTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.StartTLS()
	defer server.Close()
	args := []string{"probe", "--listen", server.Listener.Addr().String(), "--tls-cert", "its.crt"}
	p := start(args...)
	require.Equal(t, exitOK, <-p.ended, p.stderr.String())
	require.Equal(t, exitFailure, <-start(args[:3]...).ended)
}
