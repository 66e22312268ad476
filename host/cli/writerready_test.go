package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAWritersReadinessNamesARefusedToken: the ledger is served, but edges don't learn how old their copy is.
func TestAWritersReadinessNamesARefusedToken(t *testing.T) {
	t.Parallel()
	primary := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer primary.Close()
	c := startCentre(t, "--registry", primary.URL, "--registry-token", "ended")
	var said string
	require.True(t, c.await(func() bool {
		answer, err := http.Get(c.url() + "/readyz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		said = string(body)
		return err == nil && answer.StatusCode == http.StatusOK &&
			said == "ready\nregistry database: the primary refuses the writer's token: no heartbeat\n"
	}), "%s", said)
}

// TestTheAgeOfABackupIsShown, of the file that --backup names: an alarm waits for it.
func TestTheAgeOfABackupIsShown(t *testing.T) {
	t.Parallel()
	c := startCentre(t, "--backup", filepath.Join(t.TempDir(), "missing.db"))
	require.True(t, c.await(func() bool {
		return strings.Contains(metricsOf(t, c.url()+"/metrics"), "\nregedge_writer_backup_age_seconds +Inf\n")
	}), c.stderr.String())
}
