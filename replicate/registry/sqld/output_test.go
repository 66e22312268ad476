package sqld

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/registry/libsql"
)

func TestOutputIsForwardedByLines(t *testing.T) {
	var to bytes.Buffer
	o := newOutput(&to)
	for _, part := range []string{"on", "e\ntwo\nth", "ree\nfour"} {
		n, err := o.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.Equal(t, "one\ntwo\nthree\n", to.String())
	o.flush()
	o.flush()
	require.Equal(t, "one\ntwo\nthree\nfour", to.String())

	to.Reset()
	long := strings.Repeat("x", maxLine+10)
	fmt.Fprint(o, long)
	require.Len(t, to.String(), maxLine+10, "a line without an end is not kept for ever")
	fmt.Fprint(newOutput(nil), "nobody listens\n")
}

// TestWhatIsSaidIsOnePrintableLine, whatever an error has of others' words.
func TestWhatIsSaidIsOnePrintableLine(t *testing.T) {
	var to bytes.Buffer
	newOutput(&to).say("it said \x1b[2Jhello\rthere\x00\nregedge: नम")
	require.Equal(t, "regedge: it said  [2Jhello there ; regedge: नम\n", to.String())
}

func TestASignIsFoundWhereverTheWritesDivideIt(t *testing.T) {
	line := "ERROR " + string(signs[0]) + " x\n"
	for cut := range len(line) {
		o := newOutput(nil)
		fmt.Fprint(o, line[:cut])
		fmt.Fprint(o, line[cut:])
		require.Len(t, o.doubted, 1, cut)
	}
}

// TestAPlannedStopLogsNoErrors: what sqld breaks off, since it was asked to end, it logs as errors.
func TestAPlannedStopLogsNoErrors(t *testing.T) {
	var to bytes.Buffer
	o := newOutput(&to)
	said := `ERROR timings_middleware{req_id=5d}: libsql_server::error: HTTP API: 404 Not Found, NamespaceDoesntExist("default")
ERROR timings_middleware{req_id=5e}: libsql_server::error: HTTP API: 503 Service Unavailable, NamespaceStoreShutdown
ERROR tower_http::trace::on_failure: response failed classification=Code: 13 latency=885 ms
ERROR libsql_server::stats: error persisting stats file: background task failed
ERROR libsql_server::stats: error persisting stats file: task was cancelled
ERROR libsql_server::ws: server loop exited
ERROR libsql_server::namespace: unable to remove .sentinel file: No such file or directory (os error 2)
`
	fmt.Fprint(o, said)
	require.Equal(t, said, to.String(), "of a server that runs they are errors")
	to.Reset()
	o.stopping()
	fmt.Fprint(o, said+"ERROR of another kind\n")
	require.Equal(t, "ERROR of another kind\n", to.String())
}

// TestForwardedStatementsAreNoErrors: until it has a copy a replica forwards each statement, and logs
// two errors for it.
func TestForwardedStatementsAreNoErrors(t *testing.T) {
	var to bytes.Buffer
	o := newOutput(&to)
	at := time.Unix(1000, 0)
	o.now = func() time.Time { return at }
	for range 3 {
		fmt.Fprintf(o, "ERROR x: `status: PermissionDenied, message: %q`\n", libsql.OnlyReplication)
	}
	fmt.Fprint(o, "ERROR x: Invalid MAC on baton\n")
	fmt.Fprint(o, "ERROR tower_http::trace::on_failure: response failed classification=Code: 9 latency=0 ms\n")
	fmt.Fprint(o, "ERROR tower_http::trace::on_failure: response failed classification=Code: 14 latency=0 ms\n")
	fmt.Fprint(o, "regedge: http: TLS handshake error from 127.0.0.1:5: EOF\nregedge: http: TLS handshake error from 127.0.0.1:5: bad certificate\n")
	fmt.Fprint(o, "regedge: timeout waiting for PING response\n")
	fmt.Fprint(o, "ERROR of another kind\n")
	require.NotContains(t, to.String(), "PermissionDenied")
	require.NotContains(t, to.String(), "baton")
	require.NotContains(t, to.String(), "EOF", "as of each probe")
	require.Contains(t, to.String(), "bad certificate")
	require.NotContains(t, to.String(), "PING")
	require.Contains(t, to.String(), "regedge: a replica's machine does not answer any more: its connection is closed\n")
	require.NotContains(t, to.String(), "Code: ", "as at each snapshot of the log")
	require.Equal(t, 1, strings.Count(to.String(), "the replica has no copy yet, or something here sent it more than a read"))
	require.Contains(t, to.String(), "ERROR of another kind\n")
	at = at.Add(forwardedEvery)
	fmt.Fprintf(o, "ERROR x: %q\n", libsql.OnlyReplication)
	require.Equal(t, 2, strings.Count(to.String(), "the replica has no copy yet"))
}

// TestAPrimaryThatIsNotReachedIsToldAgainLater: once until it was reached, and another reason at once.
func TestAPrimaryThatIsNotReachedIsToldAgainLater(t *testing.T) {
	var to bytes.Buffer
	r := &relay{output: newOutput(&to), ctx: t.Context()}
	refused, unknown := errors.New("refused"), errors.New("no such host")
	for _, err := range []error{refused, refused, unknown, nil, unknown, unknown} {
		r.tell(err)
	}
	require.Equal(t, []string{"refused", "no such host", "no such host"}, regexp.MustCompile(`refused|no such host`).FindAllString(to.String(), -1))
	ended, end := context.WithCancel(t.Context())
	end()
	r.ctx = ended
	r.tell(refused)
	require.Equal(t, 3, strings.Count(to.String(), "\n"), "its own end is no reason")
}
