package sqld

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"regedge/replicate/registry/libsql"
)

// relay passes a replica's calls on to its primary, and passes back the answers, which cross the network compressed
// (see pieces). It ends calls whose other side is gone or hangs. The replica itself would not notice: it waits for the
// next changes and sends nothing meanwhile, and the probes of sqld 0.24 take over ten minutes when unanswered. With TLS
// the server recognises the relay by config.Link, and the primary recognises it by config.TLS.
type relay struct {
	web     *http.Server
	far     *http.Transport
	output  *output
	told    atomic.Pointer[string] // the error that was logged last, nil once the primary was reached
	served  chan struct{}          // closed when it has stopped
	ctx     context.Context        // until close
	end     func()
	held    sync.RWMutex  // while it is locked, nothing of the primary is passed on
	fetcher *fetcher      // nil without certificates, which a gate asks for
	ahead   chan struct{} // has an element once the primary has said that the replica is ahead of it
	proxy   *httputil.ReverseProxy
}

// keepalive ends a connection after half a minute without a sign of the other side, as the gate of a primary
// does.
var keepalive = net.KeepAliveConfig{Enable: true, Idle: pingTimeout, Interval: 5 * time.Second, Count: 3}

// holdLimit is how long hold waits.
const holdLimit = time.Second

// lostAfter is how long sent data may stay unacknowledged, where the system supports such a limit.
const lostAfter = 30 * time.Second

// openRelay gives the server the relay's address as that of its primary. The primary may take patience until its first
// answer.
func openRelay(config *Config, output *output, patience time.Duration) (*relay, error) {
	to, err := url.Parse(config.Primary)
	if err != nil {
		return nil, err
	}
	r := &relay{output: output, served: make(chan struct{}), ahead: make(chan struct{}, 1)}
	r.ctx, r.end = context.WithCancel(context.Background())
	r.far = &http.Transport{
		Protocols: onlyHTTP2(), DialContext: config.Traffic.dial, TLSHandshakeTimeout: patience, IdleConnTimeout: linkIdle,
		HTTP2: &http.HTTP2Config{SendPingTimeout: patience, PingTimeout: patience},
	}
	var near *tls.Config
	if config.TLS != nil {
		if r.far.TLSClientConfig, err = config.TLS.load(); err != nil {
			return nil, err
		}
		if near, err = config.Link.load(); err != nil {
			return nil, err
		}
		r.fetcher = newFetcher(config, to, r.far, output)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, err
	}
	r.proxy = r.passOn(to)
	r.web = &http.Server{
		Handler: r, TLSConfig: near, Protocols: onlyHTTP2(), ReadHeaderTimeout: handshakeTimeout, MaxHeaderBytes: headerBytes,
		ErrorLog: log.New(output, "regedge: ", 0),
	}
	config.Primary = (&url.URL{Scheme: to.Scheme, Host: listener.Addr().String()}).String()
	serve := func() error { return r.web.Serve(listener) }
	if near != nil {
		config.TLS = config.Link
		serve = func() error { return r.web.ServeTLS(listener, "", "") }
	}
	go func() {
		defer close(r.served)
		_ = serve() // until close
	}()
	return r, nil
}

// passOn passes calls on to a primary.
func (r *relay) passOn(to *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: r.far,
		Rewrite: func(call *httputil.ProxyRequest) {
			call.Out.URL = &url.URL{Scheme: to.Scheme, Host: to.Host, Path: call.In.URL.Path}
			call.Out.Host = ""
			call.Out.Header.Set("Accept-Encoding", pieceCoding)
		},
		ModifyResponse: func(answer *http.Response) error {
			r.tell(nil)
			if answer.Header.Get("Grpc-Message") == logIsBehind {
				select {
				case r.ahead <- struct{}{}:
				default:
				}
			}
			return unpack(answer)
		},
		FlushInterval: -1, // each frame of the log at once
		ErrorHandler: func(w http.ResponseWriter, call *http.Request, err error) {
			if call.Context().Err() == nil { // otherwise the server has given the call up
				r.tell(err)
			}
			refuse(w, unavailable, "the primary is not reached")
		},
		ErrorLog: log.New(io.Discard, "", 0), // discards the end of a connection; the next call says why
	}
}

// ServeHTTP passes a call on. Before the server asks which log there is, the replica must be able to follow it.
func (r *relay) ServeHTTP(w http.ResponseWriter, call *http.Request) {
	// A replica that has no copy yet forwards the statements that it is asked. A gate would refuse these as an attack;
	// without a gate a statement would wait for ever if the primary is lost meanwhile.
	if !replicationCalls[call.URL.Path] {
		refuse(w, permissionDenied, libsql.OnlyReplication)
		return
	}
	if r.fetcher != nil && call.URL.Path == helloCall {
		if may, err := r.mayFollow(call.Context()); err != nil || !may {
			if err != nil {
				r.tell(err)
			}
			refuse(w, unavailable, "the replica does not follow the primary's log yet")
			return
		}
	}
	r.proxy.ServeHTTP(heldWriter{w, &r.held}, call)
}

// mayFollow asks the fetcher. A database is fetched to its end, even if the server gives its call up and asks again
// meanwhile.
func (r *relay) mayFollow(call context.Context) (bool, error) {
	if !r.fetcher.enter(call) {
		return false, nil
	}
	defer r.fetcher.leave()
	return r.fetcher.mayFollow(r.ctx)
}

// hold keeps back what the primary sends, until release. It reports false if the server accepts no data for holdLimit.
// A nil relay holds nothing.
func (r *relay) hold() bool {
	if r == nil {
		return true
	}
	// Waiting in Lock would make other connections wait as well.
	for began := time.Now(); !r.held.TryLock(); time.Sleep(time.Millisecond) {
		if time.Since(began) > holdLimit {
			return false
		}
	}
	return true
}

func (r *relay) release() {
	if r != nil {
		r.held.Unlock()
	}
}

// heldWriter writes while nobody holds the relay.
type heldWriter struct {
	http.ResponseWriter
	held *sync.RWMutex
}

// Write implements http.ResponseWriter. What it writes is on its way when it returns.
func (w heldWriter) Write(p []byte) (int, error) {
	w.held.RLock()
	defer w.held.RUnlock()
	n, err := w.ResponseWriter.Write(p)
	return n, errors.Join(err, http.NewResponseController(w.ResponseWriter).Flush())
}

// Unwrap is for http.ResponseController.
func (w heldWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ownEnd is this side of a connection in an error: its port is another each time.
var ownEnd = regexp.MustCompile(`\S+->`)

// tell logs why the primary is unreachable, once for each cause: sqld itself sees only that its connection ended.
func (r *relay) tell(err error) {
	switch {
	case err == nil:
		r.told.Store(nil)
	case r.ctx.Err() == nil:
		text := ownEnd.ReplaceAllString(err.Error(), "")
		if !errors.Is(err, errCopy) {
			text = "the primary is not reached: " + text
		}
		if before := r.told.Swap(&text); before == nil || *before != text {
			r.output.say(text)
		}
	}
}

// fetched receives the log of a base that was fetched; the server is then to be started again. From a nil relay it
// receives nothing.
func (r *relay) fetched() <-chan beginning {
	if r == nil || r.fetcher == nil {
		return nil
	}
	return r.fetcher.fetched
}

// isAhead receives an element when the replica is ahead of its primary. From a nil relay it receives nothing.
func (r *relay) isAhead() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.ahead
}

// close ends all connections. A nil relay is closed.
func (r *relay) close() {
	if r != nil {
		_ = r.web.Close()
		<-r.served
		r.end()
		if r.fetcher != nil {
			r.fetcher.wait()
		}
		r.far.CloseIdleConnections()
	}
}
