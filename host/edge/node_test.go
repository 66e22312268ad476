package edge

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/sqlite"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

// TestARegistryIsReadOnAsLongAsTheNodeIsReady, and an access database only until its replica is back: keys that
// were revoked meanwhile work on.
func TestARegistryIsReadOnAsLongAsTheNodeIsReady(t *testing.T) {
	for database, want := range map[schema.Database]time.Duration{schema.Registry: 10 * time.Minute, schema.Access: sqlite.DefaultKeep} {
		require.Equal(t, want, keep(ReplicaConfig{Database: database, MaxLag: 10 * time.Minute}), database)
	}
}

func TestTheHeadroomOfLeasesIsInSeconds(t *testing.T) {
	for millis, want := range map[int64]float64{12_500: 12.5, 0: 0, -1: -1} {
		at := slices.IndexFunc(meterMetrics(), func(m meterMetric) bool { return strings.Contains(m.desc.String(), "lease_headroom_seconds") })
		require.Equal(t, want, meterMetrics()[at].value(&meterSample{Headroom: lease.Headroom{LeastMillis: millis}}))
	}
}

// TestANodeWithoutAReleaseIsNotReady: it would answer "not found" wrongly.
func TestANodeWithoutAReleaseIsNotReady(t *testing.T) {
	require.ErrorContains(t, emptyNode(t).Ready(), "it has no release yet")
}

// emptyNode has an empty registry, so that it is not ready, and a meter whose writer is away.
func emptyNode(t *testing.T) *Node {
	t.Helper()
	open := func(kind schema.Database) Database {
		path := filepath.Join(t.TempDir(), "file.db")
		db, err := schema.OpenFile(path, false)
		require.NoError(t, err)
		require.NoError(t, schema.Migrate(t.Context(), db, kind))
		require.NoError(t, db.Close())
		opened, err := OpenFile(t.Context(), kind, path)
		require.NoError(t, err)
		t.Cleanup(func() { opened.Close() })
		return opened
	}
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: away{}})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return &Node{config: Config{Access: open(schema.Access), Registry: open(schema.Registry), Meter: m, Log: slog.New(slog.DiscardHandler)}}
}

// away is a writer that no message reaches.
type away struct{}

func (away) Sync(context.Context, []byte) ([]byte, error) { return nil, errors.New("no route") }

// TestANodeThatIsNotReadyReportsWhy at once.
func TestANodeThatIsNotReadyReportsWhy(t *testing.T) {
	got := make(chan writer.Report, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var report writer.Report
		_ = json.NewDecoder(r.Body).Decode(&report)
		select {
		case got <- report:
		default:
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- emptyNode(t).Report(Reporter{Client: NewClient(server.URL, "token"), Renew: func(string, string) {}}).Run(ctx)
	}()
	select {
	case report := <-got:
		require.Contains(t, report.Ready, "it has no release yet")
	case <-time.After(time.Minute):
		t.Error("no report")
	}
	end()
	require.NoError(t, <-ended)
}

// TestAnAgeThatIsNotKnownIsReportedAsSuch.
func TestAnAgeThatIsNotKnownIsReportedAsSuch(t *testing.T) {
	n := emptyNode(t)
	replica, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, Now: time.Now})
	require.NoError(t, err)
	defer replica.Close()
	n.config.Access = &replicaDatabase{replica, schema.Access, 0}
	require.Equal(t, []writer.Replica{{Database: "access", AgeMillis: -1}}, n.report(t.Context(), Reporter{}, "").Replicas)
}
