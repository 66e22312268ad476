package sqld

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"regedge/replicate/registry/freeport"
	"regedge/replicate/registry/libsql"
)

// replicationCalls are the calls by which a replica copies its primary's log. sqld serves others on
// the same port, proxy.Proxy, by which a replica forwards statements: they take locks with a token
// that may only read, and believe the caller's own word that it may write.
var replicationCalls = map[string]bool{
	helloCall:                                 true,
	"/wal_log.ReplicationLog/LogEntries":      true,
	"/wal_log.ReplicationLog/BatchLogEntries": true,
	"/wal_log.ReplicationLog/Snapshot":        true,
}

// helloCall is the call by which a replica asks which log there is.
const helloCall = "/wal_log.ReplicationLog/Hello"

const (
	// callsAtOnce is how many calls of one certificate are served at once. A replica makes one or
	// two; after lost connections there may be as many old ones until pingTimeout, and of
	// HTTP/1.1, which has no pings, until stuckTimeout.
	callsAtOnce = 32
	// callBytes bounds the message of a call: a position in the log.
	callBytes   = 4 << 10
	headerBytes = 16 << 10
	// linkIdle is how long a connection to sqld is kept without a call.
	linkIdle = 10 * time.Second
	// handshakeTimeout bounds the TLS handshake too.
	handshakeTimeout = 10 * time.Second
	pingTimeout      = 15 * time.Second
	idleTimeout      = 2 * time.Minute
	// stuckTimeout ends a connection whose client reads nothing.
	stuckTimeout = time.Minute
)

// The status codes of gRPC with which the gate answers, or a server that knows no bases.
const (
	permissionDenied  = 7
	resourceExhausted = 8
	unimplemented     = 12
	unavailable       = 14
)

// loopback is where a server listens behind its gate. Its port stays reserved while the gate is open:
// the kernel could else give it away before the server starts.
const loopback = "127.0.0.1"

// gate is the replication port of a primary. It passes replicationCalls to sqld, which listens behind
// it on the loopback and accepts the gate's certificate only, serves the base of the log by itself (basePath), and
// refuses every other call.
type gate struct {
	dir     string // of the primary
	mirror  *Mirror
	target  string // host:port of sqld
	release func() // gives the port of target up
	link    *tls.Config
	web     *http.Server
	output  *output
	served  chan struct{} // closed when it has stopped

	mu    sync.Mutex
	calls map[string]int // in progress, by the serial number of the certificate
	told  time.Time      // when a refusal was last logged, see tell
	// follows are the certificates, by serial number, whose replicas have said that they follow the log.
	follows map[string]bool
}

// openGate listens on config.GRPC with config.TLS, and gives sqld another address with config.Link.
func openGate(config *Config, output *output) (*gate, error) {
	edges, err := config.TLS.load()
	if err != nil {
		return nil, err
	}
	link, err := config.Link.load()
	if err != nil {
		return nil, err
	}
	listener, err := config.listen(config.GRPC)
	if err != nil {
		return nil, err
	}
	g := &gate{dir: config.Dir, mirror: config.Mirror, link: link, output: output, served: make(chan struct{}), calls: make(map[string]int), follows: make(map[string]bool)}
	if g.target, g.release, err = freeport.Reserve(loopback); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	config.GRPC, config.TLS = g.target, config.Link
	g.web = g.server(edges)
	counted := config.Traffic.listener(listener)
	go func() {
		defer close(g.served)
		_ = g.web.ServeTLS(counted, "", "") // until close
	}()
	return g, nil
}

// listen listens for a gate.
func (c *Config) listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err == nil && c.Bound != nil {
		listener = c.Bound(listener)
	}
	return listener, err
}

// close ends all calls. A nil gate is closed.
func (g *gate) close() {
	if g != nil {
		_ = g.web.Close()
		<-g.served
		g.release()
	}
}

func (g *gate) server(edges *tls.Config) *http.Server {
	protocols := onlyHTTP2()
	protocols.SetHTTP1(true)
	faster := edges.Clone()
	faster.NextProtos = fasterFirst
	edges.GetConfigForClient = func(client *tls.ClientHelloInfo) (*tls.Config, error) {
		if len(client.SupportedProtos) > 0 && client.SupportedProtos[0] == fasterFirst[0] {
			return faster, nil
		}
		return nil, nil
	}
	return &http.Server{
		Handler: g, TLSConfig: edges, Protocols: protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: callsAtOnce, SendPingTimeout: pingTimeout, PingTimeout: pingTimeout,
			WriteByteTimeout: stuckTimeout,
		},
		ReadHeaderTimeout: handshakeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes, ErrorLog: log.New(g.output, "regedge: ", 0),
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, g.connect())
		},
	}
}

// onlyHTTP2 is what sqld speaks, with TLS or without.
func onlyHTTP2() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// fasterFirst are the protocols of a client that asks for the base alone, by its preference, which a gate follows; gRPC needs
// HTTP/2. To send 60 MB to a replica, which reads more slowly than the primary sends, took 0.107 s of the primary's processor time by
// HTTP/2, whose windows then part it into small frames, and takes 0.037 s by HTTP/1.1 (2026-11-30).
var fasterFirst = []string{"http/1.1", "h2"}

// connection is an edge's connection to the gate. Each has its own to sqld, so that one closed by sqld
// for its calls ends no other.
type connection struct {
	proxy  *httputil.ReverseProxy
	logged sync.Once
}

type connectionKey struct{}

func (g *gate) connect() *connection {
	return &connection{proxy: &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: g.link.Clone(), Protocols: onlyHTTP2(), IdleConnTimeout: linkIdle},
		Rewrite: func(r *httputil.ProxyRequest) {
			// Only the path that was compared, without a query or another spelling.
			r.Out.URL = &url.URL{Scheme: "https", Host: g.target, Path: r.In.URL.Path}
			r.Out.Host = ""
		},
		FlushInterval: -1, // each frame of the log at once
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			refuse(w, unavailable, "the primary does not answer")
		},
		ErrorLog: log.New(io.Discard, "", 0), // discards the errors when sqld was restarted or is gone: the replica asks again
	}}
}

// ServeHTTP serves one call. TLS has verified the certificate.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connectionKey{}).(*connection)
	from := r.TLS.PeerCertificates[0]
	ofBase := r.Method == http.MethodGet && r.URL.Path == basePath
	if r.ProtoMajor == 1 {
		answer := newBounded(w)
		defer answer.end()
		w = answer
	}
	if !ofBase && (r.ProtoMajor == 1 || r.Method != http.MethodPost || !replicationCalls[r.URL.Path]) {
		c.logged.Do(func() {
			g.output.say(fmt.Sprintf("refused %q a call that is not replication: writes and transactions need the primary's own address", from.Subject.CommonName))
		})
		refuse(w, permissionDenied, libsql.OnlyReplication)
		return
	}
	who := from.SerialNumber.String()
	if !g.enter(who) {
		refuse(w, resourceExhausted, "too many calls at once with this certificate")
		return
	}
	defer g.leave(who)
	r.Body = http.MaxBytesReader(w, r.Body, callBytes)
	switch {
	case ofBase:
		g.serveBase(w, r, from.Subject.CommonName, who)
	case g.lacksBase(r, who):
		g.refuseCopy(w, r, from.Subject.CommonName)
	case g.isBehind(r):
		g.refuseAhead(w, r, from.Subject.CommonName)
	case wantsPieces(r):
		c.proxy.ServeHTTP(inPieces(w), r)
	default:
		c.proxy.ServeHTTP(w, r)
	}
}

// bounded is the answer to a request by HTTP/1.1. It ends when its client reads nothing for stuckTimeout, as the server's
// HTTP/2 does by itself.
type bounded struct {
	http.ResponseWriter
	control *http.ResponseController
}

// newBounded makes the last answer of its connection, which also ends when the client holds back a body that nobody reads.
func newBounded(w http.ResponseWriter) bounded {
	w.Header().Set("Connection", "close")
	return bounded{w, http.NewResponseController(w)}
}

// Write implements io.Writer.
func (b bounded) Write(p []byte) (int, error) {
	_ = b.control.SetWriteDeadline(time.Now().Add(stuckTimeout))
	return b.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (b bounded) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b bounded) end() { _ = b.control.SetReadDeadline(time.Now().Add(handshakeTimeout)) }

// lacksBase reports whether a call comes from a replica that can't follow the log because that begins at a base: the
// replica has not said, with its certificate, that it follows this log, or it asks for frames before the log. sqld
// would remove the replica's database when it finds another log.
func (g *gate) lacksBase(r *http.Request, who string) bool {
	b, err := currentBase(g.dir)
	if errors.Is(err, errNoBase) {
		return false
	}
	if r.URL.Path == helloCall {
		g.mu.Lock()
		defer g.mu.Unlock()
		return !g.follows[who]
	}
	call, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(call))
	return err == nil && nextFrame(call) < b.First
}

// isBehind reports whether a call asks for frames beyond the end of the log: the primary's directory was set back, as
// by yesterday's copy. sqld would let the replica wait, and later send it other frames under the numbers of those that
// it has.
func (g *gate) isBehind(r *http.Request) bool {
	if r.URL.Path == helloCall {
		return false
	}
	call, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(call))
	if err != nil || nextFrame(call) == 0 {
		return false
	}
	_, next, err := readLog(primaryLog(g.dir))
	return err == nil && nextFrame(call) > next
}

// refuseAhead refuses a replica that has more than the primary. The replica then copies the database anew.
func (g *gate) refuseAhead(w http.ResponseWriter, r *http.Request, from string) {
	g.tell(fmt.Sprintf("refused %q: it has more than this primary, whose directory was set back, as by a copy of an earlier day; an up-to-date regedge replica copies it anew", from))
	pauseRefused(r)
	refuse(w, unavailable, logIsBehind)
}

// logIsBehind is the answer to a replica that has more than its primary.
const logIsBehind = "the log ends before that frame"

// tell logs a refusal, unless one was logged within refusedEvery.
func (g *gate) tell(line string) {
	g.mu.Lock()
	say := time.Since(g.told) > refusedEvery
	if say {
		g.told = time.Now()
	}
	g.mu.Unlock()
	if say {
		g.output.say(line)
	}
}

// pauseRefused makes a client wait that was refused.
func pauseRefused(r *http.Request) {
	select {
	case <-time.After(refusedPause):
	case <-r.Context().Done():
	}
}

// nextFrame is the field next_offset of a LogOffset, with which a replica asks for the log: field 1, a number, after
// the five bytes that begin a gRPC message (protocol buffers, "Encoding"). It is 0 without that field.
func nextFrame(call []byte) uint64 {
	const prefix, tag = 5, 1 << 3
	if len(call) <= prefix || call[prefix] != tag {
		return 0
	}
	next, _ := binary.Uvarint(call[prefix+1:])
	return next
}

// refuseCopy refuses a replica that has no base, and ends its connection, so that it asks for the base on the next one.
// A replica of an earlier version can't do that, and tries again at once.
func (g *gate) refuseCopy(w http.ResponseWriter, r *http.Request, from string) {
	g.tell(fmt.Sprintf("refused %q a copy page by page: the log begins at a compressed database, which an up-to-date regedge replica fetches", from))
	pauseRefused(r)
	w.Header().Set("Connection", "close")
	refuse(w, unavailable, "the log begins at a compressed database: upgrade regedge replica")
}

const (
	// refusedEvery is the least time between two log lines about refused replicas; refusedPause is how long a refused
	// one waits.
	refusedEvery = time.Minute
	refusedPause = 250 * time.Millisecond
)

const (
	// basePath is the path of the base of a primary's log, at its replication port.
	basePath = "/base"
	// baseType is its type (RFC 8878, section 7.1).
	baseType = "application/zstd"
	// firstField is the header field with the number of the first frame of the log that begins at the base.
	firstField = "Regedge-First-Frame"
	// bytesField is the one with the size of the database, in bytes.
	bytesField = "Regedge-Database-Bytes"
)

// serveBase sends the base, whose entity tag is the id of the log that begins there: 200, 206 (RFC 9110, section 14), 304
// to a replica that follows that log, 404 where the log begins with an empty database, 503 when the base can't be read.
// Content-Location (section 8.7) says where a mirror has it.
func (g *gate) serveBase(w http.ResponseWriter, r *http.Request, to, who string) {
	b, err := currentBase(g.dir)
	if errors.Is(err, errNoBase) {
		http.Error(w, "the log begins with an empty database", http.StatusNotFound)
		return
	}
	var file *os.File
	if err == nil {
		file, err = os.Open(filepath.Join(g.dir, baseFolder, baseData))
	}
	if err != nil {
		g.output.say(fmt.Sprintf("can't send the compressed database to %q: %v", to, err))
		http.Error(w, "the primary can't read its compressed database", http.StatusServiceUnavailable)
		return
	}
	defer file.Close()
	if r.Header.Get("If-None-Match") == b.Log.tag() {
		g.mu.Lock()
		g.follows[who] = true
		g.mu.Unlock()
	}
	w.Header().Set("Content-Type", baseType)
	w.Header().Set("Etag", b.Log.tag())
	w.Header().Set("Repr-Digest", b.digest())
	if at := g.mirror.address(b); at != "" {
		w.Header().Set("Content-Location", at)
	}
	w.Header().Set(firstField, strconv.FormatUint(b.First, 10))
	w.Header().Set(bytesField, strconv.FormatInt(b.Bytes, 10))
	http.ServeContent(w, r, "", time.Time{}, file)
}

func (g *gate) enter(who string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls[who] >= callsAtOnce {
		return false
	}
	g.calls[who]++
	return true
}

func (g *gate) leave(who string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls[who]--; g.calls[who] == 0 {
		delete(g.calls, who)
	}
}

// refuse answers a call with a status of gRPC and nothing else.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", strconv.Itoa(status))
	w.Header().Set("Grpc-Message", message)
	w.WriteHeader(http.StatusOK)
}

// serverName is in the certificate of every primary, whatever its address; sqld's replicas verify it.
const serverName = "sqld"

// load returns a configuration for both ends, each of which verifies the other's certificate.
func (f *TLSFiles) load() (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate %s: %w", f.Cert, err)
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", f.CA)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: pool, ClientCAs: pool, ServerName: serverName,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}, nil
}
