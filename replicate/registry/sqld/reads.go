package sqld

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"regedge/replicate/registry/freeport"
)

// Reads is a gate on the port for queries. It passes statements that touch no files to the server, which
// listens behind it and knows no token but the gate's own.
type Reads struct {
	KeyFile string // public key that the server knows
	Token   string // the only token that the other half of that key has signed
	// Admit reports whether a client's token is good. It is called concurrently.
	Admit func(token string) bool
	// Held may be nil. The caller closes it, after the server.
	Held Held
}

// fileFunctions are the functions and tables with which sqld 0.24 reads and writes files, with its own rights and even
// for a read-only token, or would load code. sha3_query is among them: it is the only function that runs a text as SQL,
// in which the names of the others could be pieced together, or a file attached. A statement can name them only
// literally, in any case: SQL has no escapes in names.
var fileFunctions = []string{"readfile", "writefile", "fsdir", "load_extension", "sqlite3mc_", "fts3_tokenizer", "sha3_query"}

// The paths of the gate: those that take statements in JSON, and the others.
var (
	statementPaths = map[string]bool{"/v2/pipeline": true, "/v3/pipeline": true, cursorPath: true}
	otherPaths     = map[string]bool{"/v2": true, "/v3": true, "/version": true, healthPath: true}
)

const (
	cursorPath = "/v3/cursor"
	// statementBytes bounds a request. The largest of the handler has some kilobytes.
	statementBytes = 1 << 20
	statementLimit = 30 * time.Second
	// healthPath tells anybody whether sqld answers, within healthLimit.
	healthPath  = "/health"
	healthLimit = 5 * time.Second
	// toldPause is the shortest time between two lines about refused statements.
	toldPause = time.Minute
)

// readGate is a Reads in front of a running server.
type readGate struct {
	*Reads
	proxy   *httputil.ReverseProxy
	inner   string // the server's own address
	release func() // frees that address
	web     *http.Server
	output  *output
	told    atomic.Int64    // when a refusal was logged, Unix nanoseconds
	served  chan struct{}   // closed when it has stopped
	ctx     context.Context // until close
	end     func()
	beside  sync.WaitGroup // goroutines that end with it
}

// openReads listens on config.HTTP, and gives the server another address and config.Reads' key. damaged gets
// an element when an answer says that the file is damaged.
func openReads(config *Config, output *output, damaged chan<- struct{}) (*readGate, error) {
	listener, err := config.listen(config.HTTP)
	if err != nil {
		return nil, err
	}
	inner, release, err := freeport.Reserve(loopback)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	config.HTTP, config.JWTKeyFile = inner, config.Reads.KeyFile
	g := &readGate{Reads: config.Reads, output: output, inner: inner, release: release, served: make(chan struct{})}
	g.ctx, g.end = context.WithCancel(context.Background())
	logger := log.New(output, "regedge: ", 0)
	g.proxy = &httputil.ReverseProxy{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = &url.URL{Scheme: "http", Host: inner, Path: r.In.URL.Path}
			r.Out.Host = ""
			r.Out.Header = g.header(r.In.Method)
		},
		FlushInterval: -1, // each row of a cursor at once
		ModifyResponse: func(answer *http.Response) error {
			watchAnswer(answer, func() {
				select {
				case damaged <- struct{}{}:
				default:
				}
			})
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			refuseQuery(w, http.StatusBadGateway, "the replica does not answer")
		},
		ErrorLog: logger,
	}
	g.web = &http.Server{
		Handler: g, ReadHeaderTimeout: handshakeTimeout, ReadTimeout: statementLimit, WriteTimeout: statementLimit + stuckTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes, ErrorLog: logger,
	}
	go func() {
		defer close(g.served)
		_ = g.web.Serve(listener) // until close
	}()
	if g.Held != nil {
		g.beside.Go(func() { g.every(g.Held.Refresh) })
		g.beside.Go(func() { g.every(g.wake) })
	}
	return g, nil
}

// header is what the server needs to know of a call.
func (g *readGate) header(method string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + g.Token}}
	if method == http.MethodPost {
		h.Set("Content-Type", "application/json")
	}
	return h
}

// close ends all calls. A nil gate is closed.
func (g *readGate) close() {
	if g != nil {
		_ = g.web.Close()
		<-g.served
		g.end()
		g.beside.Wait()
		g.release()
	}
}

// ServeHTTP serves one call.
func (g *readGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	statements := r.Method == http.MethodPost && statementPaths[r.URL.Path]
	if !statements && (r.Method != http.MethodGet || !otherPaths[r.URL.Path]) {
		g.tell("a call that is not " + http.MethodPost + " /v2/pipeline, /v3/pipeline or /v3/cursor")
		refuseQuery(w, http.StatusForbidden, "this port takes statements as JSON only")
		return
	}
	if r.URL.Path == healthPath { // a probe has no token; sqld asks for none there either
		ctx, cancel := context.WithTimeout(r.Context(), healthLimit)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body, r.ContentLength = http.NoBody, 0
		g.proxy.ServeHTTP(w, r)
		return
	}
	if token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !g.Admit(token) {
		refuseQuery(w, http.StatusUnauthorized, "the token is not good here")
		return
	}
	if statements {
		body, err := harmless(http.MaxBytesReader(w, r.Body, statementBytes))
		switch {
		case errors.Is(err, errTouchesFiles):
			g.tell("a statement: " + err.Error())
			refuseQuery(w, http.StatusForbidden, err.Error())
			return
		case err != nil:
			refuseQuery(w, http.StatusBadRequest, "the request is no JSON, or too long")
			return
		}
		if g.answerHeld(w, r, body) {
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	g.proxy.ServeHTTP(bounded{w, http.NewResponseController(w)}, r)
}

// tell logs a refusal, unless one was logged within toldPause, before or, if the clock was set back, after now.
func (g *readGate) tell(what string) {
	now, last := time.Now().UnixNano(), g.told.Load()
	if time.Duration(now-last).Abs() > toldPause && g.told.CompareAndSwap(last, now) {
		g.output.say("refused " + what)
	}
}

var errTouchesFiles = errors.New("a function that touches files")

// harmless reads a request and encodes it anew, so that the server reads exactly what was checked and waits for
// nothing. It returns an errTouchesFiles if a statement names one of fileFunctions.
func harmless(body io.Reader) ([]byte, error) {
	decoder := json.NewDecoder(body)
	decoder.UseNumber()
	var request any
	if err := decoder.Decode(&request); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	if name := touches(request); name != "" {
		return nil, fmt.Errorf("%w: %s", errTouchesFiles, name)
	}
	asOfNow(request)
	return json.Marshal(request)
}

// asOfNow removes from a request the frame of the primary's log that the client has seen, which Go's driver sends. sqld
// would wait for that frame without a limit, and after a primary was killed its new log may not reach it for days.
func asOfNow(part any) {
	switch part := part.(type) {
	case []any:
		for _, item := range part {
			asOfNow(item)
		}
	case map[string]any:
		delete(part, "replication_index")
		for _, item := range part {
			asOfNow(item)
		}
	}
}

// touches returns which of fileFunctions a part of a request names, outside the arguments of statements.
func touches(part any) string {
	switch part := part.(type) {
	case string:
		text := strings.ToLower(part)
		for _, name := range fileFunctions {
			if strings.Contains(text, name) {
				return name
			}
		}
	case []any:
		for _, item := range part {
			if name := touches(item); name != "" {
				return name
			}
		}
	case map[string]any:
		for key, value := range part {
			if key == "args" || key == "named_args" {
				continue
			}
			if name := touches(value); name != "" {
				return name
			}
		}
	}
	return ""
}

// refuseQuery answers as sqld does.
func refuseQuery(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}
