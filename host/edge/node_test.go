package edge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	client "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/charge"
	"regedge/host/hint"
	"regedge/host/server"
	"regedge/host/sqlite"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/libsql"
	"regedge/schema"
)

// TestARegistryIsReadOnAsLongAsTheNodeIsReady, and an access database only for DefaultKeep: revoked keys
// would go on working.
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
		db, err := schema.OpenFile(path)
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

// refusing is an endpoint that accepts no token.
type refusing struct{}

func (refusing) Query(context.Context, string, []handler.Value, *handler.Result) error {
	return fmt.Errorf("401: %w", sqlite.ErrToken)
}

func (refusing) Close() error { return nil }

// TestARefusedTokenIsRemarked while the file is read, since nothing else shows it.
func TestARefusedTokenIsRemarked(t *testing.T) {
	n := emptyNode(t)
	require.Empty(t, n.remark())
	replica, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, Now: time.Now, Endpoint: refusing{}})
	require.NoError(t, err)
	defer replica.Close()
	n.config.Access = &replicaDatabase{replica, schema.Access, 0}
	require.Equal(t, "access replica: the replica's endpoint refuses the token, so there is no fallback for its file", n.remark())
	n.config.Registry = &replicaDatabase{replica, schema.Registry, 0}
	require.Equal(t, "registry replica: the replica's endpoint refuses the token, so there is no fallback for its file; "+
		"access replica: the replica's endpoint refuses the token, so there is no fallback for its file", n.remark())
}

// TestAnAgeThatIsNotKnownIsReportedAsSuch.
func TestAnAgeThatIsNotKnownIsReportedAsSuch(t *testing.T) {
	n := emptyNode(t)
	replica, err := sqlite.OpenReplica(sqlite.ReplicaConfig{Database: schema.Access, Now: time.Now})
	require.NoError(t, err)
	defer replica.Close()
	n.config.Access = &replicaDatabase{replica, schema.Access, 0}
	require.Equal(t, []writer.Replica{{Database: "access", AgeMillis: -1}}, n.report(t.Context(), Reporter{}, "").Replicas)
	metrics := prometheus.NewRegistry()
	n.config.Metrics = metrics
	require.NoError(t, n.registerReplicas())
	families, err := metrics.Gather()
	require.NoError(t, err)
	at := slices.IndexFunc(families, func(f *client.MetricFamily) bool { return f.GetName() == "regedge_replica_age_seconds" })
	require.EqualValues(t, -1, families[at].Metric[0].GetGauge().GetValue())
}

// TestARefusedTokenIsRemembered until the writer accepts it; a network error tells nothing about it.
func TestARefusedTokenIsRemembered(t *testing.T) {
	n, log := emptyNode(t), new(testkit.Log)
	n.config.Log = slog.New(slog.NewTextHandler(log, nil))
	for _, answer := range []struct {
		err  error
		want error
	}{
		{nil, meter.ErrNoEpoch}, {errors.New("no route"), meter.ErrNoEpoch}, {fmt.Errorf("report: %w", writer.ErrUnauthorized), errRefused},
		{errors.New("no route"), errRefused}, {nil, meter.ErrNoEpoch},
	} {
		n.noteToken(answer.err)
		require.Equal(t, answer.want, n.meterReady(), answer.err)
	}
	require.Equal(t, 1, strings.Count(log.String(), "the writer refuses this node's token"), log.String())
	require.Equal(t, 1, strings.Count(log.String(), "the writer accepts this node's token"), log.String())
}

// greeting is a writer that gives an epoch.
type greeting struct{}

func (greeting) Sync(_ context.Context, encoded []byte) ([]byte, error) {
	m, err := syncproto.DecodeMessage(encoded)
	if err != nil {
		return nil, err
	}
	r := syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: 1, Live: 1, Answers: m.Number, NowMillis: time.Now().UnixMilli()}
	return r.Encode(), nil
}

// TestANodeServesOnItsLeasesAfterItsTokenWasRefused: it stays ready as long as its meter is.
func TestANodeServesOnItsLeasesAfterItsTokenWasRefused(t *testing.T) {
	n := emptyNode(t)
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: greeting{}})
	require.NoError(t, err)
	defer m.Close()
	n.config.Meter = m
	require.NoError(t, m.Exchange(t.Context()))
	n.noteToken(writer.ErrUnauthorized)
	require.NoError(t, n.meterReady())
}

func TestOperatorsSeeTheMachinesNameInPlaceOfAnyAddress(t *testing.T) {
	name, err := os.Hostname()
	require.NoError(t, err)
	for listening, want := range map[string]string{
		"0.0.0.0:8080": net.JoinHostPort(name, "8080"), "[::]:8080": net.JoinHostPort(name, "8080"),
		"127.0.0.1:8080": "127.0.0.1:8080", "[2001:db8::1]:8080": "[2001:db8::1]:8080",
	} {
		require.Equal(t, want, Address(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(listening))))
	}
	require.Equal(t, "/run/edge", Address(&net.UnixAddr{Name: "/run/edge", Net: "unix"}))
}

// TestWhyAnEndpointDoesNotAnswer: a replica without a copy forwards, and that is no fault of the token.
func TestWhyAnEndpointDoesNotAnswer(t *testing.T) {
	status, says := http.StatusInternalServerError, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, says, status) }))
	defer server.Close()
	db, err := libsql.Open(server.URL, "token")
	require.NoError(t, err)
	defer db.Close()
	asked := func() error {
		return endpoint{sqlite.NewRemote(db, sqlite.Config{})}.Query(t.Context(), "SELECT 1", nil, &handler.Result{})
	}
	says = `status: PermissionDenied, message: "` + libsql.OnlyReplication + `"`
	require.Equal(t, errNoCopy, asked())
	says = "out of order"
	require.ErrorContains(t, asked(), says)
	require.NotErrorIs(t, asked(), sqlite.ErrToken)
	status = http.StatusUnauthorized
	require.ErrorIs(t, asked(), sqlite.ErrToken)
	require.ErrorContains(t, asked(), says, "for the log")
}

// TestEachMetricOfTheMeterHasItsOwnNumber.
func TestEachMetricOfTheMeterHasItsOwnNumber(t *testing.T) {
	sample := meterSample{
		meter.Stats{
			Answered: 1, Refused: 2, Unavailable: 3, Waited: 4, Crowded: 5, Waiting: 6, Doubted: 7, Replaced: 8,
			Unresolved: 9, Unsettled: 10, Accounts: 11, Unreachable: true,
		},
		lease.Headroom{Credits: 12, LeastMillis: 13_000, Short: 14}, 15,
	}
	got := map[string]float64{}
	for _, m := range meterMetrics() {
		_, name, _ := strings.Cut(m.desc.String(), `fqName: "regedge_`)
		name, _, _ = strings.Cut(name, `"`)
		got[name] = m.value(&sample)
	}
	require.Equal(t, map[string]float64{
		"verdicts_answered_total": 1, "verdicts_refused_total": 2, "verdicts_unavailable_total": 3, "verdicts_waited_total": 4,
		"verdicts_crowded_total": 5, "verdicts_waiting": 6, "verdicts_doubted_total": 7, "journal_replaced_total": 8,
		"unresolved_charges": 9, "unsettled_charges": 10, "leased_accounts": 11, "writer_unreachable": 1,
		"leased_credits": 12, "lease_headroom_seconds": 13, "leases_short": 14, "journal_corrupt_files": 15,
	}, got)
}

// TestAReportNamesTheNewestRelease of several.
func TestAReportNamesTheNewestRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
	for n, id := range []string{"old", "new"} {
		_, err = db.Exec(`INSERT INTO release (seq, id, released_at, companies, llps, directors, appointments, partners) VALUES (?, ?, 0, 0, 0, 0, 0, 0)`, n+1, id)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	n := emptyNode(t)
	n.config.Registry, err = OpenFile(t.Context(), schema.Registry, path)
	require.NoError(t, err)
	defer n.config.Registry.Close()
	require.Equal(t, "new", n.report(t.Context(), Reporter{}, "").Release)
}

// TestAReportNamesTheReleaseThatIsServed.
func TestAReportNamesTheReleaseThatIsServed(t *testing.T) {
	n := emptyNode(t)
	require.Empty(t, n.report(t.Context(), Reporter{}, "").Release)
	registry, err := OpenFile(t.Context(), schema.Registry, sampletest.Registry(t))
	require.NoError(t, err)
	defer registry.Close()
	n.config.Registry = registry
	var newest handler.Result
	require.NoError(t, registry.Query(t.Context(), releaseStatement, nil, &newest))
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(releaseMetric{n})
	families, err := metrics.Gather()
	require.NoError(t, err)
	require.Equal(t, newest.Values[0].Text, families[0].Metric[0].Label[0].GetValue())
	gone, end := context.WithCancel(t.Context())
	end() // so that a request without a lease does not wait for one
	n.config.Meter.Charge(gone, charge.Request{ID: "1", Account: 1, Key: 1, PerMinute: 60, Endpoint: charge.Companies, Outcome: charge.Found})
	require.Equal(t, writer.Report{Address: "edge:8080", Version: "1.2.3", Commit: "b1946ac", Component: "c3499c27", Ready: "why not", Release: newest.Values[0].Text, Refused: 1},
		n.report(t.Context(), Reporter{Address: "edge:8080", Version: "1.2.3", Commit: "b1946ac", Component: "c3499c27"}, "why not"))
}

func TestAFileIsOpenWhileItIsServed(t *testing.T) {
	for kind, makes := range map[schema.Database]string{schema.Registry: "regedge import", schema.Access: "regedge writer"} {
		path := filepath.Join(t.TempDir(), "file.db")
		_, err := OpenFile(t.Context(), kind, path)
		require.Contains(t, hint.Of(err), makes, "what makes a file that is missing")
		require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("a text, and no database\n", 100)), 0o600))
		_, err = OpenFile(t.Context(), kind, path)
		require.ErrorIs(t, err, schema.ErrNoDatabase)
		require.Contains(t, hint.Of(err), makes)
		require.NoError(t, os.Remove(path))
		_, err = OpenFile(t.Context(), kind, t.TempDir())
		require.Error(t, err, "a directory")
		db, err := schema.OpenFile(path)
		require.NoError(t, err)
		require.NoError(t, schema.Migrate(t.Context(), db, kind))
		require.NoError(t, db.Close())
		opened, err := OpenFile(t.Context(), kind, path)
		require.NoError(t, err)
		require.NoError(t, opened.Close())
		require.Empty(t, testkit.OpenFiles(t, path))
	}
}

// TestAnEdgeReadsNoLongAnswerOfTheWriter: what it sends must not cost the memory that lookups need.
func TestAnEdgeReadsNoLongAnswerOfTheWriter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "made-up")
		_, _ = w.Write([]byte("{}" + strings.Repeat(" ", 1<<20)))
	}))
	defer server.Close()
	_, err := NewClient(server.URL, "token").Report(t.Context(), writer.Report{})
	require.ErrorIs(t, err, writer.ErrStranger)
	require.ErrorContains(t, err, "more than")
}

// counted counts how often a database is read.
type counted struct {
	Database
	reads atomic.Int64
}

func (c *counted) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	c.reads.Add(1)
	return c.Database.Query(ctx, statement, args, dst)
}

// TestANodeReportsInTime: every 2 s, and while it is not ready it looks each 100 ms whether it is, to report
// that at once. The writer gets the log of requests with the first report that it takes.
func TestANodeReportsInTime(t *testing.T) {
	var requests, reports atomic.Int64
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "made-up")
		switch {
		case r.URL.Path == writer.RequestsPath:
			requests.Add(1)
		case reports.Add(1) == 1:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"code":"unauthorized"}`)
			return
		}
		_, _ = io.WriteString(w, "{}")
	})
	n := emptyNode(t)
	access := &counted{Database: n.config.Access}
	n.config.Access = access
	n.requests.note(logged(7, 1))
	synctest.Test(t, func(t *testing.T) {
		client := writer.NewClient("http://writer.internal", "token", &http.Client{Transport: writer.InProcess(answer)})
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Report(Reporter{Client: client}).Run(ctx) }()
		time.Sleep(reportInterval - time.Millisecond)
		require.EqualValues(t, 1, reports.Load())
		require.EqualValues(t, reportInterval/(100*time.Millisecond), access.reads.Load())
		require.True(t, n.refused.Load())
		require.Zero(t, requests.Load())
		time.Sleep(reportInterval)
		require.EqualValues(t, 2, reports.Load())
		require.False(t, n.refused.Load())
		require.EqualValues(t, 1, requests.Load())
		end()
		require.NoError(t, <-ended)
	})
}

// filling has no release until it is filled.
type filling struct {
	Database
	filled atomic.Bool
}

func (f *filling) Query(_ context.Context, _ string, _ []handler.Value, dst *handler.Result) error {
	*dst = handler.Result{}
	if f.filled.Load() {
		*dst = handler.Result{Columns: 1, Values: []handler.Value{{Kind: handler.Text, Text: "one"}}}
	}
	return nil
}

// TestANodeReportsAtOnceThatItIsReady, and not as late as the next report is due.
func TestANodeReportsAtOnceThatItIsReady(t *testing.T) {
	n := emptyNode(t)
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: greeting{}})
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, m.Exchange(t.Context()))
	registry := &filling{}
	n.config.Meter, n.config.Registry = m, registry
	synctest.Test(t, func(t *testing.T) {
		var reports []writer.Report
		answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var said writer.Report
			_ = json.NewDecoder(r.Body).Decode(&said)
			reports = append(reports, said)
			w.Header().Set(writer.RequestIDHeader, "made-up")
			_, _ = io.WriteString(w, "{}")
		})
		client := writer.NewClient("http://writer.internal", "token", &http.Client{Transport: writer.InProcess(answer)})
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Report(Reporter{Client: client}).Run(ctx) }()
		time.Sleep(recheckInterval / 2)
		registry.filled.Store(true)
		time.Sleep(recheckInterval)
		synctest.Wait()
		require.Len(t, reports, 2)
		require.Contains(t, reports[0].Ready, "no release yet")
		require.Empty(t, reports[1].Ready)
		time.Sleep(reportInterval - recheckInterval)
		require.Len(t, reports, 2, "the next one is due later")
		end()
		require.NoError(t, <-ended)
	})
}

// TestADialEndsBeforeItsReport does, so that the report says what was wrong.
func TestADialEndsBeforeItsReport(t *testing.T) {
	require.Greater(t, dialLimit, time.Second, "a packet is sent again after a second")
	require.Less(t, dialLimit, reportTimeout)
}

// TestANodeRunsTheEngineThatWasChosen, once for a registry of metrics, and leaves the garbage collector to the
// operator who has set it.
func TestANodeRunsTheEngineThatWasChosen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for engine, component := range map[string]bool{Wazero: true, Native: false} {
		debug.SetGCPercent(100)
		t.Setenv("GOGC", map[bool]string{true: "", false: "100"}[component])
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		config := emptyNode(t).config
		config.Access = replicaOf(t, time.Now(), nil, 0)
		config.Engine, config.Metrics, config.Lookups, config.MetricsListener = engine, prometheus.NewRegistry(), listener, listener
		n, err := New(t.Context(), config)
		require.NoError(t, err)
		require.Equal(t, map[bool]int{true: servingGCPercent, false: 100}[component], debug.SetGCPercent(100))
		require.Equal(t, server.DefaultMaxInFlight, n.config.MaxInFlight)
		require.Len(t, n.Services(), 3)
		n.config.MetricsListener = nil
		require.Len(t, n.Services(), 2)
		families, err := config.Metrics.Gather()
		require.NoError(t, err)
		require.Equal(t, component, slices.ContainsFunc(families, func(f *client.MetricFamily) bool { return f.GetName() == "regedge_instances_busy" }))
		require.True(t, slices.ContainsFunc(families, func(f *client.MetricFamily) bool { return f.GetName() == "regedge_replica_age_seconds" }))
		_, err = New(t.Context(), config)
		require.ErrorContains(t, err, "duplicate")
		config.Metrics, config.MaxInFlight = prometheus.NewRegistry(), 3
		limited, err := New(t.Context(), config)
		require.NoError(t, err)
		require.Equal(t, 3, limited.config.MaxInFlight)
		require.NoError(t, limited.closeEngine(t.Context()))
		require.NoError(t, n.closeEngine(t.Context()))
	}
}

// TestTheEngineIsClosedAfterItsLookups, though the context of the service has ended by then.
func TestTheEngineIsClosedAfterItsLookups(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config := emptyNode(t).config
	config.Engine, config.Metrics, config.Lookups = Native, prometheus.NewRegistry(), listener
	n, err := New(t.Context(), config)
	require.NoError(t, err)
	failed := errors.New("it can't be closed")
	n.closeEngine = func(ctx context.Context) error {
		require.NoError(t, ctx.Err())
		_, err := net.Dial("tcp", listener.Addr().String())
		require.Error(t, err, "nothing is looked up any more")
		return failed
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, n.Services()[1].Run(ctx), failed)
}

// hangs is a database that does not answer.
type hangs struct{ Database }

func (hangs) Query(ctx context.Context, _ string, _ []handler.Value, _ *handler.Result) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestADatabaseThatHangsHoldsUpNoCheck: a load balancer and a scrape get their answer in time.
func TestADatabaseThatHangsHoldsUpNoCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Node{config: Config{Access: hangs{}, Registry: hangs{}}}
		began := time.Now()
		require.ErrorIs(t, n.Ready(), context.DeadlineExceeded)
		require.Equal(t, readyTimeout, time.Since(began))
		began = time.Now()
		releaseMetric{n}.Collect(nil)
		require.Equal(t, readyTimeout, time.Since(began))
	})
}

// TestAReportThatHangsEndsWithItsNode.
func TestAReportThatHangsEndsWithItsNode(t *testing.T) {
	n := emptyNode(t)
	synctest.Test(t, func(t *testing.T) {
		silent := roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- n.Report(Reporter{Client: writer.NewClient("http://writer.internal", "token", &http.Client{Transport: silent})}).Run(ctx)
		}()
		synctest.Wait()
		began := time.Now()
		end()
		require.NoError(t, <-ended)
		require.Zero(t, time.Since(began))
	})
}

// roundTrip is a transport in this process.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
