package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"regedge/replicate/registry/sqld"
)

// way is a way to send a statement. send returns once it was answered; release frees its locks.
type way struct {
	name string
	send func(ctx context.Context, statement string) (release func())
}

func nothing() {}

// ways lists all ways of an edge: those of its replica's port and, on the primary's own machine, of the
// primary's, with its token, and those of the primary's replication port, with its certificate and the
// rights that it claims to have.
func (s *stage) ways(t *testing.T) []way {
	list := append(s.httpWays(s.replica), s.httpWays(s.primary)...)
	call := s.calls(t, s.edge)
	for _, claim := range []string{`"FullAccess"`, `{"Legacy":{"namespace":null,"perm":"ReadOnly"}}`} {
		header := http.Header{"X-Proxy-Authorization": {claim}, "X-Authorization": {"Bearer " + s.read}}
		for _, path := range []string{"Execute", "StreamExec", "Describe"} {
			list = append(list, way{"the primary's " + path + " as " + claim, func(ctx context.Context, statement string) func() {
				call(ctx, "/proxy.Proxy/"+path, header, messages[path](statement))
				return nothing
			}})
		}
	}
	return list
}

// httpWays are the ways of a server's own port.
func (s *stage) httpWays(server *sqld.Server) []way {
	requests := func(requests string) func(string) string {
		return func(statement string) string { return fmt.Sprintf(`{"requests":[`+requests+`]}`, quoted(statement)) }
	}
	posts := []struct {
		path string
		body func(statement string) string
	}{
		{"/", func(statement string) string { return `{"statements":[` + quoted(statement) + `]}` }},
		{"/v1/execute", func(statement string) string { return `{"stmt":{"sql":` + quoted(statement) + `}}` }},
		{"/v1/batch", func(statement string) string {
			return `{"batch":{"steps":[{"stmt":{"sql":` + quoted(statement) + `}}]}}`
		}},
		{"/v2/pipeline", requests(`{"type":"execute","stmt":{"sql":%s}}`)},
		{"/v3/pipeline", requests(`{"type":"execute","stmt":{"sql":%s}},{"type":"get_autocommit"}`)},
		{"/v3/pipeline", requests(`{"type":"sequence","sql":%s}`)},
		{"/v3/pipeline", requests(`{"type":"batch","batch":{"steps":[{"stmt":{"sql":%s}},{"condition":{"type":"ok","step":0},"stmt":{"sql":"INSERT INTO probe VALUES (666)"}}]}}`)},
		{"/v3/pipeline", requests(`{"type":"store_sql","sql_id":1,"sql":%s},{"type":"describe","sql_id":1},{"type":"execute","stmt":{"sql_id":1}}`)},
		{"/v3/cursor", func(statement string) string {
			return `{"batch":{"steps":[{"stmt":{"sql":` + quoted(statement) + `}}]}}`
		}},
		{"/dev/default/v2/pipeline", requests(`{"type":"execute","stmt":{"sql":%s}}`)},
	}
	list := []way{{"a web socket at " + server.HTTP, func(ctx context.Context, statement string) func() { return s.socket(ctx, server, statement) }}}
	for _, p := range posts {
		list = append(list, way{p.path + " at " + server.HTTP, func(ctx context.Context, statement string) func() {
			return s.opened(server, s.post(ctx, server, p.path, "application/json", []byte(p.body(statement))))
		}})
	}
	for _, path := range []string{"/proxy.Proxy/Execute", "/proxy.Proxy/StreamExec"} {
		list = append(list, way{path + " at " + server.HTTP, func(ctx context.Context, statement string) func() {
			s.post(ctx, server, path, "application/grpc-web", framed(messages[strings.TrimPrefix(path, "/proxy.Proxy/")](statement)))
			return nothing
		}})
	}
	return append(list, way{"other routes at " + server.HTTP, func(ctx context.Context, statement string) func() {
		s.post(ctx, server, "/v1/namespaces/default/create", "application/json", []byte(`{}`))
		s.post(ctx, server, "/v1/namespaces/default/checkpoint", "application/json", []byte(`{}`))
		s.request(ctx, "GET", server.URL()+"/dump", "", nil)
		return nothing
	}})
}

// baton names a stream, which keeps its locks until it is closed or sqld forgets it.
var baton = regexp.MustCompile(`"baton":("[^"]+")`)

// opened returns the end of the stream that an answer has opened.
func (s *stage) opened(server *sqld.Server, answer string) (release func()) {
	name := baton.FindStringSubmatch(answer)
	if name == nil {
		return nothing
	}
	return func() {
		s.post(context.Background(), server, "/v3/pipeline", "application/json", []byte(`{"baton":`+name[1]+`,"requests":[{"type":"close"}]}`))
	}
}

func quoted(statement string) string {
	text, _ := json.Marshal(statement)
	return string(text)
}

func (s *stage) post(ctx context.Context, server *sqld.Server, path, kind string, body []byte) string {
	return s.request(ctx, "POST", server.URL()+path, kind, body)
}

// request sends the edge's token in both forms that sqld takes it, and a claim of all rights.
func (s *stage) request(ctx context.Context, method, url, kind string, body []byte) string {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	request.Header = http.Header{
		"Content-Type": {kind}, "Authorization": {"Bearer " + s.read}, "X-Authorization": {"Bearer " + s.read},
		"X-Proxy-Authorization": {`"FullAccess"`},
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.Status + " " + string(answer)
}

// socket sends a statement over a web socket, which stays open until release.
func (s *stage) socket(ctx context.Context, server *sqld.Server, statement string) (release func()) {
	conn, _, err := websocket.Dial(ctx, "ws://"+server.HTTP, &websocket.DialOptions{Subprotocols: []string{"hrana3"}})
	if err != nil {
		return nothing
	}
	for _, message := range []string{
		`{"type":"hello","jwt":"` + s.read + `"}`,
		`{"type":"request","request_id":1,"request":{"type":"open_stream","stream_id":1}}`,
		`{"type":"request","request_id":2,"request":{"type":"execute","stream_id":1,"stmt":{"sql":` + quoted(statement) + `}}}`,
	} {
		if conn.Write(ctx, websocket.MessageText, []byte(message)) != nil {
			break
		}
		if _, _, err := conn.Read(ctx); err != nil {
			break
		}
	}
	return func() { _ = conn.CloseNow() }
}

// messages are the requests of the service by which replicas forward statements, in Protocol Buffers.
var messages = map[string]func(statement string) []byte{
	"Execute": func(statement string) []byte {
		return append(field(1, []byte("6b0e2c1a-52c1-4f0e-9d54-0c1f3a1f6b7a")), field(2, forwarded(statement))...)
	},
	"StreamExec": func(statement string) []byte { return field(2, field(1, forwarded(statement))) },
	"Describe": func(statement string) []byte {
		return append(field(1, []byte("6b0e2c1a-52c1-4f0e-9d54-0c1f3a1f6b7a")), field(2, []byte(statement))...)
	},
}

// forwarded is a program of one step without parameters.
func forwarded(statement string) []byte {
	return field(1, field(2, append(field(1, []byte(statement)), field(2, nil)...)))
}

func field(number int, value []byte) []byte {
	return append(binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(len(value))), value...)
}

// framed is a message as gRPC sends it.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// calls returns a function that calls the primary's replication port with a certificate, and returns
// gRPC's status and message.
func (s *stage) calls(t *testing.T, files *sqld.TLSFiles) func(ctx context.Context, path string, header http.Header, message []byte) (status, text string) {
	t.Helper()
	own, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	require.NoError(t, err)
	authority, err := os.ReadFile(files.CA)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(authority))
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: pool, ServerName: "sqld"}, ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return func(ctx context.Context, path string, header http.Header, message []byte) (status, text string) {
		request, err := http.NewRequestWithContext(ctx, "POST", "https://"+s.primary.GRPC, bytes.NewReader(framed(message)))
		if err != nil {
			return "", err.Error()
		}
		request.URL.Opaque = "//" + s.primary.GRPC + path
		request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "X-Namespace-Bin": {"ZGVmYXVsdA"}}
		for name, values := range header {
			request.Header[name] = values
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return "", err.Error()
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		for _, where := range []http.Header{response.Header, response.Trailer} {
			if status = where.Get("Grpc-Status"); status != "" {
				return status, where.Get("Grpc-Message")
			}
		}
		return "", response.Status
	}
}
