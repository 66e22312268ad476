package writer_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/libsql"
)

// lostPut passes calls on to a libSQL server. It cuts the connection of the first that puts a key, which the server gets
// only when it is delivered.
type lostPut struct {
	lateWay
	cut chan struct{} // closed then
}

func (l *lostPut) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	l.mu.Lock()
	first := l.path == "" && bytes.Contains(body, []byte("INSERT INTO api_key"))
	if first {
		l.held, l.header, l.path = body, r.Header.Clone(), r.URL.Path
	}
	l.mu.Unlock()
	if first {
		close(l.cut)
		panic(http.ErrAbortHandler)
	}
	status, header, answer := l.pass(r.Method, r.URL.Path, r.Header, body)
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	w.Write(answer)
}

// TestARevokedKeyStaysRevoked although a statement that put it, and was given up, arrives after the one that dropped it.
func TestARevokedKeyStaysRevoked(t *testing.T) {
	way := &lostPut{lateWay: lateWay{to: sqldtest.Primary(t).URL(), late: make(chan string, 1)}, cut: make(chan struct{})}
	proxy := httptest.NewServer(way)
	defer proxy.Close()
	access, err := libsql.Open(proxy.URL, "")
	require.NoError(t, err)
	defer access.Close()
	ledger, _ := openDatabases(t, t.TempDir())
	w, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: token})
	require.NoError(t, err)
	armed := w.CompareLate()
	runUntilEnd(t, w)
	client := newClient(w, token)
	a, err := client.AddAccount(t.Context(), "made-up", "", "scale")
	require.NoError(t, err)
	k, err := client.AddKey(t.Context(), a.ID, "key")
	require.NoError(t, err)
	<-way.cut
	next := func() (late chan<- time.Time) {
		select {
		case late = <-armed:
		case <-time.After(time.Minute):
			require.Fail(t, "no comparison is planned")
		}
		return late
	}
	start := next() // of what a writer before this one may have given up
	keys := func() int { return count(t, access, `SELECT count(*) FROM api_key`) }
	require.Eventually(t, func() bool { return keys() == 1 }, time.Minute, 10*time.Millisecond, "it was put again")
	_, err = client.RevokeKey(t.Context(), k.ID)
	require.NoError(t, err)
	projected(t, w)
	require.Zero(t, keys())
	start <- time.Now()
	late := next() // a minute after the connection was cut
	_, err = client.AddAccount(t.Context(), "another", "", "scale")
	require.NoError(t, err)
	projected(t, w) // and the first comparison has ended, which began before that

	way.deliver()
	<-way.late
	require.Equal(t, 1, keys(), "the late statement put it back")
	late <- time.Now()
	require.Eventually(t, func() bool { return keys() == 0 }, time.Minute, 10*time.Millisecond)
	require.Empty(t, armed, "nothing was given up since")
}
