package edge

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	client "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/hint"
	"regedge/host/sqlite"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// replicaOf opens a replica's access database with the given newest heartbeat, or none. Nobody answers at its
// endpoint. Statements are refused beyond maxAge, if one is given.
func replicaOf(t *testing.T, now time.Time, beat *time.Time, maxLag time.Duration, maxAge ...time.Duration) Database {
	t.Helper()
	return replicaIn(t, t.TempDir(), now, beat, maxLag, maxAge...)
}

func replicaIn(t *testing.T, dir string, now time.Time, beat *time.Time, maxLag time.Duration, maxAge ...time.Duration) Database {
	t.Helper()
	if beat != nil {
		putHeartbeat(t, dir, *beat)
	}
	away := httptest.NewServer(nil)
	away.Close()
	endpoint, err := libsql.Open(away.URL, "")
	require.NoError(t, err)
	replica, err := OpenReplica(ReplicaConfig{
		Database: schema.Access, Endpoint: endpoint, Dir: dir, MaxLag: maxLag, MaxAge: append(maxAge, 0)[0],
		Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { replica.Close() })
	return replica
}

// putHeartbeat makes the file of a replica, with a heartbeat.
func putHeartbeat(t *testing.T, dir string, beat time.Time) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(sqld.File(dir)), 0o700))
	db, err := schema.OpenFile(sqld.File(dir))
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	_, err = db.Exec(`INSERT INTO heartbeat VALUES (1, ?)`, beat.UnixMilli())
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// TestANodeIsNotReadyWithAnOldReplica, though it answers.
func TestANodeIsNotReadyWithAnOldReplica(t *testing.T) {
	now := time.Now()
	old := now.Add(-10 * time.Second)
	n := emptyNode(t)
	registry, err := OpenFile(t.Context(), schema.Registry, sampletest.Registry(t))
	require.NoError(t, err)
	defer registry.Close()
	n.config.Registry = registry
	n.config.Access = replicaOf(t, now, &old, time.Minute)
	require.ErrorIs(t, n.Ready(), meter.ErrNoEpoch, "only the meter is not ready")
	n.config.Access = replicaOf(t, now, &old, time.Second)
	require.NoError(t, n.config.Access.Query(t.Context(), "SELECT 1", nil, &handler.Result{}))
	require.ErrorContains(t, n.Ready(), "access replica: ")
}

// TestAReportSaysHowOldAReplicaIs, in milliseconds.
func TestAReportSaysHowOldAReplicaIs(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	beat := now.Add(-1500 * time.Millisecond)
	n := emptyNode(t)
	n.config.Access = replicaOf(t, now, &beat, 0)
	require.Equal(t, []writer.Replica{{Database: "access", AgeMillis: 1500}}, n.report(t.Context(), Reporter{}, "").Replicas)
}

// TestAReplicasMetricsSayHowItIsRead.
func TestAReplicasMetricsSayHowItIsRead(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	old, future := now.Add(-10*time.Second), now.Add(time.Minute)
	for _, c := range []struct {
		beat                 *time.Time
		age, ahead, fallback float64
	}{{&old, 10, 0, 0}, {&future, -1, 1, 0}, {nil, -1, 0, 1}} {
		metrics := prometheus.NewRegistry()
		n := Node{config: Config{Access: replicaOf(t, now, c.beat, 0), Metrics: metrics}}
		require.NoError(t, n.registerReplicas())
		families, err := metrics.Gather()
		require.NoError(t, err)
		got := map[string]float64{}
		for _, family := range families {
			name, _ := strings.CutPrefix(family.GetName(), "regedge_replica_")
			got[name] = family.Metric[0].GetGauge().GetValue() + family.Metric[0].GetCounter().GetValue()
		}
		require.Equal(t, map[string]float64{"age_seconds": c.age, "heartbeat_ahead": c.ahead, "fallback": c.fallback, "switches_total": 1}, got)
	}
}

// TestAnAccessDatabaseThatIsTooOldIsNotRead: revoked keys would go on working.
func TestAnAccessDatabaseThatIsTooOldIsNotRead(t *testing.T) {
	now := time.Now()
	beat := now.Add(-10 * time.Second)
	for maxAge, want := range map[time.Duration]error{time.Second: sqlite.ErrTooOld, time.Minute: nil, 0: nil} {
		replica := replicaOf(t, now, &beat, time.Minute, maxAge)
		require.ErrorIs(t, replica.Query(t.Context(), "SELECT 1", nil, &handler.Result{}), want)
	}
}

// TestASwitchFromTheEndpointToTheFileIsCounted.
func TestASwitchFromTheEndpointToTheFileIsCounted(t *testing.T) {
	n, now, metrics, dir := emptyNode(t), time.Now(), prometheus.NewRegistry(), t.TempDir()
	replica := replicaIn(t, dir, now, nil, 0).(*replicaDatabase)
	n.config.Access, n.config.Metrics = replica, metrics
	require.NoError(t, n.registerReplicas())
	require.Equal(t, []writer.Replica{{Database: "access", AgeMillis: -1, Fallback: true}}, n.report(t.Context(), Reporter{}, "").Replicas)
	before := replica.Switches()
	putHeartbeat(t, dir, now)
	require.NoError(t, replica.Refresh())
	require.False(t, replica.Remote())
	families, err := metrics.Gather()
	require.NoError(t, err)
	at := slices.IndexFunc(families, func(f *client.MetricFamily) bool { return f.GetName() == "regedge_replica_switches_total" })
	require.EqualValues(t, before+1, families[at].Metric[0].GetCounter().GetValue())
}

// unreadable is a database that can't be read.
type unreadable struct{ refreshed *atomic.Int64 }

// unreadableAt fails but for one time.
type unreadableAt struct {
	unreadable
	well int64
}

func (u unreadableAt) Refresh() error {
	if err := u.unreadable.Refresh(); u.refreshed.Load() != u.well {
		return err
	}
	return nil
}

var errUnreadable = errors.New("it can't be read")

func (unreadable) Query(context.Context, string, []handler.Value, *handler.Result) error {
	return errUnreadable
}

func (u unreadable) Refresh() error {
	u.refreshed.Add(1)
	return errUnreadable
}

func (unreadable) Close() error { return nil }

// TestTheDatabaseThatCanNotBeReadIsNamed.
func TestTheDatabaseThatCanNotBeReadIsNamed(t *testing.T) {
	n := emptyNode(t)
	n.config.Registry = unreadable{}
	require.ErrorContains(t, n.Ready(), "registry database: it can't be read")
	n.config.Access = unreadable{}
	require.ErrorContains(t, n.Ready(), "access database: it can't be read")
}

// TestBothDatabasesAreLookedAtEachSecond, and an error is logged once each time that it begins: a file that was moved away
// would fill the log.
func TestBothDatabasesAreLookedAtEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var access, registry atomic.Int64
		n := Node{config: Config{Access: unreadable{&access}, Registry: unreadableAt{unreadable{&registry}, 4}, Log: slog.New(slog.NewTextHandler(&log, nil))}}
		ctx, end := context.WithTimeout(t.Context(), 7*watchInterval+watchInterval/2)
		defer end()
		require.NoError(t, n.watchDatabases().Run(ctx))
		require.EqualValues(t, 7, access.Load())
		require.EqualValues(t, 7, registry.Load())
		require.Equal(t, 2, strings.Count(log.String(), "it can't be read\\nit can't be read"), log.String())
		require.Equal(t, 3, strings.Count(log.String(), "\n"), log.String())
	})
}

// TestAConnectionThatAnEndpointMayHaveDroppedIsNotUsed: a lookup on it would fail.
func TestAConnectionThatAnEndpointMayHaveDroppedIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := libsql.Open("http://127.0.0.1:1", "") // nobody answers there
		require.NoError(t, err)
		opened, err := OpenReplica(ReplicaConfig{Database: schema.Access, Endpoint: db, Now: time.Now})
		require.NoError(t, err)
		defer opened.Close()
		var conns []*sql.Conn
		for range idleStreams {
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			conns = append(conns, conn)
		}
		for _, conn := range conns {
			require.NoError(t, conn.Close())
		}
		require.Equal(t, idleStreams, db.Stats().Idle, "to open one costs as much as a statement")
		time.Sleep(2 * streamIdle)
		require.Zero(t, db.Stats().Idle)
	})
}

// TestRequestsAreKeptUntilAReportArrives.
func TestRequestsAreKeptUntilAReportArrives(t *testing.T) {
	n := emptyNode(t)
	n.requests.note(logged(7, 1))
	ctx, end := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		end()
	}))
	defer server.Close()
	require.NoError(t, n.Report(Reporter{Client: NewClient(server.URL, "token")}).Run(ctx))
	require.Len(t, n.requests.take(), 1)
}

// TestAMeterThatIsNotMeasuredIsNotOpen: its directory is free for the next attempt,
// and only one has it at a time.
func TestAMeterThatIsNotMeasuredIsNotOpen(t *testing.T) {
	metrics := prometheus.NewRegistry()
	first, err := OpenMeter(metrics, meter.Config{State: t.TempDir(), Writer: away{}})
	require.NoError(t, err)
	defer first.Close()
	config := meter.Config{State: t.TempDir(), Writer: away{}}
	_, err = OpenMeter(metrics, config)
	require.ErrorContains(t, err, "duplicate")
	second, err := OpenMeter(prometheus.NewRegistry(), config)
	require.NoError(t, err)
	defer second.Close()
	_, err = OpenMeter(prometheus.NewRegistry(), config)
	require.Equal(t, "another regedge runs on "+config.State+": stop it, or choose another directory", hint.Of(err))
}

// TestAStateDirectoryThatCanNotBeOpenedSaysWhatToDo, and which file is the reason.
func TestAStateDirectoryThatCanNotBeOpenedSaysWhatToDo(t *testing.T) {
	state := t.TempDir()
	pipe := filepath.Join(state, "batches-00020784.log")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := OpenMeter(prometheus.NewRegistry(), meter.Config{State: state, Writer: away{}})
	require.ErrorContains(t, err, pipe+" is a named pipe")
	require.Contains(t, hint.Of(err), "move it out of the directory")
	denied := ExplainState(&fs.PathError{Op: "open", Path: pipe, Err: syscall.EACCES}, state)
	require.Contains(t, hint.Of(denied), "read and write "+state)
}
