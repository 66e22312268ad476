package server_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"regedge/handler"
	"regedge/host/server"
)

// holding is an Answerer that lets requests wait until it is told to go on.
func holding() (held answerFunc, begun chan struct{}, goOn func()) {
	begun, gate := make(chan struct{}, 1000), make(chan struct{})
	return func(ctx context.Context, q *handler.Request, a *handler.Response) error {
		begun <- struct{}{}
		<-gate
		return fine(ctx, q, a)
	}, begun, func() { close(gate) }
}

// TestStreamsBeyondTheLimitAreRefusedAlone opens more streams than the settings of the server allow.
func TestStreamsBeyondTheLimitAreRefusedAlone(t *testing.T) {
	const limit = 100 // as the settings of the server say
	held, begun, goOn := holding()
	r := startSecure(t, server.Config{Answerer: held, MaxInFlight: 10 * limit})
	client := r.http2(t, "127.0.0.1", 1<<20)
	require.NoError(t, client.conn.SetReadDeadline(time.Now().Add(time.Minute)))
	frame, err := client.ReadFrame()
	require.NoError(t, err)
	settings, ok := frame.(*http2.SettingsFrame)
	require.True(t, ok, "%v", frame)
	most, ok := settings.Value(http2.SettingMaxConcurrentStreams)
	require.True(t, ok)
	require.EqualValues(t, limit, most)
	largest, said := settings.Value(http2.SettingMaxFrameSize)
	require.True(t, !said || largest == 16<<10, "a frame of a header that is larger ends the connection")
	require.NoError(t, client.WriteSettingsAck()) // the limit holds from then on

	get := func() uint32 {
		return client.send(t, ":method: GET", ":scheme: https", ":authority: h", ":path: /v1/llps/a")
	}
	allowed := map[uint32]string{}
	for range limit {
		allowed[get()] = ""
	}
	for range limit {
		<-begun
	}
	beyond := get()
	status, _, _ := client.answer(t, beyond)
	require.Equal(t, "reset: PROTOCOL_ERROR", status, "the client had acknowledged the limit (RFC 9113, section 5.1.2)")
	goOn()
	for left := limit; left > 0; {
		frame, err := client.ReadFrame()
		require.NoError(t, err)
		if header, ok := frame.(*http2.MetaHeadersFrame); ok {
			require.Contains(t, allowed, header.StreamID)
			allowed[header.StreamID] = header.PseudoValue("status")
		}
		if _, ok := allowed[frame.Header().StreamID]; ok && frame.Header().Flags.Has(http2.FlagDataEndStream) {
			left--
		}
	}
	client.ping(t) // so that the server has counted the last one as closed
	for stream, status := range allowed {
		require.Equal(t, "200", status, "stream %d", stream)
	}
	status, _, _ = client.answer(t, get())
	require.Equal(t, "200", status, "the connection goes on")
}

// TestAnOpenConnectionIsToldOfTheStop: a load balancer that keeps its connections hears that it must go
// elsewhere. A lookup that is being answered holds up the end of the stop meanwhile.
func TestAnOpenConnectionIsToldOfTheStop(t *testing.T) {
	const first, rest = "GET ", "/readyz HTTP/1.1\r\nHost: h\r\n\r\n"
	onBoth(t, func(t *testing.T, start starter) {
		held, begun, goOn := holding()
		r := start(t, server.Config{Answerer: held})
		conns := make([]net.Conn, 20)
		for i := range conns {
			var err error
			conns[i], err = r.dial()
			require.NoError(t, err)
			defer conns[i].Close()
			require.NoError(t, conns[i].SetDeadline(time.Now().Add(time.Minute)))
			response, body := askOn(t, conns[i], first+rest)
			require.NotNil(t, response)
			require.Equal(t, http.StatusOK, response.StatusCode, body)
			_, err = io.WriteString(conns[i], first) // a stop ends connections that wait for a request
			require.NoError(t, err)
		}
		lookup := make(chan int, 1)
		go func() {
			response, err := r.client.Get(r.url + "/v1/llps/a")
			if err != nil {
				lookup <- 0
				return
			}
			response.Body.Close()
			lookup <- response.StatusCode
		}()
		<-begun
		stopped := make(chan error, 1)
		go func() { stopped <- r.stop() }()
		require.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", r.addr)
			if err == nil {
				conn.Close()
			}
			return err != nil
		}, time.Minute, time.Millisecond, "no new connections")
		told := 0
		for _, conn := range conns {
			response, body := askOn(t, conn, rest)
			if response == nil {
				continue // the stop came before its first bytes were read
			}
			require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
			require.Contains(t, body, "shutting down")
			require.True(t, response.Close)
			told++
		}
		require.Positive(t, told)
		goOn()
		require.Equal(t, http.StatusOK, <-lookup)
		require.NoError(t, <-stopped)
	})
}

// askOn sends bytes, and returns the answer, nil if there is none.
func askOn(t *testing.T, conn net.Conn, request string) (response *http.Response, body string) {
	t.Helper()
	_, _ = io.WriteString(conn, request) // the server may have hung up
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, ""
	}
	all, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(all)
}
