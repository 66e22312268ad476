package sqld_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
)

// gated is a primary behind a gate, with certificates for its replicas.
type gated struct {
	*sqld.Server
	t     *testing.T
	log   *testkit.Log
	trust *pki.Trust
	files *sqld.TLSFiles // of replicas
	link  *sqld.TLSFiles // of replicas with their relays
}

func startGated(t *testing.T) *gated {
	t.Helper()
	return startMirrored(t, nil)
}

func startMirrored(t *testing.T, mirror *sqld.Mirror) *gated {
	t.Helper()
	trust, err := pki.Create(filepath.Join(t.TempDir(), "trust"), time.Now)
	require.NoError(t, err)
	return startGatedOf(t, trust, mirror)
}

func startGatedOf(t *testing.T, trust *pki.Trust, mirror *sqld.Mirror) *gated {
	t.Helper()
	dir := t.TempDir()
	files := func(name string, hosts ...string) *sqld.TLSFiles {
		cert, key, err := trust.Certificate(name, hosts...)
		require.NoError(t, err)
		return &sqld.TLSFiles{CA: trust.AuthorityFile(), Cert: cert, Key: key}
	}
	link := func(name string) *sqld.TLSFiles {
		f := new(sqld.TLSFiles)
		var err error
		f.CA, f.Cert, f.Key, err = pki.Link(filepath.Join(dir, name))
		require.NoError(t, err)
		return f
	}
	g := &gated{t: t, log: &testkit.Log{}, trust: trust, files: files("edge"), link: link("relay")}
	g.Server = sqldtest.Start(t, sqld.Config{
		Dir: filepath.Join(dir, "primary"), HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t),
		TLS: files("primary", "127.0.0.1"), Link: link("link"), Mirror: mirror, Log: g.log,
	})
	return g
}

// replica starts a replica, in a new directory if dir is empty.
func (g *gated) replica(dir string) (*sqld.Server, *testkit.Log) {
	g.t.Helper()
	log, scheme := &testkit.Log{}, "https://"
	if g.files == nil {
		scheme = "http://"
	}
	return sqldtest.Start(g.t, sqld.Config{
		Dir: dir, HTTP: testkit.FreePort(g.t), Primary: scheme + g.GRPC, TLS: g.files, Link: g.link, Relay: true, Log: log,
		Traffic: new(sqld.Traffic),
	}), log
}

// handOver gives the primary a database with a number, and waits until it is served.
func (g *gated) handOver(number int) {
	g.t.Helper()
	require.NoError(g.t, sqld.Seed(g.Dir).Put(seedOf(g.t, number, "wal"), nil))
	require.Eventually(g.t, func() bool {
		return strings.Contains(g.answer(readNumber), fmt.Sprintf(`"value":"%d"`, number))
	}, patience, 50*time.Millisecond)
}

const readNumber = "SELECT n FROM probe"

// answer asks in one request, with its end, since the driver ends a statement afterwards. It is empty where nobody answers.
func (g *gated) answer(sql string) string {
	asked := fmt.Sprintf(`{"requests": [{"type": "execute", "stmt": {"sql": %q}}, {"type": "close"}]}`, sql)
	answer, err := http.Post(g.URL()+"/v2/pipeline", "application/json", strings.NewReader(asked))
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	content, _ := io.ReadAll(answer.Body)
	return string(content)
}

// number is the number that the primary has.
func (g *gated) number() (number int64) {
	g.t.Helper()
	_, text, found := strings.Cut(g.answer(readNumber), `"value":"`)
	require.True(g.t, found)
	_, err := fmt.Sscan(text[:strings.IndexByte(text, '"')], &number)
	require.NoError(g.t, err)
	return number
}

// seedOf makes a database of some thousand pages with a number.
func seedOf(t *testing.T, number int, mode string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "made")
	made, err := sqlite3.Open(file)
	require.NoError(t, err)
	require.NoError(t, made.Exec("PRAGMA journal_mode = "+mode+"; CREATE TABLE probe (n INTEGER); CREATE TABLE pad (id INTEGER PRIMARY KEY, text)"))
	insert, _, err := made.Prepare("INSERT INTO probe VALUES (?)")
	require.NoError(t, err)
	require.NoError(t, errors.Join(insert.BindInt(1, number), insert.Exec(), insert.Close()))
	require.NoError(t, made.Exec("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000) INSERT INTO pad SELECT n, hex(randomblob(100)) FROM c"))
	require.NoError(t, made.Close())
	return file
}

const copied = "copied the database"

// times returns how often a log has a text.
func times(log *testkit.Log, text string) int { return strings.Count(log.String(), text) }

// TestAReplicaStartsFromABase: a database that was handed over reaches replicas as one compressed file, whether they had
// another one or nothing, and what is written afterwards by the log. The primary keeps no copy of its pages for them.
func TestAReplicaStartsFromABase(t *testing.T) {
	t.Parallel()
	g := startGated(t)
	sqldtest.Exec(t, g.Server, "CREATE TABLE probe (n INTEGER)", "INSERT INTO probe VALUES (1)")
	near, log := g.replica("")
	follows(t, near, 1)
	require.Zero(t, times(log, copied), "a log that begins with an empty database is followed")

	for number := 2; number < 4; number++ {
		g.handOver(number)
		follows(t, near, int64(number))
		require.Equal(t, number-1, times(log, copied), log.String())
	}
	require.NoDirExists(t, filepath.Join(filepath.Dir(sqld.File(g.Dir)), "snapshots"))
	sqldtest.Exec(t, g.Server, "UPDATE probe SET n = 4", "DELETE FROM pad WHERE id % 3 = 0")
	late, lateLog := g.replica("")
	for _, server := range []*sqld.Server{near, late} {
		follows(t, server, 4)
		sqldtest.RequireIntact(t, sqld.File(server.Dir))
	}
	require.Equal(t, 1, times(lateLog, copied))

	g.Stop()
	require.NoError(t, g.Start())
	sqldtest.Await(t, g.Server, "")
	sqldtest.Exec(t, g.Server, "UPDATE probe SET n = 5")
	for _, server := range []*sqld.Server{near, late} {
		follows(t, server, 5)
	}
	late.Stop()
	sqldtest.Exec(t, g.Server, "UPDATE probe SET n = 6")
	require.NoError(t, late.Start())
	follows(t, late, 6)
	require.Equal(t, 2, times(log, copied), "the log goes on after a restart of the primary")
	require.Equal(t, 1, times(lateLog, copied), "and of the replica")
}

// TestAKilledPrimaryHasNoBase: sqld begins another log then, which replicas copy page by page.
func TestAKilledPrimaryHasNoBase(t *testing.T) {
	t.Parallel()
	g := startGated(t)
	g.handOver(1)
	near, log := g.replica("")
	follows(t, near, 1)
	sqldtest.Exec(t, g.Server, "UPDATE probe SET n = 2")
	g.Kill()
	require.NoError(t, g.Start())
	sqldtest.Await(t, g.Server, "")
	sqldtest.Exec(t, g.Server, "UPDATE probe SET n = 3")
	late, lateLog := g.replica("")
	follows(t, near, 3)
	follows(t, late, 3)
	require.NoDirExists(t, filepath.Join(g.Dir, "base"))
	require.Equal(t, 1, times(log, copied))
	require.Zero(t, times(lateLog, copied))
	g.handOver(4)
	follows(t, near, 4)
	require.Equal(t, 2, times(log, copied))
}

// TestAPrimaryThatIsAskedWhileItStopsGoesOnWithItsLog: after a late request, sqld leaves the sign of a killed server.
func TestAPrimaryThatIsAskedWhileItStopsGoesOnWithItsLog(t *testing.T) {
	t.Parallel()
	g := startGated(t)
	g.handOver(0)
	near, log := g.replica("")
	for range 8 {
		follows(t, near, g.number())
		var asking sync.WaitGroup
		stopped := make(chan struct{})
		for _, sql := range []string{readNumber, readNumber, readNumber, "UPDATE probe SET n = n + 1"} {
			asking.Go(func() {
				for {
					select {
					case <-stopped:
						return
					default:
					}
					if g.answer(sql) == "" {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		require.Eventually(t, func() bool { return g.answer(readNumber) != "" }, patience, time.Millisecond)
		g.Stop()
		close(stopped)
		asking.Wait()
		require.NoError(t, g.Start())
		sqldtest.Await(t, g.Server, "")
	}
	follows(t, near, g.number())
	sqldtest.RequireIntact(t, sqld.File(near.Dir))
	late, lateLog := g.replica("")
	follows(t, late, g.number())
	require.Equal(t, 1, times(log, copied), log.String())
	require.Equal(t, 1, times(lateLog, copied), lateLog.String())
}

// TestAPrimaryStopsInOrderBesideItsReplicas: a replica that was told that the log is closed asked at once for more of it. sqld
// opened its database again for that and did not end, one time in six: it was killed, and every replica copied it anew.
func TestAPrimaryStopsInOrderBesideItsReplicas(t *testing.T) {
	t.Parallel()
	g := startGated(t)
	sqldtest.Exec(t, g.Server, "CREATE TABLE probe (n INTEGER)", "INSERT INTO probe VALUES (0)")
	near, log := g.replica("")
	for number := range 12 {
		sqldtest.Exec(t, g.Server, fmt.Sprintf("UPDATE probe SET n = %d", number))
		follows(t, near, int64(number))
		g.Stop()
		require.False(t, sqld.Killed(g.Dir), g.log.String())
		require.NoError(t, g.Start())
		sqldtest.Await(t, g.Server, "")
	}
	require.Zero(t, times(log, "incompatible logs"), log.String())
	near.Stop()
	require.Zero(t, times(log, ".sentinel"), "a file that no replica has")
}

// TestALostBaseBeginsTheLogAnew: nobody could follow it from its beginning.
func TestALostBaseBeginsTheLogAnew(t *testing.T) {
	t.Parallel()
	g := startGated(t)
	g.handOver(1)
	sqldtest.Exec(t, g.Server, "UPDATE probe SET n = 2")
	g.Stop()
	require.NoError(t, os.RemoveAll(filepath.Join(g.Dir, "base")))
	require.NoError(t, g.Start())
	sqldtest.Await(t, g.Server, "")
	near, log := g.replica("")
	follows(t, near, 2)
	sqldtest.RequireIntact(t, sqld.File(near.Dir))
	require.Zero(t, times(log, copied))
	g.Stop()
	require.NoError(t, g.Start())
	sqldtest.Await(t, g.Server, "")
	sqldtest.Exec(t, g.Server, "UPDATE probe SET n = 3")
	follows(t, near, 3)
	require.LessOrEqual(t, times(g.log, "is lost"), 1, "once, or never where sqld has begun another log by itself")
}

// TestADamagedBaseIsNotTaken: the replica keeps what it has, and says why.
func TestADamagedBaseIsNotTaken(t *testing.T) {
	g := startGated(t)
	g.handOver(1)
	kept, keptLog := g.replica("")
	follows(t, kept, 1)
	data := filepath.Join(g.Dir, "base", "data.zst")
	whole, err := os.ReadFile(data)
	require.NoError(t, err)
	for name, harm := range map[string]func(content []byte) []byte{
		"a bit":   func(content []byte) []byte { content[len(content)/2] ^= 4; return content },
		"the end": func(content []byte) []byte { return content[:len(content)-100] },
		"more":    func(content []byte) []byte { return append(content, 0) },
		"another": func([]byte) []byte { return []byte("nothing that was compressed") },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(data, harm(append([]byte(nil), whole...)), 0o600))
			log := &testkit.Log{}
			server := &sqld.Server{Config: sqld.Config{
				Program: g.Program, Dir: filepath.Join(t.TempDir(), "replica"), HTTP: testkit.FreePort(t), Primary: "https://" + g.GRPC, TLS: g.files, Link: g.link, Relay: true, Log: log,
			}}
			require.NoError(t, server.Start())
			t.Cleanup(server.Kill)
			require.Eventually(t, func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_ = server.Await(ctx, "") // it begins when it is asked
				return times(log, "can't copy the database") > 0
			}, patience, 20*time.Millisecond)
			t.Log(log.String())
			require.Zero(t, times(log, copied))
			_, err := os.Stat(filepath.Join(server.Dir, "fetched.part"))
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
	}
	require.Equal(t, 1, times(keptLog, copied))
	sqldtest.Exec(t, g.Server, "UPDATE probe SET n = 2")
	follows(t, kept, 2)
}

// TestASeedWithARollbackJournalIsPutIntoWALMode: replicas would lock their databases, and answer nothing for ever.
func TestASeedWithARollbackJournalIsPutIntoWALMode(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *gated{
		"with a base": startGated,
		"without": func(t *testing.T) *gated {
			return &gated{Server: sqldtest.Primary(t), t: t, log: &testkit.Log{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t)
			require.NoError(t, sqld.Seed(g.Dir).Put(seedOf(t, 1, "delete"), nil))
			follows(t, g.Server, 1)
			near, _ := g.replica("")
			follows(t, near, 1)
			header, err := os.ReadFile(sqld.File(near.Dir))
			require.NoError(t, err)
			require.Equal(t, []byte{2, 2}, header[18:20])
			sqldtest.RequireIntact(t, sqld.File(near.Dir))
		})
	}
}

// TestAReplicaThatCannotFetchABaseIsToldWhy: one of an earlier version.
func TestAReplicaThatCannotFetchABaseIsToldWhy(t *testing.T) {
	t.Parallel()
	g := startGated(t)
	g.handOver(1)
	log := &testkit.Log{}
	old := &sqld.Server{Config: sqld.Config{
		Program: g.Program, Dir: filepath.Join(t.TempDir(), "replica"), HTTP: testkit.FreePort(t), Primary: "https://" + g.GRPC, TLS: g.files, Log: log,
	}}
	require.NoError(t, old.Start())
	t.Cleanup(old.Kill)
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_ = old.Await(ctx, "")
		return times(log, "upgrade regedge replica") > 0
	}, patience, 20*time.Millisecond)
	require.Equal(t, 1, times(g.log, `refused "edge" a copy page by page`))
}

// TestAReplicaFetchesTheBaseOfALogThatBeganMeanwhile: between its question and its connection another primary came.
func TestAReplicaFetchesTheBaseOfALogThatBeganMeanwhile(t *testing.T) {
	t.Parallel()
	before := startGated(t)
	before.handOver(1)
	after := startGatedOf(t, before.trust, nil)
	after.handOver(2)
	near, log := before.replica("")
	follows(t, near, 1)
	near.Stop()

	near.Primary = firstThen(t, before, after)
	require.NoError(t, near.Start())
	follows(t, near, 2)
	require.Equal(t, 2, times(log, copied), log.String())
	require.Positive(t, times(after.log, "a copy page by page"), "the case")
	require.Zero(t, times(log, "incompatible logs"), "sqld has not removed its database")
	sqldtest.RequireIntact(t, sqld.File(near.Dir))
}

// firstThen passes the first question on to one primary, ends its connection, and passes everything else on to another one.
func firstThen(t *testing.T, first, then *gated) (address string) {
	authority, err := os.ReadFile(first.trust.AuthorityFile())
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authority))
	edge, err := tls.LoadX509KeyPair(first.files.Cert, first.files.Key)
	require.NoError(t, err)
	cert, key, err := first.trust.Certificate("between", "127.0.0.1")
	require.NoError(t, err)
	own, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	far := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{edge}}}
	t.Cleanup(far.CloseIdleConnections)
	var asked atomic.Bool
	web := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Transport: far, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(call *httputil.ProxyRequest) {
			to := then
			if asked.CompareAndSwap(false, true) {
				to = first
			}
			call.SetURL(&url.URL{Scheme: "https", Host: to.GRPC})
		},
		ModifyResponse: func(answer *http.Response) error {
			if answer.Request.URL.Host == first.GRPC {
				answer.Header.Set("Connection", "close")
			}
			return nil
		},
	})
	web.EnableHTTP2, web.TLS = true, &tls.Config{Certificates: []tls.Certificate{own}}
	web.StartTLS()
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL
}

// TestWhatAPrimaryChangesIsSentCompressed.
func TestWhatAPrimaryChangesIsSentCompressed(t *testing.T) {
	g := startGated(t)
	g.handOver(1)
	way, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer way.Close()
	var sent atomic.Int64
	go func() {
		for {
			near, err := way.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", g.GRPC)
			if err != nil {
				near.Close()
				continue
			}
			go func() { defer far.Close(); _, _ = io.Copy(far, near) }()
			go func() { defer near.Close(); _, _ = io.Copy(counted{near, &sent}, far) }()
		}
	}()
	replica := sqldtest.Start(t, sqld.Config{
		HTTP: testkit.FreePort(t), Primary: "https://" + way.Addr().String(), TLS: g.files, Link: g.link, Relay: true, Log: &testkit.Log{},
	})
	follows(t, replica, 1)
	before := sent.Load()
	const rows, size = 500, 3000
	sqldtest.Exec(t, g.Server, "CREATE TABLE word (w TEXT)")
	sqldtest.Exec(t, g.Server, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO word SELECT substr(replace(printf('%%.400c', 'x'), 'x', 'COMPANY ' || i), 1, %d) FROM n`, rows, size))
	sqldtest.Exec(t, g.Server, "UPDATE probe SET n = 2")
	follows(t, replica, 2)
	require.Greater(t, sent.Load()-before, int64(1000))
	require.Less(t, sent.Load()-before, int64(rows*size/2))
}

// counted counts what is written.
type counted struct {
	io.Writer
	all *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.all.Add(int64(n))
	return n, err
}

// TestAReplicaThatHasMoreThanItsPrimaryIsCopiedAnew: the primary's directory is yesterday's. sqld would have the replica wait for
// the frames after those that it has, and add them to another history.
func TestAReplicaThatHasMoreThanItsPrimaryIsCopiedAnew(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*gated){
		"from a base": func(g *gated) { g.handOver(1) },
		"from an empty database": func(g *gated) {
			sqldtest.Exec(t, g.Server, "CREATE TABLE probe (n INTEGER)", "INSERT INTO probe VALUES (1)")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := startGated(t)
			begin(g)
			near, log := g.replica("")
			follows(t, near, 1)
			yesterday := filepath.Join(t.TempDir(), "yesterday")
			g.Stop()
			require.NoError(t, os.CopyFS(yesterday, os.DirFS(g.Dir)))
			require.NoError(t, g.Start())
			sqldtest.Await(t, g.Server, "")
			for number := 2; number <= 9; number++ { // a frame each
				sqldtest.Exec(t, g.Server, fmt.Sprintf("UPDATE probe SET n = %d", number))
			}
			follows(t, near, 9)
			require.NotContains(t, log.String()+g.log.String(), "set back")

			g.Stop()
			require.NoError(t, os.RemoveAll(g.Dir))
			require.NoError(t, os.CopyFS(g.Dir, os.DirFS(yesterday)))
			require.NoError(t, g.Start())
			sqldtest.Await(t, g.Server, "")
			sqldtest.Exec(t, g.Server, "UPDATE probe SET n = 10")
			follows(t, near, 10)
			sqldtest.RequireIntact(t, sqld.File(near.Dir))
			require.Equal(t, 1, times(log, "the replica has more than its primary"), log.String())
			require.Equal(t, 1, times(g.log, "it has more than this primary"), g.log.String())
		})
	}
}
