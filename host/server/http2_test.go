package server_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"regedge/host/server"
)

// answer reads what becomes of a stream: its status, its fields as "name: value", or how it ended.
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

// TestMalformedRequestsAreRefusedOverHTTP2 sends what no client library sends. What net/http itself refuses,
// it answers in its own way or with a reset: none of it is answered.
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
		"a broken escape":             {fields("GET", "h", "/v1/llps/%ZZ"), "reset: PROTOCOL_ERROR "},
		"no path":                     {fields("GET", "h", "v1"), "reset: PROTOCOL_ERROR "},
		"a line in a value":           {fields("GET", "h", "/v1/llps/a", "x: a\rb"), "reset: PROTOCOL_ERROR "},
		"a name in capitals":          {fields("GET", "h", "/v1/llps/a", "X-A: b"), "reset: PROTOCOL_ERROR "},
		"a field of a connection":     {fields("GET", "h", "/v1/llps/a", "connection: close"), "400 "},
		"a transfer encoding":         {fields("GET", "h", "/v1/llps/a", "transfer-encoding: chunked"), "400 "},
	} {
		t.Run(name, func(t *testing.T) {
			client := r.http2(t, "127.0.0.1", 1<<20)
			status, got, body := client.answer(t, client.send(t, c.fields...))
			if problem := problemOf.FindStringSubmatch(body); problem != nil {
				require.Equal(t, c.want, status+" "+problem[1])
				require.Contains(t, got, "x-request-id: from-the-server")
				return
			}
			require.Equal(t, c.want, status+" ")
		})
	}
	require.NoError(t, r.stop())
	require.Contains(t, r.log.String(), `"route":"invalid","status":400`)
}

var problemOf = regexp.MustCompile(`"code":"([a-z_]+)"`)
