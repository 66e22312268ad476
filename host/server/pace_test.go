package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"regedge/handler"
	"regedge/handler/ident"
	"regedge/host/server"
)

// refused answers as one whose rate is used up.
var refused answerFunc = func(_ context.Context, q *handler.Request, a *handler.Response) error {
	if q.ClientAddr() == "127.0.0.1" {
		return fine(context.Background(), q, a)
	}
	a.Status = http.StatusTooManyRequests
	return nil
}

// http2Client is a connection that speaks frames.
type http2Client struct {
	*http2.Framer
	conn   net.Conn
	stream uint32
}

// http2 opens a connection whose streams have a window in bytes.
func (r *running) http2(t *testing.T, address string, window uint32) *http2Client {
	t.Helper()
	config := r.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2"}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}, Config: config}
	conn, err := dialer.DialContext(t.Context(), "tcp", r.addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	c := &http2Client{Framer: http2.NewFramer(conn, conn), conn: conn, stream: 1}
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, err = io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	require.NoError(t, c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
	return c
}

// send sends a request of header fields, given as "name: value", on a stream of its own.
func (c *http2Client) send(t *testing.T, fields ...string) (stream uint32) {
	t.Helper()
	stream = c.stream
	require.NoError(t, c.trySend(fields...))
	return stream
}

// trySend is send where the connection may end meanwhile.
func (c *http2Client) trySend(fields ...string) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		if err := encoder.WriteField(hpack.HeaderField{Name: name, Value: value}); err != nil {
			return err
		}
	}
	stream := c.stream
	c.stream += 2
	const most = 16 << 10 // of a frame
	fragment := block.Next(most)
	err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: fragment, EndStream: true, EndHeaders: block.Len() == 0})
	for err == nil && block.Len() > 0 {
		fragment = block.Next(most)
		err = c.WriteContinuation(stream, block.Len() == 0, fragment)
	}
	return err
}

// readASecond calls read, which counts what it reads from a connection, for a second, and on a busy machine until there
// are more than least.
func readASecond(t *testing.T, conn net.Conn, least int, read func() (int, error)) (got int) {
	t.Helper()
	for began := time.Now(); ; {
		until := began.Add(time.Minute)
		if got > least {
			until = began.Add(time.Second)
		}
		require.NoError(t, conn.SetReadDeadline(until))
		n, err := read()
		if err != nil {
			return got
		}
		got += n
	}
}

// readASecond counts frames of a type.
func (c *http2Client) readASecond(t *testing.T, least int, kind http2.FrameType) (got int) {
	t.Helper()
	return readASecond(t, c.conn, least, func() (int, error) {
		frame, err := c.ReadFrame()
		if err != nil || frame.Header().Type != kind {
			return 0, err
		}
		return 1, nil
	})
}

// TestWhoIsRefusedWithoutPauseIsHeldUp sends more requests than are answered, in a second.
func TestWhoIsRefusedWithoutPauseIsHeldUp(t *testing.T) {
	const sent, least, atOnce = 2000, 50, 300 // at most a hundred at once, twenty more in a second, and slack
	for name, c := range map[string]struct {
		start  starter
		target string
		key    string
	}{
		"plain, the sandbox": {start, "/v1/llps/a", ident.SandboxKey}, "plain, a live key": {start, "/v1/llps/a", liveKey(1)},
		"plain, pages": {start, "/healthz", ""}, "TLS, a live key": {startSecure, "/v1/llps/a", liveKey(1)},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.start(t, server.Config{Answerer: refused})
			conn, err := r.dialFrom("127.0.0.2")
			require.NoError(t, err)
			defer conn.Close()
			go io.WriteString(conn, strings.Repeat("GET "+c.target+" HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+c.key+"\r\n\r\n", sent))
			answers := bufio.NewReader(conn)
			got := readASecond(t, conn, least, func() (int, error) {
				line, err := answers.ReadString('\n')
				return strings.Count(line, "HTTP/1.1 "), err
			})
			require.Greater(t, got, least)
			require.Less(t, got, atOnce)
			require.Equal(t, 200, ask(r.from(t, "127.0.0.1", false), r.url+"/v1/llps/a", liveKey(2)))
			began := time.Now()
			require.NoError(t, r.stop(), "a stop ends it")
			require.Less(t, time.Since(began), 5*time.Second)
		})
	}
	t.Run("HTTP2", func(t *testing.T) {
		r := startSecure(t, server.Config{Answerer: refused})
		c := r.http2(t, "127.0.0.2", 1<<20)
		go func() {
			var err error
			for n := 0; n < sent && err == nil; n++ { // the rest is not sent by the end of the test on a busy machine
				err = c.trySend(":method: GET", ":scheme: https", ":authority: h", ":path: /v1/llps/a", "authorization: Bearer "+liveKey(1))
			}
		}()
		got := c.readASecond(t, least, http2.FrameHeaders)
		require.Greater(t, got, least)
		require.Less(t, got, atOnce)
	})
}

// TestWhoSendsFramesWithoutPauseIsHeldUp sends PING after PING, for a second.
func TestWhoSendsFramesWithoutPauseIsHeldUp(t *testing.T) {
	const sent, least, atOnce = 50_000, 50, 5000 // a burst, what was received with it, and slack
	r := startSecure(t, server.Config{Answerer: fine})
	c := r.http2(t, "127.0.0.2", 1<<20)
	go func() {
		for n, err := 0, error(nil); n < sent && err == nil; n++ {
			err = c.WritePing(false, [8]byte{1})
		}
	}()
	got := c.readASecond(t, least, http2.FramePing)
	require.Greater(t, got, least)
	require.Less(t, got, atOnce)
	require.Equal(t, 200, ask(r.from(t, "127.0.0.1", false), r.url+"/v1/llps/a", liveKey(2)))
}

// TestNewConnectionsOfAnAddressArePaced opens and closes connections without pause.
func TestNewConnectionsOfAnAddressArePaced(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: fine})
		began := time.Now()
		for range 150 {
			client := r.from(t, "127.0.0.2", false)
			require.Equal(t, 200, ask(client, r.url+"/v1/llps/a", liveKey(1)))
			client.CloseIdleConnections()
		}
		require.Greater(t, time.Since(began), 400*time.Millisecond)
		var took []time.Duration // the machine may be busy with something else
		for n := range 5 {
			began = time.Now()
			require.Equal(t, 200, ask(r.from(t, fmt.Sprintf("127.0.0.%d", 3+n), false), r.url+"/v1/llps/a", liveKey(1)))
			took = append(took, time.Since(began))
		}
		require.Less(t, slices.Min(took), 400*time.Millisecond, "another address")
	})
}

// TestATrustedProxyIsNotHeldUp: its connections carry requests of others.
func TestATrustedProxyIsNotHeldUp(t *testing.T) {
	trusted, err := server.ParseProxies([]string{"127.0.0.2"})
	require.NoError(t, err)
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, server.Config{Answerer: refused, Proxies: trusted})
		client := r.from(t, "127.0.0.2", false)
		for range 500 {
			require.Equal(t, 429, ask(client, r.url+"/v1/llps/a", liveKey(1)))
		}
	})
}

// TestSlowReadersAreCounted asks for large answers and reads none.
func TestSlowReadersAreCounted(t *testing.T) {
	large := constant(handler.Response{Status: 200, Body: make([]byte, handler.MaxBody)})
	config := server.Config{Answerer: large, WriteTimeout: 500 * time.Millisecond}
	seen := func(t *testing.T, r *running) {
		t.Helper()
		require.Eventually(t, func() bool { return r.measured(t, "regedge_connections_writing") > 0 }, time.Minute, time.Millisecond)
		require.Eventually(t, func() bool { return r.counted(t, "regedge_connections_unread_total") > 0 }, time.Minute, time.Millisecond)
		require.Eventually(t, func() bool { return r.measured(t, "regedge_connections_writing") == 0 }, time.Minute, time.Millisecond)
	}
	onBoth(t, func(t *testing.T, start starter) {
		r := start(t, config)
		conn, err := r.dial()
		require.NoError(t, err)
		defer conn.Close()
		go io.WriteString(conn, strings.Repeat("GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n", 1000))
		seen(t, r)
	})
	t.Run("HTTP2", func(t *testing.T) {
		r := startSecure(t, config)
		c := r.http2(t, "127.0.0.1", 0)
		c.send(t, ":method: GET", ":scheme: https", ":authority: h", ":path: /v1/llps/a")
		seen(t, r)
	})
}

// TestAConnectionWithHTTP2ThatIsNotReadEnds: its windows allow all answers, of which the socket takes a part.
func TestAConnectionWithHTTP2ThatIsNotReadEnds(t *testing.T) {
	// A busy machine may end it before most of the answers have begun.
	for limit := 2 * time.Second; unreadWriters(t, limit) <= 50; limit *= 2 {
		require.Less(t, limit, time.Minute)
	}
}

// unreadWriters returns how many answers were being written at once on a connection that is not read, until it ended.
func unreadWriters(t *testing.T, limit time.Duration) (most float64) {
	t.Helper()
	const window = 1 << 30
	r := startSecure(t, server.Config{WriteTimeout: limit, Answerer: constant(handler.Response{Status: 200, Body: make([]byte, handler.MaxBody)})})
	c := r.http2(t, "127.0.0.1", window)
	require.NoError(t, c.WriteWindowUpdate(0, window))
	for range 100 {
		if c.trySend(":method: GET", ":scheme: https", ":authority: h", ":path: /v1/llps/a") != nil {
			break // it has ended
		}
	}
	require.Eventually(t, func() bool {
		writing := r.measured(t, "regedge_connections_writing")
		most = max(most, writing)
		return r.measured(t, "regedge_connections_open") == 0 && writing == 0
	}, limit+time.Minute, time.Millisecond)
	return most
}

// TestASlowReaderOfASlowAnswerIsCounted, over HTTP/2: the time to send began with the request.
func TestASlowReaderOfASlowAnswerIsCounted(t *testing.T) {
	const limit = time.Second
	large := constant(handler.Response{Status: 200, Body: make([]byte, handler.MaxBody)})
	r := startSecure(t, server.Config{WriteTimeout: limit, Answerer: answerFunc(func(ctx context.Context, q *handler.Request, a *handler.Response) error {
		time.Sleep(limit / 2)
		return large(ctx, q, a)
	})})
	c := r.http2(t, "127.0.0.1", 0)
	c.send(t, ":method: GET", ":scheme: https", ":authority: h", ":path: /v1/llps/a")
	require.Eventually(t, func() bool { return r.counted(t, "regedge_connections_unread_total") == 1 }, time.Minute, time.Millisecond)
}

// deaf is a connection whose client sends, but reads nothing.
type deaf struct {
	net.Conn
	forever chan struct{}
}

func (c deaf) Read([]byte) (int, error) {
	<-c.forever
	return 0, net.ErrClosed
}

// TestHandshakesThatDoNotEndKeepNobodyOut begins more of them than compute at once.
func TestHandshakesThatDoNotEndKeepNobodyOut(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: fine, ReadHeaderTimeout: time.Hour})
	forever := make(chan struct{})
	for range 4 * runtime.GOMAXPROCS(0) {
		conn, err := net.Dial("tcp", r.addr)
		require.NoError(t, err)
		defer conn.Close()
		began := make(chan struct{})
		go func() {
			defer close(began)
			_ = tls.Client(deaf{conn, forever}, r.client.Transport.(*http.Transport).TLSClientConfig).Handshake()
		}()
		defer func() { <-began }()
	}
	defer close(forever)
	require.Equal(t, 200, ask(r.from(t, "127.0.0.2", true), r.url+"/v1/llps/a", liveKey(1)))
}

// counting is a client's connection that counts in said when its first message is sent.
type counting struct {
	net.Conn
	first sync.Once
	said  *atomic.Int32
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.first.Do(func() { c.said.Add(1) })
	return n, err
}

// TestAClientWaitsForOneHandshakeOfAnother counts the handshakes of an address that come before those
// of clients who arrive last. One of them may share the address's turn, see laneTurns; that all do is
// less likely than one in ten million.
func TestAClientWaitsForOneHandshakeOfAnother(t *testing.T) {
	const many, clients = 40, 3
	var computed, before atomic.Int32
	before.Store(many)
	release := make(chan struct{})
	r := startChanged(t, server.Config{Answerer: fine, ReadHeaderTimeout: time.Minute}, func(c *tls.Config) {
		get := c.GetCertificate
		c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if strings.HasPrefix(hello.Conn.RemoteAddr().String(), "127.0.0.2:") {
				<-release
				time.Sleep(10 * time.Millisecond)
				computed.Add(1)
			} else {
				before.CompareAndSwap(many, computed.Load()) // the first of them
			}
			return get(hello)
		}
	})
	var said atomic.Int32
	from := func(address string) *http.Client {
		client := r.from(t, address, false)
		client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
			conn, err := dialer(address).DialContext(ctx, network, to)
			return &counting{Conn: conn, said: &said}, err
		}
		return client
	}
	haveSaid := func(n int32) {
		require.Eventually(t, func() bool { return said.Load() == n }, time.Minute, time.Millisecond)
	}
	var asked sync.WaitGroup
	defer asked.Wait()
	for range many {
		attacker := from("127.0.0.2")
		asked.Go(func() { ask(attacker, r.url+"/v1/llps/a", liveKey(1)) })
	}
	haveSaid(many)
	answers := make(chan int, clients)
	for n := range clients {
		customer := from(fmt.Sprintf("127.0.0.%d", 3+n))
		go func() { answers <- ask(customer, r.url+"/v1/llps/a", liveKey(2)) }()
	}
	haveSaid(many + clients)
	close(release)
	for range clients {
		require.Equal(t, 200, <-answers)
	}
	require.Less(t, before.Load(), int32(many/2), "handshakes of another address came first")
}

// TestAHandshakeThatGivesUpTakesNobodysTurn has one wait behind others until its time is up. Its address
// gets in when they have ended.
func TestAHandshakeThatGivesUpTakesNobodysTurn(t *testing.T) {
	lane := max(1, runtime.GOMAXPROCS(0)/2)
	var computing atomic.Int32
	release := make(chan struct{})
	r := startChanged(t, server.Config{Answerer: fine, ReadHeaderTimeout: 200 * time.Millisecond}, func(c *tls.Config) {
		get := c.GetCertificate
		c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if !strings.HasPrefix(hello.Conn.RemoteAddr().String(), "127.0.0.9:") {
				computing.Add(1)
				<-release
			}
			return get(hello)
		}
	})
	var asked sync.WaitGroup
	defer asked.Wait()
	for n := range 2 * lane {
		other := r.from(t, fmt.Sprintf("127.0.0.%d", 10+n), false)
		asked.Go(func() { // again, since on a busy machine its time may be up before it computes
			for computing.Load() < int32(lane) && ask(other, r.url+"/v1/llps/a", liveKey(1)) == 0 {
			}
		})
	}
	require.Eventually(t, func() bool { return computing.Load() == int32(lane) }, time.Minute, time.Millisecond)
	customer := r.from(t, "127.0.0.9", false)
	require.Zero(t, ask(customer, r.url+"/v1/llps/a", liveKey(2)), "nobody else computes")
	close(release)
	require.Eventually(t, func() bool { return ask(customer, r.url+"/v1/llps/a", liveKey(2)) == 200 }, time.Minute, 10*time.Millisecond)
}
