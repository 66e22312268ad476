package writer_test

import (
	"bytes"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/libsql"
)

// lateWay passes calls on to a libSQL server. When armed, it cuts the connection of the next COMMIT, and delivers that
// only after the writer has read its ledger again, as a kernel that sends again what a cut connection had in its buffer,
// or a server whose disk hung.
type lateWay struct {
	to     string
	mu     sync.Mutex
	mark   string // of the transaction whose COMMIT is cut
	armed  bool
	held   []byte
	header http.Header
	path   string
	early  bool // deliver it while the writer waits for the lock
	late   chan string
	access *sql.DB
}

func (l *lateWay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	if l.mark != "" && strings.Contains(string(body), l.mark) {
		l.mark, l.armed = "", true
	}
	if l.armed && strings.Contains(string(body), `"COMMIT"`) {
		l.armed, l.held, l.header, l.path = false, body, r.Header.Clone(), r.URL.Path
		early := l.early
		l.mu.Unlock()
		if early {
			time.AfterFunc(time.Second, l.deliver)
		}
		panic(http.ErrAbortHandler)
	}
	l.mu.Unlock()
	status, header, answer := l.pass(r.Method, r.URL.Path, r.Header, body)
	if strings.Contains(string(body), "FROM key_month") { // the last part of a load
		l.deliver()
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	w.Write(answer)
}

// deliver passes on the COMMIT that is held, if there is one.
func (l *lateWay) deliver() {
	l.mu.Lock()
	held := l.held
	l.held = nil
	l.mu.Unlock()
	if held != nil {
		_, _, said := l.pass("POST", l.path, l.header, held)
		l.late <- string(said)
	}
}

func (l *lateWay) pass(method, path string, header http.Header, body []byte) (int, http.Header, []byte) {
	q, _ := http.NewRequest(method, l.to+path, bytes.NewReader(body))
	q.Header = header.Clone()
	q.Header.Del("Accept-Encoding")
	a, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		return 502, nil, nil
	}
	defer a.Body.Close()
	answer, _ := io.ReadAll(a.Body)
	return a.StatusCode, a.Header, answer
}

// arm has the COMMIT cut that follows a statement with a mark: the writer commits a beat each second, too.
func (l *lateWay) arm(mark string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark = mark
}

// writeOverLateWay runs a writer whose ledger is on a libSQL server behind a lateWay.
func writeOverLateWay(t *testing.T) (*writer.Writer, *writer.Client, *lateWay) {
	way := &lateWay{to: sqldtest.Primary(t).URL(), late: make(chan string, 1)}
	proxy := httptest.NewServer(way)
	t.Cleanup(proxy.Close)
	ledger, err := libsql.Open(proxy.URL, "")
	require.NoError(t, err)
	t.Cleanup(func() { ledger.Close() })
	_, way.access = openDatabases(t, t.TempDir())
	w, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: way.access, OperatorToken: token})
	require.NoError(t, err)
	runUntilEnd(t, w)
	return w, newClient(w, token), way
}

func tenCredits(t *testing.T, client *writer.Client) writer.Account {
	a, err := client.AddAccount(t.Context(), "made-up", "", "scale")
	require.NoError(t, err)
	_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 10})
	require.NoError(t, err)
	return a
}

// TestACommitThatLandsLateLosesNoPurchase: the answer of a commit is lost, the ledger is read again, and then the
// commit lands.
func TestACommitThatLandsLateLosesNoPurchase(t *testing.T) {
	t.Parallel()
	_, client, way := writeOverLateWay(t)
	a := tenCredits(t, client)

	way.arm("INSERT INTO credit_entry")
	purchase := writer.WithIdempotencyKey(t.Context(), writer.NewIdempotencyKey())
	_, err := client.ChangeCredits(purchase, a.ID, writer.CreditChange{Amount: 100})
	require.ErrorIs(t, err, writer.ErrUncertain)
	require.Contains(t, <-way.late, "TRANSACTION_TIMEOUT", "it is refused, since the lock was taken")

	again, err := client.ChangeCredits(purchase, a.ID, writer.CreditChange{Amount: 100})
	require.NoError(t, err)
	require.EqualValues(t, 110, again.Balance, "the client is told that the purchase was made")
	one, err := client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 1})
	require.NoError(t, err)
	entries, err := client.Credits(t.Context(), a.ID)
	require.NoError(t, err)
	sum := int64(0)
	for _, e := range entries {
		sum += e.Amount
	}
	require.EqualValues(t, 111, one.Balance)
	require.Equal(t, one.Balance, sum)
}

// TestACommitOfUsageThatLandsLateIsCountedOnce: the same with an edge's report.
func TestACommitOfUsageThatLandsLateIsCountedOnce(t *testing.T) {
	t.Parallel()
	w, client, way := writeOverLateWay(t)
	a := tenCredits(t, client)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	m, err := meter.Open(meter.Config{State: t.TempDir(), WaitLimit: time.Millisecond,
		Writer: meter.OverHTTP("http://writer", node.Token, &http.Client{Transport: writer.InProcess(w.Handler())})})
	require.NoError(t, err)
	defer m.Close()
	charged := func(id string) string {
		return m.Charge(t.Context(), charge.Request{ID: id, Account: a.ID, Key: 1, PerMinute: 100, Endpoint: charge.Companies, Outcome: charge.Found}).Code
	}
	require.NoError(t, m.Exchange(t.Context()))
	charged("wants")
	require.NoError(t, m.Exchange(t.Context()))
	for n := range 3 {
		require.Equal(t, "", charged("request-"+string(rune('a'+n))))
	}
	way.arm("INSERT INTO usage")
	require.Error(t, m.Exchange(t.Context()))
	require.Contains(t, <-way.late, "TRANSACTION_TIMEOUT", "it is refused, since the lock was taken")
	for range 5 {
		_ = m.Exchange(t.Context())
	}
	rows, err := client.Usage(t.Context(), writer.UsageQuery{Account: a.ID})
	require.NoError(t, err)
	used := int64(0)
	for _, r := range rows {
		used += r.Count
	}
	now, err := client.Account(t.Context(), a.ID)
	require.NoError(t, err)
	require.EqualValues(t, 3, now.Spent)
	require.Equal(t, now.Spent, used)
}

// TestARevocationThatLandsLateIsProjected: the comparison after a commit without an answer may come before it lands.
func TestARevocationThatLandsLateIsProjected(t *testing.T) {
	t.Parallel()
	_, client, way := writeOverLateWay(t)
	a := tenCredits(t, client)
	key, err := client.AddKey(t.Context(), a.ID, "")
	require.NoError(t, err)
	keys := func() (n int) {
		require.NoError(t, way.access.QueryRow(`SELECT count(*) FROM api_key`).Scan(&n))
		return n
	}
	require.Eventually(t, func() bool { return keys() == 1 }, 30*time.Second, 10*time.Millisecond)
	way.early = true
	way.arm("UPDATE api_key")
	_, err = client.RevokeKey(t.Context(), key.ID)
	require.ErrorIs(t, err, writer.ErrUncertain)
	require.NotContains(t, <-way.late, "error")
	require.Eventually(t, func() bool { return keys() == 0 }, 30*time.Second, 10*time.Millisecond)
}
