package edge_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/handler/ident"
	"regedge/host/edge"
	"regedge/host/hint"
	"regedge/host/server"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sampletest"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// serving is a node on the native engine whose lookups are served, with the sample and a writer that is away.
type serving struct {
	*edge.Node
	addr    string
	metrics *prometheus.Registry
}

func serve(t *testing.T, change func(*edge.Config)) serving {
	t.Helper()
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: unreachable{}})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	registry, err := edge.OpenFile(t.Context(), schema.Registry, sampletest.Registry(t))
	require.NoError(t, err)
	t.Cleanup(func() { registry.Close() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	config := edge.Config{
		Engine: edge.Native, Lookups: listener, Access: openAccess(t), Registry: registry, Meter: m,
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	}
	change(&config)
	node, err := edge.New(t.Context(), config)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	services := node.Services()
	go func() { stopped <- services[len(services)-1].Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-stopped)
	})
	return serving{node, listener.Addr().String(), config.Metrics}
}

// ask looks up a company on a connection of its own.
func (s serving) ask(t *testing.T, key string) (status int) {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	defer conn.Close()
	return askOn(t, conn, key)
}

// askOn looks up a company on a connection; 0 if it is closed without an answer.
func askOn(t *testing.T, conn net.Conn, key string) (status int) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, _ = io.WriteString(conn, "GET /v1/companies/"+sampletest.CompanyEveryField+" HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+key+"\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	return response.StatusCode
}

// TestANodeTakesAsManyConnectionsAsItsOperatorAllows, in all and of one address.
func TestANodeTakesAsManyConnectionsAsItsOperatorAllows(t *testing.T) {
	for name, change := range map[string]func(*edge.Config){
		"in all":         func(c *edge.Config) { c.MaxConnections = 1 },
		"of one address": func(c *edge.Config) { c.MaxConnectionsPerAddress = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, change)
			conn, err := net.Dial("tcp", s.addr)
			require.NoError(t, err)
			defer conn.Close()
			require.Equal(t, 200, askOn(t, conn, ident.SandboxKey))
			require.Zero(t, s.ask(t, ident.SandboxKey))
			require.Equal(t, 200, askOn(t, conn, ident.SandboxKey), "the first goes on")
		})
	}
}

// hanging is a database whose statements hang until they are let go.
type hanging struct {
	edge.Database
	entered chan struct{}
	letGo   <-chan struct{}
}

func (h hanging) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	select {
	case h.entered <- struct{}{}:
		<-h.letGo
	default: // one hangs, others don't
	}
	return h.Database.Query(ctx, statement, args, dst)
}

// TestARegistryThatHangsTakesNoOtherMetricFromAScrape: those say that the disk hangs.
func TestARegistryThatHangsTakesNoOtherMetricFromAScrape(t *testing.T) {
	letGo := make(chan struct{})
	defer close(letGo)
	s := serve(t, func(c *edge.Config) { c.Registry = hanging{c.Registry, make(chan struct{}, 1), letGo} })
	scraped := make(chan int, 1)
	go func() {
		list, _ := s.metrics.Gather()
		scraped <- len(list)
	}()
	select {
	case metrics := <-scraped:
		require.NotZero(t, metrics)
	case <-time.After(30 * time.Second):
		t.Fatal("a scrape waits for the disk")
	}
}

// TestANodeAnswersAsManyRequestsAtOnceAsItsOperatorAllows.
func TestANodeAnswersAsManyRequestsAtOnceAsItsOperatorAllows(t *testing.T) {
	entered, letGo := make(chan struct{}, 1), make(chan struct{})
	s := serve(t, func(c *edge.Config) {
		c.MaxInFlight = 1
		c.Registry = hanging{c.Registry, entered, letGo}
	})
	first := make(chan int, 1)
	go func() { first <- s.ask(t, ident.SandboxKey) }()
	require.Eventually(t, func() bool { return len(entered) == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, 503, s.ask(t, ident.SandboxKey))
	close(letGo)
	require.Equal(t, 200, <-first)
}

// TestWhoWasRefusedIsRefusedWithoutTheEngine, which costs less.
func TestWhoWasRefusedIsRefusedWithoutTheEngine(t *testing.T) {
	s := serve(t, func(*edge.Config) {})
	for range 3 {
		require.Equal(t, 401, s.ask(t, unknownKey))
	}
	require.Equal(t, "2", scrape(s.metrics)["regedge_requests_screened_total"])
}

// TestAnInstanceAnswersOneRequestAfterTheOther: to make one costs as much as many lookups.
func TestAnInstanceAnswersOneRequestAfterTheOther(t *testing.T) {
	s := serve(t, func(c *edge.Config) { c.Engine = edge.Wazero })
	for range 3 {
		require.Equal(t, 200, s.ask(t, ident.SandboxKey))
	}
	require.Equal(t, "1", scrape(s.metrics)["regedge_instances_created_total"])
	require.Equal(t, "0", scrape(s.metrics)["regedge_instances_discarded_total"])
}

// TestWhatANodeItselfRefusesIsExplainedAtItsPages.
func TestWhatANodeItselfRefusesIsExplainedAtItsPages(t *testing.T) {
	s := serve(t, func(c *edge.Config) { c.DocsURL = "https://docs.example" })
	conn, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "no request\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(answer), `"type":"https://docs.example/problems/invalid_request"`)
}

// TestANodeIsServedAsItsOperatorChose: with TLS, behind a proxy, with pages, and with problems that lead to them.
func TestANodeIsServedAsItsOperatorChose(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	proxies, err := server.ParseProxies([]string{"127.0.0.1"})
	require.NoError(t, err)
	log := new(testkit.Log)
	s := serve(t, func(c *edge.Config) {
		c.TLS, c.Proxies, c.DocsURL = &tls.Config{Certificates: web.TLS.Certificates}, proxies, "https://docs.example"
		c.Pages = func(r *httprouter.Router) {
			r.GET("/guides", func(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) { _, _ = io.WriteString(w, "a guide") })
		}
		c.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	client := web.Client()
	get := func(path string) (status int, body string) {
		request, err := http.NewRequest(http.MethodGet, "https://"+s.addr+path, nil)
		require.NoError(t, err)
		request.Header.Set("X-Forwarded-For", "192.0.2.9")
		response, err := client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(content)
	}
	status, body := get("/guides")
	require.Equal(t, 200, status)
	require.Equal(t, "a guide", body)
	status, body = get("/v1/companies/" + sampletest.CompanyEveryField)
	require.Equal(t, 401, status)
	require.Contains(t, body, `"type":"https://docs.example/problems/missing_api_key"`)
	status, body = get("/readyz")
	require.Equal(t, 503, status)
	require.Contains(t, body, meter.ErrNoEpoch.Error())
	require.Eventually(t, func() bool { return strings.Count(log.String(), "client=192.0.2.9") == 3 }, time.Minute, time.Millisecond)
	client.CloseIdleConnections()
}

// TestTheWriterGetsTheRequestsOfAKey, also those that were refused and the last ones before a stop, and the node its new tokens.
func TestTheWriterGetsTheRequestsOfAKey(t *testing.T) {
	s := serve(t, func(*edge.Config) {})
	require.Equal(t, 503, s.ask(t, liveKey), "the writer is away")
	require.Equal(t, 200, s.ask(t, ident.SandboxKey))
	sent, renewed := make(chan []byte, 1), make(chan string, 1)
	way := &http.Client{Transport: writer.InProcess(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "made-up")
		if r.URL.Path == writer.RequestsPath {
			body, _ := io.ReadAll(r.Body)
			sent <- body
		}
		_, _ = io.WriteString(w, `{"read_tokens":{"access":"newer"}}`)
	}))}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var once sync.Once
	go func() {
		ended <- s.Report(edge.Reporter{Client: writer.NewClient("http://writer", "token", way), Renew: func(database, token string) {
			once.Do(func() { renewed <- database + " " + token })
		}}).Run(ctx)
	}()
	var body []byte
	select {
	case body = <-sent:
	case <-time.After(time.Minute):
		t.Error("no requests were sent")
	}
	require.Equal(t, 503, s.ask(t, liveKey))
	stop()
	require.NoError(t, <-ended)
	require.Len(t, sent, 1, "those since the last report")
	require.Equal(t, "access newer", <-renewed)
	var served []writer.Served
	require.NoError(t, json.Unmarshal(body, &served), "%s", body)
	require.Len(t, served, 1)
	require.EqualValues(t, 7, served[0].Key)
	require.Equal(t, 503, served[0].Status)
}

// TestTheLastRequestsAreSentThoughTheStopCutsAReportOff, or the sending of those before: the writer takes its time.
func TestTheLastRequestsAreSentThoughTheStopCutsAReportOff(t *testing.T) {
	for name, cutOff := range map[string]int{"the report after the first": 3, "the first requests": 2} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(*edge.Config) {})
			require.Equal(t, 503, s.ask(t, liveKey))
			ctx, stop := context.WithCancel(t.Context())
			var calls, served atomic.Int64
			way := &http.Client{Transport: writer.InProcess(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set(writer.RequestIDHeader, "made-up")
				if calls.Add(1) == int64(cutOff) {
					assert.Equal(t, 503, s.ask(t, liveKey))
					stop()
					select {
					case <-r.Context().Done():
						return
					case <-time.After(100 * time.Millisecond):
					}
				}
				if r.URL.Path == writer.RequestsPath {
					var list []writer.Served
					assert.NoError(t, json.NewDecoder(r.Body).Decode(&list))
					served.Add(int64(len(list)))
				}
				_, _ = io.WriteString(w, `{}`)
			}))}
			require.NoError(t, s.Report(edge.Reporter{Client: writer.NewClient("http://writer", "token", way)}).Run(ctx))
			require.EqualValues(t, 2, served.Load())
		})
	}
}

// TestProfilesAreServedOnlyWhereTheyAreAskedFor.
func TestProfilesAreServedOnlyWhereTheyAreAskedFor(t *testing.T) {
	for profiles, want := range map[bool]int{true: 200, false: 404} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		s := serve(t, func(c *edge.Config) { c.MetricsListener, c.Profiles = listener, profiles })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Services()[1].Run(ctx) }()
		response, err := http.Get("http://" + listener.Addr().String() + "/debug/pprof/")
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode)
		stop()
		require.NoError(t, <-ended)
	}
}

// TestTheDiskOfTheStateIsNamedSo: the alarm for a disk that fills up says which directory is on it.
func TestTheDiskOfTheStateIsNamedSo(t *testing.T) {
	metrics := prometheus.NewRegistry()
	m, err := edge.OpenMeter(metrics, meter.Config{State: t.TempDir(), Writer: unreachable{}})
	require.NoError(t, err)
	defer m.Close()
	require.Contains(t, scrape(metrics), `regedge_disk_free_bytes{directory="state"}`)
}

// TestAFileWithoutTablesSaysWhatFillsIt.
func TestAFileWithoutTablesSaysWhatFillsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	_, err = db.Exec("PRAGMA user_version = 1")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = edge.OpenFile(t.Context(), schema.Registry, path)
	require.ErrorIs(t, err, schema.ErrEmpty)
	require.Equal(t, "regedge import fills the registry database", hint.Of(err))
}

// TestARevokedKeyIsSeenSoon: what the owner commits is read with the next transaction, which lasts for 10 ms.
func TestARevokedKeyIsSeenSoon(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, dir, path string) (edge.Database, error){
		"a file": func(t *testing.T, _, path string) (edge.Database, error) {
			return edge.OpenFile(t.Context(), schema.Access, path)
		},
		"a replica": func(t *testing.T, dir, _ string) (edge.Database, error) {
			away, err := libsql.Open("http://127.0.0.1:1", "")
			require.NoError(t, err)
			return edge.OpenReplica(edge.ReplicaConfig{
				Database: schema.Access, Dir: dir, Endpoint: away, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				path := accessIn(t, dir)
				owner, err := schema.OpenFile(path)
				require.NoError(t, err)
				defer owner.Close()
				opened, err := open(t, dir, path)
				require.NoError(t, err)
				defer opened.Close()
				accounts := func() int64 {
					var result handler.Result
					require.NoError(t, opened.Query(t.Context(), "SELECT count(*) FROM account", nil, &result))
					return result.Values[0].Int
				}
				require.Zero(t, accounts())
				_, err = owner.Exec("INSERT INTO account (id, plan, suspended) VALUES (1, 'scale', 0)")
				require.NoError(t, err)
				time.Sleep(11 * time.Millisecond)
				require.EqualValues(t, 1, accounts())
			})
		})
	}
}

// TestANodeThatIsRetiredSaysBoth: what the meter was told, and that the token is refused.
func TestANodeThatIsRetiredSaysBoth(t *testing.T) {
	centre := newBenchCentre(t)
	made, err := centre.client.AddNode(t.Context(), "east")
	require.NoError(t, err)
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: meter.OverHTTP("http://writer", made.Token, centre.way)})
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, m.Exchange(t.Context()))
	_, err = centre.client.RetireNode(t.Context(), "east", false)
	require.NoError(t, err)
	require.NoError(t, m.Exchange(t.Context()))
	s := serve(t, func(c *edge.Config) { c.Meter = m })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Report(edge.Reporter{Client: writer.NewClient("http://writer", "of-another-node", centre.way)}).Run(ctx)
	}()
	const refused = "the writer refuses this node's token"
	require.Eventually(t, func() bool { return strings.Contains(s.Ready().Error(), refused) }, time.Minute, time.Millisecond)
	require.ErrorIs(t, s.Ready(), meter.ErrRetired)
	stop()
	require.NoError(t, <-ended)
}

// accessIn makes the file of a replica of the access database, and returns its path.
func accessIn(t *testing.T, dir string) string {
	t.Helper()
	path := sqld.File(dir)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	_, err = db.Exec(`INSERT INTO plan VALUES ('scale', 1, 3, 1000000, 1, 1)`)
	require.NoError(t, err)
	_, err = db.Exec(`INSERT INTO heartbeat VALUES (1, ?)`, time.Now().UnixMilli())
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return path
}
