package sqld

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStatementsThatTouchFilesAreRefused(t *testing.T) {
	for body, refused := range map[string]bool{
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT 1 FROM company WHERE cin = ?","args":[{"type":"text","value":"readfile"}]}}]}`:      false,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT 1","named_args":[{"name":"writefile","value":{"type":"text","value":"fsdir"}}]}}]}`: false,
		`{"baton":null,"requests":[{"type":"close"}]}`:                            false,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT READFILE('x')"}}]}`: true,
		`{"requests":[{"type":"batch","batch":{"steps":[{"stmt":{"sql":"SELECT 1"}},{"condition":{"type":"ok","step":0},"stmt":{"sql":"SELECT \"writefile\"(1,2)"}}]}}]}`: true,
		`{"requests":[{"type":"sequence","sql":"SELECT 1; SELECT * FROM fsdir"}]}`:                                                                                        true,
		`{"requests":[{"type":"store_sql","sql_id":1,"sql":"SELECT \u0072eadfile('x')"}]}`:                                                                                true,
		`{"requests":[{"type":"describe","sql":"SELECT load_extension('x')"}]}`:                                                                                           true,
		`{"requests":[{"type":"describe","sql":"SELECT sqlite3mc_config('cipher')"}]}`:                                                                                    true,
		`{"requests":[{"type":"describe","sql":"SELECT FTS3_tokenizer('x', x'00')"}]}`:                                                                                    true,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT sha3_query(?)","args":[{"type":"text","value":"SELECT writefile(1, 2)"}]}}]}`:                               true,
		`{"requests":[{"type":"execute","stmt":{"sql":"SELECT readfile('x')","sql":"SELECT 1"}}]}`:                                                                        false, // what is passed on has the last one
	} {
		passed, err := harmless(strings.NewReader(body))
		if refused {
			require.ErrorIs(t, err, errTouchesFiles, body)
			continue
		}
		require.NoError(t, err, body)
		require.NotContains(t, string(passed), "readfile('x')")
	}
	for _, body := range []string{"", "{", `{} {}`, `{}x`} {
		_, err := harmless(strings.NewReader(body))
		require.Error(t, err, body)
		require.NotErrorIs(t, err, errTouchesFiles)
	}
	passed, err := harmless(strings.NewReader(`{"n":9223372036854775807,"f":1.5e300,"a":[true,null,"<"]}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"n":9223372036854775807,"f":1.5e300,"a":[true,null,"<"]}`, string(passed))
	require.Contains(t, string(passed), "9223372036854775807")
}

func TestNoStatementWaitsForAFrame(t *testing.T) {
	passed, err := harmless(strings.NewReader(`{"baton":"b","requests":[{"type":"execute","stmt":{"sql":"SELECT 1","replication_index":9}},` +
		`{"type":"batch","batch":{"steps":[{"stmt":{"sql":"SELECT 2","replication_index":"9"}}],"replication_index":9}}],"replication_index":9}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"baton":"b","requests":[{"type":"execute","stmt":{"sql":"SELECT 1"}},{"type":"batch","batch":{"steps":[{"stmt":{"sql":"SELECT 2"}}]}}]}`,
		string(passed))
}

// TestAnAnswerThatIsReadIsNotCutOff, however long it takes: a query may return many rows over a slow line.
func TestAnAnswerThatIsReadIsNotCutOff(t *testing.T) {
	g, err := openReads(&Config{HTTP: "127.0.0.1:0", Reads: &Reads{Admit: func(string) bool { return true }}}, newOutput(io.Discard), nil)
	require.NoError(t, err)
	defer g.close()
	g.release()
	inner, err := net.Listen("tcp", g.inner)
	require.NoError(t, err)
	limit, seen := 100*time.Millisecond, make(chan struct{})
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 5 {
			_, _ = io.WriteString(w, "row")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-seen: // each row is passed on at once
			case <-r.Context().Done():
				return
			}
			time.Sleep(limit / 2)
		}
	})}
	go server.Serve(inner)
	defer server.Close()
	web := httptest.NewUnstartedServer(g)
	web.Config.WriteTimeout = limit
	web.Start()
	defer web.Close()
	client := http.Client{Timeout: time.Minute}
	answer, err := client.Post(web.URL+"/v3/cursor", "application/json", strings.NewReader(`{"batch":{"steps":[]}}`))
	require.NoError(t, err)
	defer answer.Body.Close()
	first := make([]byte, len("row"))
	_, err = io.ReadFull(answer.Body, first)
	require.NoError(t, err)
	close(seen)
	rows, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("row", 5), string(first)+string(rows))
}

// TestRefusalsAreLoggedNowAndThen: whoever can reach the port must not fill the log.
func TestRefusalsAreLoggedNowAndThen(t *testing.T) {
	var log bytes.Buffer
	g := &readGate{output: newOutput(&log)}
	g.tell("a")
	g.tell("b")
	require.Equal(t, "regedge: refused a\n", log.String())
	g.told.Add(-int64(toldPause))
	g.tell("c")
	require.Contains(t, log.String(), "refused c\n")
	g.told.Add(int64(24 * time.Hour))
	g.tell("d")
	require.Contains(t, log.String(), "refused d\n", "the clock was a day ahead")
	(&readGate{output: newOutput(&log)}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/dump", nil))
	require.Contains(t, log.String(), "refused a call that is not POST /v2/pipeline")
}

// seenBy is a server behind a gate that sees each call and answers none.
type seenBy func(*http.Request)

// RoundTrip implements http.RoundTripper.
func (see seenBy) RoundTrip(r *http.Request) (*http.Response, error) {
	see(r)
	return nil, io.ErrUnexpectedEOF
}

// TestAProbeEndsWhenTheServerHangs: whoever probes would keep a connection for each.
func TestAProbeEndsWhenTheServerHangs(t *testing.T) {
	seen := false
	g := &readGate{proxy: &httputil.ReverseProxy{
		ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(*httputil.ProxyRequest) {},
		Transport: seenBy(func(r *http.Request) {
			until, limited := r.Context().Deadline()
			seen = limited && time.Until(until) <= healthLimit
		}),
	}}
	g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, healthPath, nil))
	require.True(t, seen)
}
