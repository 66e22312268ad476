package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpguts"

	"regedge/handler"
	"regedge/host/server"
)

// echoFields is echo with the names of fields in lower case, as HTTP/2 sends them, and without those of a body,
// which is not read: net/http takes Expect out, and with fasthttp some have a Content-Length of 0, or
// Connection: close. It writes cookies, which no lookup reads, anew.
var echoFields answerFunc = func(ctx context.Context, q *handler.Request, a *handler.Response) error {
	q.Headers = slices.DeleteFunc(q.Headers, func(h handler.Header) bool {
		return slices.Contains([]string{"content-length", "expect", "connection", "cookie"}, strings.ToLower(h.Name))
	})
	for i := range q.Headers {
		q.Headers[i].Name = strings.ToLower(q.Headers[i].Name)
	}
	return echo(ctx, q, a)
}

// FuzzHTTP2AnswersAlike sends the same request over HTTP/1.1 without TLS, and over HTTP/2: with one field, or
// without if that is the host.
func FuzzHTTP2AnswersAlike(f *testing.F) {
	for _, request := range [][4]string{
		{"GET", "/v1/llps/a", "X", "y"}, {"HEAD", "/v1/llps/a", "Accept", "*/*"}, {"OPTIONS", "*", "X", ""}, {"GET", "*", "X", ""},
		{"GET", "/v1/llps/%ZZ?a=%", "Authorization", "Bearer a"}, {"POST", "/healthz", "content-length", "2"}, {"G@T", "/", "X", "y"}, {"\xff", "/", "X", "y"},
		{"get", "/readyz?a", "X", "y"}, {"GET", "http://a/b?c", "X", "y"}, {"GET", "https://a:1", "X", "y"}, {"GET", "v1", "X", "y"}, {"GET", "th:/a", "X", "y"}, {"GET", "1a://b", "X", "y"}, {"GET", "://b", "X", "y"}, {"GET", "A://%", "X", "y"},
		{"GET", "http://a@b/", "X", "y"}, {"GET", "http://a b/", "X", "y"}, {"GET", "http://?a", "X", "y"}, {"GET", "http://a/%zz", "X", "y"},
		{"GET", "/a b", "X", "y"}, {"G T", "/", "X", "y"}, {"GET", "/a#b", "X", "y"}, {"GET", "//a//b", "X", "y"}, {"GET", "//a:b://c", "X", "y"}, {"GET", "//a://b", "X", "y"}, {"GET", "/a://b", "X", "y"}, {"GET", "", "X", "y"}, {"", "/", "X", "y"},
		{"GET", "/", "a b", "y"}, {"GET", "/", "", "y"}, {"GET", "/", "X", "a\x00b"}, {"GET", "/", "X", "a\x7fb"}, {"GET", "/", "Ä", "ö"}, {"GET", "/ä", "X", "y"},
		{"GET", "/\x00", "X", "y"}, {"GET", "/" + strings.Repeat("a", 200), "X", "y"}, {"GET", "/", "X", strings.Repeat("a", 2000)},
		{"GET", "/", "Host", "a.example:8080"}, {"GET", "/", "Host", "a b"}, {"GET", "http://a/", "Host", "a b"}, {"GET", "/", "Host", "a/b"}, {"GET", "/", "Host", "[::1]:1"},
		{"GET", "/", "Host", "[::1"}, {"GET", "/", "Host", "a@b"}, {"GET", "/", "Host", "a:b"}, {"GET", "/", "Host", "ä"}, {"GET", "/", "Host", ""}, {"GET", "/", "host", "a%20b"}, {"GET", "/", "Content-Length", "x"}, {"GET", "/", "Content-Length", "-1"},
		{"GET", "/", "Expect", "100-continue"}, {"GET", "/", "Cookie", "a=b; c=d"}, {"PRI", "*", "X", "y"}, {"GET", "/", "Origin", "null"},
	} {
		f.Add(request[0], request[1], request[2], request[3])
	}
	config := server.Config{Answerer: echoFields, MaxTargetBytes: 100, MaxHeaderBytes: 1000}
	plain, secure := start(f, config), startSecure(f, config)
	var count atomic.Uint32
	f.Fuzz(func(t *testing.T, method, target, name, value string) {
		value = strings.Trim(value, " \t") // it is around the value, not in it (RFC 9110, section 5.5)
		if why := cannotCompare(method, target, name, value); why != "" {
			t.Skip(why)
		}
		n := count.Add(1)
		from := fmt.Sprintf("127.%d.%d.%d", 1+n>>16%200, n>>8%256, 1+n%250) // who is refused, or connects, too often is held up
		without := plain.answerOfHTTP1(t, from, method, target, name, value)
		with := secure.answerOfHTTP2(t, from, method, target, name, value)
		require.Equal(t, without, with, "got over HTTP/1.1, and over HTTP/2: %q %q %q: %q", method, target, name, value)
		require.Contains(t, without, "x-request-id: from-the-")
	})
}

// TestATargetMayHaveAnAddressInIt, as a search for the address of a site has, unless it may name a host itself.
func TestATargetMayHaveAnAddressInIt(t *testing.T) {
	config := server.Config{Answerer: echoFields}
	plain, secure := start(t, config), startSecure(t, config)
	for target, status := range map[string]string{
		"/v1/search/companies?name=https://a.example/b": "200\n", "/a://b": "200\n", "//a/b": "200\n", "//a:b://c": "400\n", "//a?b=://": "400\n",
	} {
		for _, answer := range []string{
			plain.answerOfHTTP1(t, "127.0.0.1", "GET", target, "X", "y"), secure.answerOfHTTP2(t, "127.0.0.1", "GET", target, "X", "y"),
		} {
			require.True(t, strings.HasPrefix(answer, status), "%s: %s", target, answer)
		}
	}
}

var wellFormedTarget = regexp.MustCompile(`^/[!-~]*$`)

// cannotCompare returns why a request is not the same over HTTP/1.1 and HTTP/2, or "".
func cannotCompare(method, target, name, value string) string {
	switch bytes := len(method) + len(target) + len(name) + len(value); {
	case strings.ContainsAny(method+target+name+value, "\r\n"):
		return "a line of HTTP/1.1 ends there"
	case strings.Contains(name, ":"):
		return "the name of HTTP/1.1 ends there, and that of HTTP/2 may be a pseudo-header field"
	case method == http.MethodConnect:
		return "CONNECT has neither scheme nor path over HTTP/2"
	case slices.Contains([]string{"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade", "te"}, lower(name)):
		return "a field of a connection, which HTTP/2 has not (RFC 9113, section 8.2.2)"
	case bytes > 500 && bytes < 1500:
		return "near the limit: the two count what is around the fields differently"
	case bytes >= 1500 && !(httpguts.ValidHeaderFieldName(method) && wellFormedTarget.MatchString(target) &&
		lower(name) != "host" && lower(name) != "content-length" && httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value)):
		return "too long, and no request: each refuses what it sees first"
	case bytes > 7000:
		return "a connection with HTTP/2 may end at eight times the limit"
	}
	return ""
}

// lower writes a name as HTTP/2 does; bytes that are not ASCII stay.
func lower(name string) string {
	text := []byte(name)
	for i, b := range text {
		if 'A' <= b && b <= 'Z' {
			text[i] = b + 'a' - 'A'
		}
	}
	return string(text)
}

func (r *running) answerOfHTTP1(t *testing.T, from, method, target, name, value string) string {
	t.Helper()
	c, err := r.dialFrom(from)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	host, field := "h", name+": "+value+"\r\n"
	if lower(name) == "host" {
		host, field = value, ""
	}
	_, _ = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, target, host, field) // the server may have hung up
	_ = c.(*net.TCPConn).CloseWrite()
	reader := bufio.NewReader(c)
	for {
		response, err := http.ReadResponse(reader, &http.Request{Method: method})
		require.NoError(t, err)
		if response.StatusCode < 200 {
			continue
		}
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		var fields []string
		for name, values := range response.Header {
			for _, value := range values {
				fields = append(fields, lower(name)+": "+value)
			}
		}
		return described(fmt.Sprint(response.StatusCode), fields, string(body))
	}
}

func (r *running) answerOfHTTP2(t *testing.T, from, method, target, name, value string) string {
	t.Helper()
	client := r.http2(t, from, 1<<20)
	defer client.conn.Close()
	fields := []string{":method: " + method, ":scheme: https", ":authority: h", ":path: " + target, lower(name) + ": " + value}
	if lower(name) == "host" {
		fields = append(fields[:2], ":authority: "+value, ":path: "+target)
	}
	return described(client.answer(t, client.send(t, fields...)))
}

// described is an answer as text, without what differs by its time or by the protocol.
func described(status string, fields []string, body string) string {
	fields = slices.DeleteFunc(fields, func(field string) bool {
		return strings.HasPrefix(field, "date: ") || strings.HasPrefix(field, "connection: ")
	})
	slices.Sort(fields)
	return status + "\n" + strings.Join(fields, "\n") + "\n" + body
}
