package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"regedge/handler"
	"regedge/host/server"
)

// answer reads the result of a stream: its status and fields as "name: value", or how it ended.
func (c *http2Client) answer(t *testing.T, stream uint32) (status string, fields []string, body string) {
	t.Helper()
	require.NoError(t, c.conn.SetReadDeadline(time.Now().Add(time.Minute)))
	for {
		frame, err := c.ReadFrame()
		if err != nil {
			return "ended: " + err.Error(), nil, ""
		}
		if frame.Header().StreamID != stream {
			continue
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			status = f.PseudoValue("status")
			for _, field := range f.RegularFields() {
				fields = append(fields, field.Name+": "+field.Value)
			}
		case *http2.DataFrame:
			body += string(f.Data())
		case *http2.RSTStreamFrame:
			return "reset: " + f.ErrCode.String(), nil, ""
		}
		if frame.Header().Flags.Has(http2.FlagDataEndStream) {
			return status, fields, body
		}
	}
}

// ping waits until the server has answered a ping, and so has processed everything sent before.
func (c *http2Client) ping(t *testing.T) {
	t.Helper()
	require.NoError(t, c.conn.SetDeadline(time.Now().Add(time.Minute)))
	require.NoError(t, c.WritePing(false, [8]byte{1}))
	for {
		frame, err := c.ReadFrame()
		require.NoError(t, err)
		if f, ok := frame.(*http2.PingFrame); ok && f.IsAck() {
			return
		}
	}
}

// TestMalformedRequestsAreRefusedOverHTTP2 sends requests that no client library sends. net/http would
// answer most of them in its own way or with a reset.
func TestMalformedRequestsAreRefusedOverHTTP2(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: echo, MaxTargetBytes: 100, MaxHeaderBytes: 1000})
	fields := func(method, authority, path string, more ...string) []string {
		return append([]string{":method: " + method, ":scheme: https", ":authority: " + authority, ":path: " + path}, more...)
	}
	for name, c := range map[string]struct {
		fields []string
		want   string // status and problem, or the end of the stream
	}{
		"a request":                   {fields("GET", "h", "/v1/llps/a"), "200 "},
		"half an escape in the query": {fields("GET", "h", "/v1/llps/a?%2"), "200 "},
		"the same host twice":         {fields("GET", "h", "/v1/llps/a", "host: h"), "200 "},
		"a body that does not come":   {fields("GET", "h", "/v1/llps/a", "content-length: 2"), "200 "},
		"two hosts":                   {fields("GET", "h", "/v1/llps/a", "host: other"), "400 invalid_request"},
		"no host":                     {fields("GET", "", "/v1/llps/a"), "400 invalid_request"},
		"a space in the host":         {fields("GET", "a b", "/v1/llps/a"), "400 invalid_request"},
		"a space in the path":         {fields("GET", "h", "/v1/llps/a b"), "400 invalid_request"},
		"no method":                   {fields("G@T", "h", "/v1/llps/a"), "400 invalid_request"},
		"a long header":               {fields("GET", "h", "/v1/llps/a", "x: "+strings.Repeat("a", 2000)), "431 header_too_large"},
		"a long target":               {fields("GET", "h", "/"+strings.Repeat("a", 200)), "414 uri_too_long"},
		"a much longer header":        {fields("GET", "h", "/v1/llps/a", "x: "+strings.Repeat("a", 7000)), "431 header_too_large"},
		"many small fields":           {fields("GET", "h", "/v1/llps/a", strings.Split(strings.Repeat("x: a\n", 200), "\n")[:199]...), "431 header_too_large"},
		"a broken escape":             {fields("GET", "h", "/v1/llps/%ZZ"), "200 "},
		"no path":                     {fields("GET", "h", "v1"), "400 invalid_request"},
		"a line in a value":           {fields("GET", "h", "/v1/llps/a", "x: a\rb"), "400 invalid_request"},
		"a name in capitals":          {fields("GET", "h", "/v1/llps/a", "X-A: b"), "400 invalid_request"},
		"a field of a connection":     {fields("GET", "h", "/v1/llps/a", "connection: close"), "400 invalid_request"},
		"an upgrade":                  {fields("GET", "h", "/v1/llps/a", "upgrade: h2c"), "400 invalid_request"},
		"a te of a connection":        {fields("GET", "h", "/v1/llps/a", "te: gzip"), "400 invalid_request"},
		"a length that is none":       {fields("GET", "h", "/v1/llps/a", "content-length: x"), "400 invalid_request"},
		"an empty length":             {fields("GET", "h", "/v1/llps/a", "content-length: "), "400 invalid_request"},
		"two lengths":                 {fields("GET", "h", "/v1/llps/a", "content-length: 2", "content-length: 3"), "400 invalid_request"},
		"the same length twice":       {fields("GET", "h", "/v1/llps/a", "content-length: 2", "content-length: 2"), "200 "},
		"te twice":                    {fields("GET", "h", "/v1/llps/a", "te: trailers", "te: trailers"), "400 invalid_request"},
		"two paths":                   {fields("GET", "h", "/v1/llps/a", ":path: /"), "400 invalid_request"},
		"the scheme without TLS":      {[]string{":method: GET", ":scheme: http", ":authority: h", ":path: /v1/llps/a"}, "200 "},
		"another scheme":              {[]string{":method: GET", ":scheme: ftp", ":authority: h", ":path: /v1/llps/a"}, "400 invalid_request"},
		"no scheme":                   {[]string{":method: GET", ":authority: h", ":path: /"}, "400 invalid_request"},
		"a user in the host":          {fields("GET", "a@h", "/v1/llps/a"), "400 invalid_request"},
		"a connect":                   {[]string{":method: CONNECT", ":authority: h:1"}, "200 "},
		"a connect with a path":       {[]string{":method: CONNECT", ":authority: h:1", ":path: /"}, "400 invalid_request"},
		"a connect with a scheme":     {[]string{":method: CONNECT", ":authority: h:1", ":scheme: https"}, "400 invalid_request"},
		"another protocol":            {fields("CONNECT", "h", "/v1/llps/a", ":protocol: websocket"), "400 invalid_request"},
		"a status":                    {append([]string{":status: 200"}, fields("GET", "h", "/")...), "400 invalid_request"},
		"a transfer encoding":         {fields("GET", "h", "/v1/llps/a", "transfer-encoding: chunked"), "400 invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			client := r.http2(t, "127.0.0.1", 1<<20)
			status, got, body := client.answer(t, client.send(t, c.fields...))
			if problem := problemOf.FindStringSubmatch(body); problem != nil {
				require.Equal(t, c.want, status+" "+problem[1])
				require.Contains(t, got, "x-request-id: from-the-server")
			} else {
				require.Equal(t, c.want, status+" ")
			}
			status, _, _ = client.answer(t, client.send(t, fields("GET", "h", "/v1/llps/a")...))
			require.Equal(t, "200", status, "the connection goes on")
		})
	}
	require.NoError(t, r.stop())
	require.Contains(t, r.log.String(), `"route":"invalid","status":400`)
	require.Contains(t, r.log.String(), `"route":"invalid","status":431`)
	require.Zero(t, r.counted(t, "regedge_http2_errors_total"), "none was left without an answer")
}

// TestAHeaderOfSeveralFramesIsReadOverHTTP2, whether it is taken or refused, and the connection goes on.
func TestAHeaderOfSeveralFramesIsReadOverHTTP2(t *testing.T) {
	for most, want := range map[int]string{0: "431", 64 << 10: "200"} {
		r := startSecure(t, server.Config{Answerer: echo, MaxHeaderBytes: most})
		client := r.http2(t, "127.0.0.1", 1<<20)
		request := []string{":method: GET", ":scheme: https", ":authority: h", ":path: /v1/llps/a"}
		status, _, _ := client.answer(t, client.send(t, append(request, "x: "+strings.Repeat("{", 40_000))...)) // a brace has no shorter form
		require.Equal(t, want, status)
		status, _, _ = client.answer(t, client.send(t, request...))
		require.Equal(t, "200", status)
		require.NoError(t, r.stop())
		require.Zero(t, r.counted(t, "regedge_http2_errors_total"))
	}
}

// TestABrokenEscapeReachesTheHandlerOverHTTP2 as it does over HTTP/1.1.
func TestABrokenEscapeReachesTheHandlerOverHTTP2(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: echo})
	for _, target := range []string{"/v1/llps/%ZZ", "/v1/llps/%", "/v1/llps/%2", "/v1/llps/a?b=%zz"} {
		client := r.http2(t, "127.0.0.1", 1<<20)
		_, _, got := client.answer(t, client.send(t, ":method: GET", ":scheme: https", ":authority: h", ":path: "+target, "x: y"))
		want := r.raw(t, "GET "+target+" HTTP/1.1\r\nHost: h\r\nX: y\r\nConnection: close\r\n\r\n")
		require.Contains(t, got, `"`+target+`" "h"`)
		require.Contains(t, want, `"`+target+`" "h"`)
		require.NotContains(t, got, `"X-`, "no other field")
	}
}

// TestARefusalOverHTTP2LeavesTheConnectionUsable, with the compression that the refused request has changed.
func TestARefusalOverHTTP2LeavesTheConnectionUsable(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: echo})
	client := r.http2(t, "127.0.0.1", 1<<20)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for n, path := range []string{"/v1/llps/a", "no path", "/v1/llps/b", "/v1/llps/a", "/v1/llps/%zz"} {
		block.Reset()
		for _, f := range []string{":method GET", ":scheme https", ":authority h", ":path " + path, "x-kept value"} {
			name, value, _ := strings.Cut(f, " ")
			require.NoError(t, encoder.WriteField(hpack.HeaderField{Name: name, Value: value}))
		}
		stream := uint32(2*n + 1)
		require.NoError(t, client.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}))
		status, _, body := client.answer(t, stream)
		if path == "no path" {
			require.Equal(t, "400", status)
			continue
		}
		require.Equal(t, "200", status)
		require.Contains(t, body, path)
		require.Contains(t, body, `{"X-Kept" "value"}`)
	}
}

// TestABrokenProtocolIsCountedAndLogged: no answer can be sent on what is left of such a connection.
func TestABrokenProtocolIsCountedAndLogged(t *testing.T) {
	for name, frames := range map[string]func(*http2Client) error{
		"a header that can't be decoded": func(c *http2Client) error {
			return c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
		},
		"a header without end": func(c *http2Client) error {
			err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1})
			for n := 0; err == nil && n < 20; n++ {
				err = c.WriteContinuation(1, false, bytes.Repeat([]byte{0x82}, 16<<10))
			}
			return nil // the server may have hung up
		},
		"another frame within a header": func(c *http2Client) error {
			return errors.Join(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1}), c.WritePing(false, [8]byte{}))
		},
		"a header that goes on in another stream": func(c *http2Client) error {
			return errors.Join(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}}), c.WriteContinuation(3, true, []byte{0x87}))
		},
		"data of no request": func(c *http2Client) error { return c.WriteData(1, true, []byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := startSecure(t, server.Config{Answerer: echo})
			client := r.http2(t, "127.0.0.1", 1<<20)
			client.AllowIllegalWrites = true
			require.NoError(t, frames(client))
			_, err := io.Copy(io.Discard, client.conn) // until it ends
			_ = err
			require.Equal(t, 1.0, r.counted(t, "regedge_http2_errors_total"))
			require.NoError(t, r.stop())
			require.Contains(t, r.log.String(), "a stream or a connection with HTTP/2 was ended")
		})
	}
}

var problemOf = regexp.MustCompile(`"code":"([a-z_]+)"`)

// TestAnAnswerWithoutContentHasNoLength (RFC 9110, section 8.6): the length of a 304 would describe another answer.
func TestAnAnswerWithoutContentHasNoLength(t *testing.T) {
	for status, want := range map[int]bool{http.StatusOK: true, http.StatusNotModified: false, http.StatusNoContent: false} {
		r := startSecure(t, server.Config{Answerer: answerFunc(func(_ context.Context, _ *handler.Request, a *handler.Response) error {
			a.Status = status
			return nil
		})})
		client := r.http2(t, "127.0.0.1", 1<<20)
		got, fields, _ := client.answer(t, client.send(t, ":method: GET", ":scheme: https", ":authority: h", ":path: /v1/llps/a"))
		require.Equal(t, strconv.Itoa(status), got)
		require.Equal(t, want, slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "content-length:") }), got)
	}
}

// TestAnAnswerHasItsLength, also a long one, which net/http would send without.
func TestAnAnswerHasItsLength(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		body := []byte(strings.Repeat("x", 50_000))
		r := start(t, server.Config{Answerer: answerFunc(func(_ context.Context, _ *handler.Request, a *handler.Response) error {
			a.Status, a.Body = 200, body
			return nil
		})})
		r.client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
		response, text := r.get(t, "/v1/llps/a")
		require.Equal(t, strings.HasPrefix(r.url, "https"), response.ProtoMajor == 2)
		require.Equal(t, len(body), len(text))
		require.EqualValues(t, len(body), response.ContentLength)
	})
}

// TestARefusalOverHTTP2HasTheMethodOfItsRequest: a refused HEAD has no body, and its log line names the method.
func TestARefusalOverHTTP2HasTheMethodOfItsRequest(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: echo})
	client := r.http2(t, "127.0.0.1", 1<<20)
	status, fields, body := client.answer(t, client.send(t, ":method: HEAD", ":scheme: https", ":authority: h", ":path: /v1/llps/a", "connection: close"))
	require.Equal(t, "400", status)
	require.Contains(t, fields, "content-type: application/problem+json")
	require.Empty(t, body)
	status, _, body = client.answer(t, client.send(t, ":method: POST", ":scheme: https", ":authority: h", ":path: /v1/llps/a", "connection: close"))
	require.Equal(t, "400", status)
	require.Contains(t, body, `"code":"invalid_request"`)
	require.NoError(t, r.stop())
	for _, method := range []string{"HEAD", "POST"} {
		require.Contains(t, r.log.String(), `"method":"`+method+`","route":"invalid","status":400`)
	}
	for _, line := range r.log.lines() {
		require.Contains(t, line, `"client":"127.0.0.1"`)
	}
}

// TestOPTIONSOfTheWholeServerIsAnsweredAsOverHTTP1: net/http has an answer of its own, without a request id.
func TestOPTIONSOfTheWholeServerIsAnsweredAsOverHTTP1(t *testing.T) {
	r := startSecure(t, server.Config{Answerer: fine})
	client := r.http2(t, "127.0.0.1", 1<<20)
	status, fields, body := client.answer(t, client.send(t, ":method: OPTIONS", ":scheme: https", ":authority: h", ":path: *"))
	require.Equal(t, "200", status)
	require.Contains(t, fields, "x-request-id: from-the-answerer")
	require.Equal(t, "{}", body)
}
