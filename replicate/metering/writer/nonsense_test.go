package writer_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
)

// speaker sends messages to a writer as one node.
type speaker struct {
	t       *testing.T
	w       *writer.Writer
	token   string
	session uint64
	seq     uint64
	number  uint64
}

// nodes makes nodes that have said Hello.
func nodes(t *testing.T, client *writer.Client, w *writer.Writer, names ...string) (list []*speaker) {
	for _, name := range names {
		node, err := client.AddNode(t.Context(), name)
		require.NoError(t, err)
		s := &speaker{t: t, w: w, token: node.Token}
		s.greet()
		list = append(list, s)
	}
	return list
}

// TestWhatIsBoughtLaterIsNotTaken takes what an account has while an edge that is away holds some of it.
func TestWhatIsBoughtLaterIsNotTaken(t *testing.T) {
	client, _, w := start(t, t.TempDir())
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 100})
	require.NoError(t, err)
	away := nodes(t, client, w, "away")[0]
	want := syncproto.Want{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: a.ID}, Target: 16, Urgent: true}
	away.send(syncproto.Message{Sync: &syncproto.Sync{Session: away.session, Wants: []syncproto.Want{want}}})
	all := writer.CreditChange{Amount: -1000, AtMost: true}
	a, err = client.ChangeCredits(t.Context(), a.ID, all)
	require.NoError(t, err)
	require.EqualValues(t, 16, a.Leased)
	require.EqualValues(t, 16, a.Deducting)
	_, err = client.ChangeCredits(t.Context(), a.ID, all)
	require.NoError(t, err, "nothing is left to take")
	a, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 500})
	require.NoError(t, err)
	require.EqualValues(t, 500, a.Balance)
	require.Zero(t, a.Deducting)
}

// TestTakingFromAnAccountNeverGivesItCredits: an edge has spent some of what is to be taken from it.
func TestTakingFromAnAccountNeverGivesItCredits(t *testing.T) {
	client, _, w := start(t, t.TempDir())
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 100})
	require.NoError(t, err)
	edge := nodes(t, client, w, "edge")[0]
	want := syncproto.Want{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: a.ID}, Target: 16, Urgent: true}
	edge.send(syncproto.Message{Sync: &syncproto.Sync{Session: edge.session, Wants: []syncproto.Want{want}}})
	all := writer.CreditChange{Amount: -1000, AtMost: true}
	_, err = client.ChangeCredits(t.Context(), a.ID, all)
	require.NoError(t, err)
	status, _ := edge.report(lookups(a.ID, 1, 6))
	require.Equal(t, http.StatusOK, status)
	for range 2 {
		a, err = client.ChangeCredits(t.Context(), a.ID, all)
		require.NoError(t, err)
		require.EqualValues(t, 10, a.Balance)
		require.EqualValues(t, 16, a.Deducting)
	}
}

func (s *speaker) greet() {
	status, reply := s.send(syncproto.Message{Hello: &syncproto.Hello{Boot: 1}})
	require.Equal(s.t, http.StatusOK, status)
	s.session, s.seq = reply.Session, reply.Applied
}

// send returns the status, and the reply to a message that was accepted.
func (s *speaker) send(m syncproto.Message) (int, *syncproto.Reply) {
	s.number++
	m.Number = s.number
	r, err := http.NewRequest(http.MethodPost, "http://writer"+writer.SyncPath, bytes.NewReader(m.Encode()))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+s.token)
	response, err := writer.InProcess(s.w.Handler()).RoundTrip(r)
	require.NoError(s.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, nil
	}
	reply, err := syncproto.DecodeReply(body)
	require.NoError(s.t, err)
	return response.StatusCode, reply
}

// report sends the next batch.
func (s *speaker) report(b syncproto.Batch) (int, *syncproto.Reply) {
	b.Seq = s.seq + 1
	status, reply := s.send(syncproto.Message{Sync: &syncproto.Sync{Session: s.session, Batch: &b}})
	if reply != nil {
		s.seq = reply.Applied
	}
	return status, reply
}

// lookups are rows of usage, each of so many lookups.
func lookups(account int64, rows int, count int64) (b syncproto.Batch) {
	for i := range rows {
		b.Usage = append(b.Usage, syncproto.Usage{Account: account, Key: int64(1 + i), Hour: syncproto.Hour(time.Now().UnixMilli()),
			Endpoint: charge.Companies, Outcome: charge.Found, Count: count})
	}
	return b
}

// failure reports a request that failed: it spends nothing, for which an honest node would need a lease.
func failure(account int64) syncproto.Batch {
	b := lookups(account, 1, 1)
	b.Usage[0].Outcome = charge.Failed
	return b
}

// result is what a node got for a message.
type result struct {
	status int
	reply  *syncproto.Reply
}

// together sends the messages of several nodes, which the writer commits as one group: the test holds
// the ledger's lock while they arrive. One message before them keeps the writer busy meanwhile.
func together(t *testing.T, w *writer.Writer, ledger *sql.DB, first func(), send ...func() result) []result {
	t.Helper()
	conn, err := ledger.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), `BEGIN IMMEDIATE`)
	require.NoError(t, err)
	results := make([]result, len(send))
	var all sync.WaitGroup
	all.Go(first)
	// The loop has the first message when it stays at one thing for longer than any takes.
	awaitMetric(t, w, `regedge_writer_loop_seconds ([1-9]|0\.[1-9])[0-9.]*\n`)
	for i, f := range send {
		all.Go(func() { results[i] = f() })
	}
	awaitMetric(t, w, fmt.Sprintf("regedge_writer_queued (%d|%d)\n", len(send), len(send)+1)) // with the first, if it was the beat that waits
	_, err = conn.ExecContext(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	all.Wait()
	return results
}

// awaitMetric waits for a line of the writer's metrics.
func awaitMetric(t *testing.T, w *writer.Writer, pattern string) {
	t.Helper()
	line := regexp.MustCompile("(?m)^" + pattern)
	require.Eventually(t, func() bool {
		_, _, metrics := ask(t, w, "GET", "/metrics", "")
		return line.MatchString(metrics)
	}, time.Minute, time.Millisecond, pattern)
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// hostile is a writer with an account, a hostile node and three honest ones.
type hostile struct {
	t       *testing.T
	w       *writer.Writer
	client  *writer.Client
	ledger  *sql.DB
	log     *lockedBuffer
	account int64
	node    *speaker
	busy    *speaker // keeps the writer busy while a group gathers
	honest  []*speaker
}

func withHostileNode(t *testing.T) *hostile {
	dir := t.TempDir()
	h := &hostile{t: t, log: &lockedBuffer{}}
	ledger, access := openDatabases(t, dir)
	var err error
	h.w, err = writer.Open(t.Context(), writer.Config{
		Ledger: ledger, Access: access, OperatorToken: token, Logger: slog.New(slog.NewJSONHandler(h.log, nil)),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	h.client, h.ledger = newClient(h.w, token), openLedger(t, dir)
	a, err := h.client.AddAccount(t.Context(), "made-up", "", "scale")
	require.NoError(t, err)
	_, err = h.client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 1_000_000})
	require.NoError(t, err)
	list := nodes(t, h.client, h.w, "hostile", "busy", "one", "two", "three")
	h.account, h.node, h.busy, h.honest = a.ID, list[0], list[1], list[2:]
	return h
}

// beside sends a batch of the hostile node and one of each honest node, in one group. The honest ones
// are booked. It returns the status that the hostile one got.
func (h *hostile) beside(b syncproto.Batch) int {
	h.t.Helper()
	send := []func() result{func() (r result) { r.status, r.reply = h.node.report(b); return r }}
	var before []uint64
	for _, s := range h.honest {
		before = append(before, s.seq)
		send = append(send, func() (r result) { r.status, r.reply = s.report(failure(h.account)); return r })
	}
	results := together(h.t, h.w, h.ledger, func() { h.busy.report(failure(h.account)) }, send...)
	for i, r := range results[1:] {
		require.Equal(h.t, http.StatusOK, r.status, "an honest node's message")
		require.Equal(h.t, syncproto.OK, r.reply.Status)
		require.Equal(h.t, before[i]+1, r.reply.Applied)
	}
	return results[0].status
}

// TestCountsThatNoIntegerHolds: the largest counts that a message may hold, in 20,000 rows of one lease,
// again and again.
func TestCountsThatNoIntegerHolds(t *testing.T) {
	h := withHostileNode(t)
	for range 5 {
		b := lookups(h.account, syncproto.MaxUsage, syncproto.MaxCount)
		require.Equal(t, http.StatusOK, h.beside(b))
	}
	_, err := h.ledger.Exec(`UPDATE usage SET count = ? WHERE key = 2`, math.MaxInt64)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, h.beside(lookups(h.account, 2, 1)), "a sum at the end of the integers")
	tooMany := lookups(h.account, syncproto.MaxUsage, 1<<47-1)
	status, _ := h.node.report(tooMany)
	require.Equal(t, http.StatusBadRequest, status)
}

// TestAMessageThatTheLedgerRefusesFailsAlone: the others of its group are booked, in the same session,
// and its node is named and then fenced.
func TestAMessageThatTheLedgerRefusesFailsAlone(t *testing.T) {
	h := withHostileNode(t)
	_, err := h.ledger.Exec(`CREATE TRIGGER refused BEFORE INSERT ON unresolved WHEN NEW.id = 'nonsense'
		BEGIN SELECT raise(ABORT, 'refused'); END`)
	require.NoError(t, err)
	nonsense := syncproto.Batch{Unresolved: []syncproto.Unresolved{{ID: "nonsense", Account: 1, Key: 1}}}
	for range 5 {
		require.Equal(t, http.StatusBadRequest, h.beside(nonsense))
	}
	require.Contains(t, h.log.String(), `"msg":"a message of a node is refused: no node should send it","node":"hostile","count":4`)
	status, _ := h.node.report(lookups(h.account, 1, 1))
	require.Equal(t, http.StatusForbidden, status)
	require.Regexp(t, `"msg":"a node is fenced[^"]*","node":"hostile"`, h.log.String())
	for _, s := range append(h.honest, h.busy) {
		status, reply := s.report(failure(h.account))
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, syncproto.OK, reply.Status)
	}
	require.Equal(t, 4*6-1+1, count(t, h.ledger, `SELECT sum(count) FROM usage`))
	awaitMetric(t, h.w, "regedge_writer_fenced_nodes 1\n")

	list, err := h.client.Nodes(t.Context())
	require.NoError(t, err)
	for _, n := range list {
		require.Equal(t, n.Name == "hostile", n.Fenced)
	}
	node, err := h.client.NewNodeToken(t.Context(), "hostile")
	require.NoError(t, err)
	h.node.token = node.Token
	h.node.greet()
	status, _ = h.node.report(lookups(h.account, 1, 1))
	require.Equal(t, http.StatusOK, status, "a new token ends the fence")
}

// TestARefusedMessageIsNoFailureOfTheLedger: a broken node must not take the writer out of service.
func TestARefusedMessageIsNoFailureOfTheLedger(t *testing.T) {
	h := withHostileNode(t)
	_, err := h.ledger.Exec(`CREATE TRIGGER refused BEFORE INSERT ON unresolved WHEN NEW.id = 'nonsense'
		BEGIN SELECT raise(ABORT, 'refused'); END`)
	require.NoError(t, err)
	for range 4 {
		status, _ := h.node.report(syncproto.Batch{Unresolved: []syncproto.Unresolved{{ID: "nonsense", Account: 1, Key: 1}}})
		require.Equal(t, http.StatusBadRequest, status)
		ready, text := get(t, h.w, "/readyz")
		require.Equal(t, http.StatusOK, ready, text)
	}
}

// TestWhatEdgesWaitForSurvivesARefusedMessage: a node waits for credits that another one holds when the
// ledger is loaded again. It gets them, in the same session, when the other one returns them.
func TestWhatEdgesWaitForSurvivesARefusedMessage(t *testing.T) {
	h := withHostileNode(t)
	_, err := h.ledger.Exec(`CREATE TRIGGER refused BEFORE INSERT ON unresolved WHEN NEW.id = 'nonsense'
		BEGIN SELECT raise(ABORT, 'refused'); END`)
	require.NoError(t, err)
	a, err := h.client.AddAccount(t.Context(), "small", "", "scale")
	require.NoError(t, err)
	_, err = h.client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 1})
	require.NoError(t, err)
	pool := syncproto.Pool{Kind: syncproto.Credits, Subject: a.ID}
	want := func(s *speaker) *syncproto.Reply {
		status, reply := s.send(syncproto.Message{Sync: &syncproto.Sync{Session: s.session, Wants: []syncproto.Want{{Pool: pool, Target: 1, Urgent: true}}}})
		require.Equal(t, http.StatusOK, status)
		return reply
	}
	holder, waiter := h.honest[0], h.honest[1]
	require.EqualValues(t, 1, granted(want(holder), pool))
	require.Zero(t, granted(want(waiter), pool))
	status, _ := h.node.report(syncproto.Batch{Unresolved: []syncproto.Unresolved{{ID: "nonsense", Account: 1, Key: 1}}})
	require.Equal(t, http.StatusBadRequest, status)
	status, _ = holder.report(syncproto.Batch{Returns: []syncproto.Return{{Pool: pool, Units: 1}}})
	require.Equal(t, http.StatusOK, status)
	_, reply := waiter.send(syncproto.Message{Sync: &syncproto.Sync{Session: waiter.session}})
	require.EqualValues(t, 1, granted(reply, pool))
}

// granted is the sum of the grants of a pool, by the newest row about it.
func granted(r *syncproto.Reply, pool syncproto.Pool) (units int64) {
	for _, row := range r.Rows {
		if row.Pool == pool {
			units = row.Granted
		}
	}
	return units
}
