package sqld

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/replicate/registry/libsql"
	"regedge/schema"
)

// entriesCall is a call whose answer lasts as long as the replica follows.
const entriesCall = "/wal_log.ReplicationLog/LogEntries"

// relayed is a relay between a client, in the server's place, and a primary.
type relayed struct {
	*relay
	t      *testing.T
	client *http.Client
	url    string
	log    *testkit.Log
	sent   *atomic.Int64 // bytes that the primary has sent
}

// relayTo opens a relay to a handler.
func relayTo(t *testing.T, primary http.HandlerFunc) *relayed {
	t.Helper()
	web := httptest.NewUnstartedServer(primary)
	web.Config.Protocols = onlyHTTP2()
	sent := new(atomic.Int64)
	web.Listener = counting{web.Listener, sent}
	web.Start()
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	r := relayOf(t, &Config{Primary: web.URL}, time.Minute)
	r.sent = sent
	return r
}

func relayOf(t *testing.T, config *Config, patience time.Duration) *relayed {
	t.Helper()
	r := &relayed{t: t, log: new(testkit.Log)}
	near := &http.Transport{Protocols: onlyHTTP2()}
	if config.Link != nil {
		var err error
		near.TLSClientConfig, err = config.Link.load()
		require.NoError(t, err)
	}
	var err error
	r.relay, err = openRelay(config, newOutput(r.log), patience)
	require.NoError(t, err)
	t.Cleanup(r.relay.close)
	t.Cleanup(near.CloseIdleConnections)
	r.client, r.url = &http.Client{Transport: near, Timeout: time.Minute}, config.Primary
	return r
}

// counting counts what connections send.
type counting struct {
	net.Listener
	sent *atomic.Int64
}

func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return countingConn{conn, c.sent}, err
}

type countingConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// call makes a call as a replica does.
func (r *relayed) call(path string) (*http.Response, error) {
	return r.client.Post(r.url+path, "application/grpc", nil)
}

// answer makes a call that must be answered.
func (r *relayed) answer(path string) *http.Response {
	r.t.Helper()
	answer, err := r.call(path)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// TestAPrimaryThatSaysNothingIsLeft, so that sqld asks again: it would wait for an answer without an end.
func TestAPrimaryThatSaysNothingIsLeft(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	files := new(TLSFiles)
	files.CA, files.Cert, files.Key, err = pki.Link(t.TempDir())
	require.NoError(t, err)
	r := relayOf(t, &Config{Dir: t.TempDir(), Primary: "https://" + silent.Addr().String(), TLS: files, Link: files}, time.Second)
	r.fetcher.answer = time.Second / 2
	for _, path := range []string{helloCall, entriesCall} {
		require.Equal(t, strconv.Itoa(unavailable), r.answer(path).Header.Get("Grpc-Status"), path)
	}
	require.Contains(t, r.log.String(), "takes connections and says nothing")
	require.Contains(t, r.log.String(), "TLS handshake timeout")

	plain := relayOf(t, &Config{Primary: "http://" + silent.Addr().String()}, 500*time.Millisecond)
	require.Equal(t, strconv.Itoa(unavailable), plain.answer(entriesCall).Header.Get("Grpc-Status"))
}

// TestACallMayBeSilentAfterItsFirstWord: a replica waits for the next change, however long that takes.
func TestACallMayBeSilentAfterItsFirstWord(t *testing.T) {
	const patience = time.Second // a busy machine takes some of it to answer a ping
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "one")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(2 * patience)
		_, _ = io.WriteString(w, "two")
	}))
	web.Config.Protocols = onlyHTTP2()
	web.Start()
	defer web.Close()
	r := relayOf(t, &Config{Primary: web.URL}, patience)
	heard, err := io.ReadAll(r.answer(entriesCall).Body)
	require.NoError(t, err)
	require.Equal(t, "onetwo", string(heard))
}

// TestTheLogCrossesTheNetworkCompressed, each piece at once, and with what follows the answer.
func TestTheLogCrossesTheNetworkCompressed(t *testing.T) {
	page := []byte(strings.Repeat("MADE-UP TEA COMPANY PRIVATE LIMITED|ACTIVE|", 100))
	next := make(chan bool)
	r := relayTo(t, func(w http.ResponseWriter, call *http.Request) {
		if !wantsPieces(call) {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		out := inPieces(w)
		_ = http.NewResponseController(out).Flush()
		for range next {
			_, _ = out.Write(page)
			_ = http.NewResponseController(out).Flush()
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})
	answer := r.answer(entriesCall)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Empty(t, answer.Header.Get("Content-Encoding"))
	heard := make([]byte, len(page))
	for range 50 {
		next <- true
		_, err := io.ReadFull(answer.Body, heard)
		require.NoError(t, err)
		require.Equal(t, page, heard)
	}
	close(next)
	rest, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, "0", answer.Trailer.Get("Grpc-Status"))
	require.Less(t, r.sent.Load(), int64(50*len(page)/4))
}

// TestACallThatTheServerGivesUpEndsAtThePrimary: it would keep one of each replica that is gone, with its place in the log.
func TestACallThatTheServerGivesUpEndsAtThePrimary(t *testing.T) {
	begun, ended := make(chan bool), make(chan bool)
	r := relayTo(t, func(w http.ResponseWriter, call *http.Request) {
		if call.URL.Path == entriesCall {
			_, _ = inPieces(w).Write([]byte("first"))
			_ = http.NewResponseController(w).Flush()
		}
		begun <- true
		<-call.Context().Done()
		ended <- true
	})
	for name, path := range map[string]string{"before its answer": helloCall, "in the middle of it": entriesCall} {
		ctx, cancel := context.WithCancel(t.Context())
		call, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+path, nil)
		require.NoError(t, err)
		heard := make(chan error, 1)
		go func() {
			answer, err := r.client.Do(call)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
			}
			heard <- err
		}()
		<-begun
		cancel()
		require.ErrorIs(t, <-heard, context.Canceled, name)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			require.Fail(t, "the call goes on", name)
		}
	}
}

// TestACallThatTheServerGivesUpIsNoErrorOfThePrimary: it was reached.
func TestACallThatTheServerGivesUpIsNoErrorOfThePrimary(t *testing.T) {
	begun := make(chan bool)
	r := relayTo(t, func(_ http.ResponseWriter, call *http.Request) {
		begun <- true
		<-call.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan bool)
	go func() {
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, helloCall, nil).WithContext(ctx))
		close(served)
	}()
	<-begun
	cancel()
	<-served
	require.Empty(t, r.log.String())
}

// TestAPrimaryMayNotCompress: one of an earlier version does not.
func TestAPrimaryMayNotCompress(t *testing.T) {
	r := relayTo(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "as it is") })
	heard, err := io.ReadAll(r.answer(entriesCall).Body)
	require.NoError(t, err)
	require.Equal(t, "as it is", string(heard))
}

// TestADamagedPieceEndsTheCall: the server must not take what came before it for all.
func TestADamagedPieceEndsTheCall(t *testing.T) {
	random := make([]byte, 2*pieceWindow)
	_, _ = rand.Read(random)
	var large bytes.Buffer
	encoder, err := zstd.NewWriter(&large, zstd.WithWindowSize(2*pieceWindow))
	require.NoError(t, err)
	_, err = encoder.Write(random)
	require.NoError(t, err)
	require.NoError(t, encoder.Close())
	for name, piece := range map[string][]byte{
		"no piece": []byte("nothing that was compressed"), "half a piece": pieceEncoder().EncodeAll(random[:1000], nil)[:500],
		"more memory than a piece may take": large.Bytes(),
	} {
		t.Run(name, func(t *testing.T) {
			r := relayTo(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = inPieces(w).Write([]byte("whole"))
				_, _ = w.Write(piece)
			})
			heard, err := io.ReadAll(r.answer(entriesCall).Body)
			require.Error(t, err)
			require.Equal(t, "whole", string(heard[:min(len(heard), 5)]))
		})
	}
}

// TestAHeldRelayPassesNothingOn, until it is released; it is not held beside a server that takes nothing.
func TestAHeldRelayPassesNothingOn(t *testing.T) {
	words := make(chan []byte)
	r := relayTo(t, func(w http.ResponseWriter, call *http.Request) {
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case word := <-words:
				_, _ = w.Write(word)
				_ = http.NewResponseController(w).Flush()
			case <-call.Context().Done():
				return
			}
		}
	})
	body := r.answer(entriesCall).Body
	heard := make(chan string)
	go func() {
		for range 2 {
			word := make([]byte, len("first"))
			_, _ = io.ReadFull(body, word)
			heard <- string(word)
		}
	}()
	for _, word := range []string{"first", "later"} {
		require.True(t, r.hold())
		words <- []byte(word)
		select {
		case got := <-heard:
			require.Fail(t, "passed on while held", got)
		case <-time.After(50 * time.Millisecond):
		}
		r.release()
		require.Equal(t, word, <-heard)
	}
	words <- make([]byte, 64<<20) // more than all buffers take
	require.Eventually(t, func() bool {
		free := r.held.TryLock()
		if free {
			r.held.Unlock()
		}
		return !free
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool {
		held := r.hold()
		if held { // between two pieces
			r.release()
		}
		return !held
	}, time.Minute, time.Millisecond)
}

// TestALogIsEmptiedWhileTheRelayIsHeld: a server that can't write meanwhile would copy its database anew.
func TestALogIsEmptiedWhileTheRelayIsHeld(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data")
	db, err := schema.OpenFile(file)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec("CREATE TABLE probe (n INTEGER)")
	require.NoError(t, err)
	server := &run{relay: &relay{}}
	server.relay.held.RLock() // it is given something
	_, err = server.emptyLog(file, 0)
	require.ErrorIs(t, err, errLogInUse)
	server.relay.held.RUnlock()
	freed, err := server.emptyLog(file, 0)
	require.NoError(t, err)
	require.Positive(t, freed)
	require.True(t, server.relay.held.TryLock(), "it is released")
	server.relay.held.Unlock()

	_, err = db.Exec("INSERT INTO probe VALUES (1)")
	require.NoError(t, err)
	ended := &run{relay: &relay{}, ended: make(chan struct{})}
	close(ended.ended)
	_, err = ended.emptyLog(file, 0)
	require.ErrorIs(t, err, errLogInUse, "another process may have the files")
}

// TestOnlyTheServerMayUseTheRelay: with its certificate one copies the database.
func TestOnlyTheServerMayUseTheRelay(t *testing.T) {
	files, other := new(TLSFiles), new(TLSFiles)
	for _, f := range []*TLSFiles{files, other} {
		var err error
		f.CA, f.Cert, f.Key, err = pki.Link(t.TempDir())
		require.NoError(t, err)
	}
	r := relayOf(t, &Config{Dir: t.TempDir(), Primary: "https://127.0.0.1:1", TLS: other, Link: files}, time.Second)
	require.Equal(t, strconv.Itoa(unavailable), r.answer(entriesCall).Header.Get("Grpc-Status"), "nobody is there")
	require.Equal(t, strconv.Itoa(permissionDenied), r.answer("/proxy.Proxy/Execute").Header.Get("Grpc-Status"), "the primary is not asked")
	content, err := os.ReadFile(files.CA)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other.CA, content, 0o600)) // it trusts the relay
	config, err := other.load()
	require.NoError(t, err)
	for name, change := range map[string]func(){"another's certificate": func() {}, "none": func() { config.Certificates = nil }} {
		change()
		stranger := &http.Client{Transport: &http.Transport{Protocols: onlyHTTP2(), TLSClientConfig: config.Clone()}}
		_, err := stranger.Post(r.url+entriesCall, "application/grpc", nil)
		require.Error(t, err, name)
	}
}

// TestAFetchGoesOnThoughTheServerGivesItsCallUp: it asks again each second or so, and a large database takes minutes.
func TestAFetchGoesOnThoughTheServerGivesItsCallUp(t *testing.T) {
	o := offer(t)
	f, _ := fetcherOf(t, o.ServeHTTP)
	r := &relay{fetcher: f, ctx: t.Context(), output: newOutput(t.Output())}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, helloCall, nil))
	require.Len(t, f.fetched, 1)
	require.Equal(t, beginning{o.log, 7}, <-f.fetched)
}

// firstOnly is a listener that serves one connection, once it is let in, and closes all others.
type firstOnly struct {
	net.Listener
	came, letIn chan struct{}
	others      atomic.Int64
	first       sync.Once
}

func (l *firstOnly) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		served := false
		l.first.Do(func() { served = true })
		if served {
			close(l.came)
			return lateConn{conn, l.letIn}, nil
		}
		l.others.Add(1)
		conn.Close()
	}
}

type lateConn struct {
	net.Conn
	letIn chan struct{}
}

func (c lateConn) Read(p []byte) (int, error) {
	<-c.letIn
	return c.Conn.Read(p)
}

// TestAReplicaFollowsAPrimaryToWhichItConnectsSlowly, as behind an address or a name server that does not answer: sqld gives each
// call up after some seconds. The next one finds the connection, on which questions are asked, too.
func TestAReplicaFollowsAPrimaryToWhichItConnectsSlowly(t *testing.T) {
	primary := &firstOnly{came: make(chan struct{}), letIn: make(chan struct{})}
	f, _ := fetcherOf(t, func(w http.ResponseWriter, call *http.Request) {
		if call.URL.Path == basePath {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		refuse(w, unavailable, "reached")
	}, func(web *httptest.Server) { primary.Listener, web.Listener = web.Listener, primary })
	link := new(TLSFiles)
	var err error
	link.CA, link.Cert, link.Key, err = pki.Link(t.TempDir())
	require.NoError(t, err)
	r := relayOf(t, &Config{Dir: f.dir, Primary: strings.TrimSuffix(f.url, basePath), TLS: f.tls, Link: link}, time.Minute)

	call, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(call, http.MethodPost, r.url+helloCall, nil)
	require.NoError(t, err)
	given := make(chan error)
	go func() { _, err := r.client.Do(request); given <- err }()
	<-primary.came
	cancel()
	require.ErrorIs(t, <-given, context.Canceled)
	close(primary.letIn)
	for range 3 {
		require.Equal(t, "reached", r.answer(helloCall).Header.Get("Grpc-Message"))
	}
	require.Zero(t, primary.others.Load(), "a question needs no connection of its own")
}

// TestACallThatTheServerGivesUpWaitsForNoOther: while nothing answers, they would become more and more.
func TestACallThatTheServerGivesUpWaitsForNoOther(t *testing.T) {
	asked := make(chan struct{})
	f, _ := fetcherOf(t, func(_ http.ResponseWriter, call *http.Request) {
		close(asked)
		<-call.Context().Done()
	})
	ctx, end := context.WithCancel(t.Context())
	r := &relay{fetcher: f, ctx: ctx, output: newOutput(t.Output())}
	var calls sync.WaitGroup
	serve := func(ctx context.Context) {
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, helloCall, nil))
	}
	calls.Go(func() { serve(t.Context()) })
	<-asked
	givenUp, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan struct{})
	calls.Go(func() { serve(givenUp); close(done) })
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("it waits for the one that is not answered")
	}
	end()
	calls.Wait()
}

// TestARelayWithoutCertificatesPassesNoQuestionsOn: one that is under way when the primary is lost would never be answered.
func TestARelayWithoutCertificatesPassesNoQuestionsOn(t *testing.T) {
	r := relayTo(t, func(w http.ResponseWriter, call *http.Request) { refuse(w, unavailable, call.URL.Path) })
	require.Equal(t, entriesCall, r.answer(entriesCall).Header.Get("Grpc-Message"))
	refused := r.answer("/proxy.Proxy/StreamExec")
	require.Equal(t, strconv.Itoa(permissionDenied), refused.Header.Get("Grpc-Status"))
	require.Equal(t, libsql.OnlyReplication, refused.Header.Get("Grpc-Message"))
}

// TestAClosedRelayFetchesNothing: the next one writes to the same file.
func TestAClosedRelayFetchesNothing(t *testing.T) {
	f, _ := fetcherOf(t, func(w http.ResponseWriter, call *http.Request) {
		w.Header().Set("Content-Type", baseType)
		w.Header().Set("Etag", beginning{}.ID.tag())
		w.Header().Set(firstField, "1")
		w.Header().Set(bytesField, "1000000")
		_ = http.NewResponseController(w).Flush()
		<-call.Context().Done() // it sends nothing more
	})
	link := new(TLSFiles)
	var err error
	link.CA, link.Cert, link.Key, err = pki.Link(t.TempDir())
	require.NoError(t, err)
	r := relayOf(t, &Config{Dir: f.dir, Primary: strings.TrimSuffix(f.url, basePath), TLS: f.tls, Link: link}, time.Minute)
	go func() {
		if answer, err := r.call(helloCall); err == nil {
			answer.Body.Close()
		}
	}()
	require.Eventually(t, func() bool { return exists(fetchedPath(f.dir)) }, time.Minute, time.Millisecond)
	r.close()
	require.NoFileExists(t, fetchedPath(f.dir))
}

// TestAPrimaryThatIsReachedAgainIsNoted, so that the same reason is logged when it is gone once more.
func TestAPrimaryThatIsReachedAgainIsNoted(t *testing.T) {
	r := relayTo(t, func(http.ResponseWriter, *http.Request) {})
	for range 2 {
		r.tell(errSaysNothing)
		r.answer(entriesCall)
	}
	require.Equal(t, 2, strings.Count(r.log.String(), errSaysNothing.Error()))
}

// TestAConnectionThatEndsAgainAndAgainIsLoggedOnce, though each has another port on this side: sqld asks every second,
// for as long as the primary is away behind a load balancer.
func TestAConnectionThatEndsAgainAndAgainIsLoggedOnce(t *testing.T) {
	log := new(testkit.Log)
	r := &relay{output: newOutput(log), ctx: t.Context()}
	for port := range 3 {
		lost := &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 40000 + port}, Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 5181}, Err: syscall.ECONNRESET}
		r.tell(fmt.Errorf("http2: %w", lost))
	}
	require.Equal(t, "regedge: the primary is not reached: http2: read tcp 192.0.2.9:5181: connection reset by peer\n", log.String())
}
