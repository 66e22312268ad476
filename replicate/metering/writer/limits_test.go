package writer

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
	"regedge/schema"
)

// answerTo serves a request to a writer with a bearer token.
func answerTo(w *Writer, token, method, path string, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	r.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, r)
	return recorder
}

func syncAs(w *Writer, token string, m syncproto.Message) *httptest.ResponseRecorder {
	return answerTo(w, token, http.MethodPost, SyncPath, bytes.NewReader(m.Encode()))
}

// TestANodeThatSendsNonsenseIsFenced at the fifth message within some minutes, whatever comes between.
func TestANodeThatSendsNonsenseIsFenced(t *testing.T) {
	const fenceAfter, offencesLast = 5, 10 * time.Minute // docs/design.md names them, so they are not read from the code
	w, first, clock := runForRoles(t)
	node, err := first.AddNode(t.Context(), "one")
	require.NoError(t, err)
	nonsense := func() int {
		return answerTo(w, node.Token, http.MethodPost, SyncPath, strings.NewReader("<html>")).Code
	}
	hello := func() int { return syncAs(w, node.Token, syncproto.Message{Hello: &syncproto.Hello{Boot: 1}}).Code }
	for range fenceAfter - 1 {
		require.Equal(t, http.StatusBadRequest, nonsense())
		require.Equal(t, http.StatusOK, hello())
	}
	clock.pass(offencesLast + time.Second)
	for range fenceAfter - 1 {
		require.Equal(t, http.StatusBadRequest, nonsense())
		require.Equal(t, http.StatusOK, hello(), "it counts anew after ten minutes")
	}
	require.Equal(t, http.StatusBadRequest, nonsense())
	require.Equal(t, http.StatusForbidden, hello())
	clock.pass(10 * offencesLast)
	require.Equal(t, http.StatusForbidden, hello(), "a fence does not end by itself")
	node, err = first.NewNodeToken(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, hello())
}

// TestANodeThatReportsTooMuchIsFenced, after what it reported last was booked.
func TestANodeThatReportsTooMuchIsFenced(t *testing.T) {
	w, first, _ := runForRoles(t)
	node, err := first.AddNode(t.Context(), "one")
	require.NoError(t, err)
	hello := func() *httptest.ResponseRecorder {
		return syncAs(w, node.Token, syncproto.Message{Hello: &syncproto.Hello{Boot: 1}})
	}
	reply, err := syncproto.DecodeReply(hello().Body.Bytes())
	require.NoError(t, err)
	batch := &syncproto.Batch{Seq: 1, Of: reply.Epoch}
	for hour := range int32(1000) {
		batch.Usage = append(batch.Usage, syncproto.Usage{Account: 1, Key: 1, Hour: hour, Endpoint: 1, Outcome: 3, Count: 1})
	}
	require.Equal(t, http.StatusOK, syncAs(w, node.Token, syncproto.Message{Sync: &syncproto.Sync{Session: reply.Session, Batch: batch}}).Code)
	var rows int
	require.NoError(t, w.config.Ledger.QueryRow(`SELECT count(*) FROM usage`).Scan(&rows))
	require.Equal(t, 1000, rows)
	refused := hello()
	require.Equal(t, http.StatusForbidden, refused.Code)
	require.Contains(t, refused.Body.String(), "node_fenced")
	metrics := answerTo(w, firstOperator, http.MethodGet, "/metrics", nil)
	require.Contains(t, metrics.Body.String(), "regedge_writer_fenced_nodes 1\n")
	node, err = first.NewNodeToken(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, hello().Code)
}

// TestMessagesOfANodeAtOnceAreBounded: each may have megabytes, and a node in somebody else's hands as many connections as it likes.
func TestMessagesOfANodeAtOnceAreBounded(t *testing.T) {
	w, first, _ := runForRoles(t)
	send := func(token string, body io.Reader) int {
		return answerTo(w, token, http.MethodPost, SyncPath, body).Code
	}
	hello := func() io.Reader { return bytes.NewReader(syncproto.Message{Hello: &syncproto.Hello{Boot: 1}}.Encode()) }
	one, err := first.AddNode(t.Context(), "one")
	require.NoError(t, err)
	two, err := first.AddNode(t.Context(), "two")
	require.NoError(t, err)
	var all sync.WaitGroup
	var bodies []*io.PipeWriter
	for range maxInFlight {
		body, end := io.Pipe()
		bodies = append(bodies, end)
		all.Go(func() { send(one.Token, body) })
		_, err := end.Write([]byte{0}) // it is being read
		require.NoError(t, err)
	}
	for _, path := range []string{SyncPath, ReportPath, RequestsPath} {
		require.Equal(t, http.StatusTooManyRequests, answerTo(w, one.Token, http.MethodPost, path, hello()).Code)
		require.Equal(t, http.StatusUnauthorized, answerTo(w, "none", http.MethodPost, path, hello()).Code)
	}
	require.Equal(t, http.StatusOK, send(two.Token, hello()))
	for _, end := range bodies {
		end.CloseWithError(io.ErrUnexpectedEOF)
	}
	all.Wait()
	require.Equal(t, http.StatusOK, send(one.Token, hello()))
	require.Empty(t, w.inFlight.nodes)
}

// endlessBody is far over every limit, and counts what was read of it.
type endlessBody struct{ read atomic.Int64 }

func (b *endlessBody) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	if b.read.Add(int64(len(p))) > 8*syncproto.MaxMessage {
		return 0, io.EOF
	}
	return len(p), nil
}

// TestBodiesAreReadUpToTheirLimit: a client must not fill the writer's memory.
func TestBodiesAreReadUpToTheirLimit(t *testing.T) {
	w, first, _ := runForRoles(t)
	node, err := first.AddNode(t.Context(), "one")
	require.NoError(t, err)
	for _, route := range w.table() {
		if route.method == http.MethodGet {
			continue
		}
		token := firstOperator
		if route.needs == edges {
			token = node.Token
		}
		body := &endlessBody{}
		path := strings.NewReplacer(":id", "1", ":name", "one").Replace(route.path)
		answer := answerTo(w, token, route.method, path, body)
		require.GreaterOrEqual(t, answer.Code, 200, route.path)
		require.LessOrEqual(t, body.read.Load(), int64(2*syncproto.MaxMessage), route.path)
		if route.needs != edges {
			require.LessOrEqual(t, body.read.Load(), int64(2*maxBody), route.path)
		}
	}
}

// TestAWriterWhoseClockWasSetBackLooksAtTheLedger: the time at which it knew that it holds it is in the
// future, and another writer may have taken it since.
func TestAWriterWhoseClockWasSetBackLooksAtTheLedger(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	defer db.Close()
	w, err := Open(t.Context(), Config{OperatorToken: firstOperator, Ledger: db, Access: OpenAccess(t, t.TempDir())})
	require.NoError(t, err)
	now := time.Now().UnixMilli()
	require.NoError(t, w.confirm(t.Context(), now))
	_, err = db.Exec(`UPDATE writer SET generation = generation + 1`)
	require.NoError(t, err)
	require.NoError(t, w.confirm(t.Context(), now+confirmMillis-1), "it is asked once a second")
	require.ErrorIs(t, w.confirm(t.Context(), now-1), ErrFenced)
	w.confirmed = now
	require.ErrorIs(t, w.confirm(t.Context(), now+confirmMillis), ErrFenced)
}

// TestNoSessionNumberIsUsedTwice, also when the ledger was loaded again after commits that failed: an
// edge's delayed message would be taken for one of another session.
func TestNoSessionNumberIsUsedTwice(t *testing.T) {
	w, first, _ := runForRoles(t)
	node, err := first.AddNode(t.Context(), "one")
	require.NoError(t, err)
	seen := map[uint64]bool{}
	for range 3 {
		answer := syncAs(w, node.Token, syncproto.Message{Hello: &syncproto.Hello{Boot: 1}})
		require.Equal(t, http.StatusOK, answer.Code)
		reply, err := syncproto.DecodeReply(answer.Body.Bytes())
		require.NoError(t, err)
		require.False(t, seen[reply.Session])
		seen[reply.Session] = true

		_, err = w.config.Ledger.Exec(`ALTER TABLE unresolved RENAME TO away`)
		require.NoError(t, err)
		batch := &syncproto.Batch{Seq: reply.Applied + 1, Of: reply.Epoch, Unresolved: []syncproto.Unresolved{{ID: "r", Account: 1, Key: 1}}}
		require.Equal(t, http.StatusServiceUnavailable, syncAs(w, node.Token, syncproto.Message{Sync: &syncproto.Sync{Session: reply.Session, Batch: batch}}).Code)
		_, err = w.config.Ledger.Exec(`ALTER TABLE away RENAME TO unresolved`)
		require.NoError(t, err)
	}
}

// TestDetailsOfTheAuditLogAreBounded, without half a character at the end.
func TestDetailsOfTheAuditLogAreBounded(t *testing.T) {
	w, _, _ := runForRoles(t)
	for _, detail := range []string{strings.Repeat("é", maxDetail), "x" + strings.Repeat("é", maxDetail), "short"} {
		none := func(context.Context, *sql.Tx, int64) error { return nil }
		require.NoError(t, w.Commit(t.Context(), Act{Name: "test", Detail: detail}, none))
		var kept string
		require.NoError(t, w.config.Ledger.QueryRow(`SELECT detail FROM audit ORDER BY rowid DESC LIMIT 1`).Scan(&kept))
		require.True(t, utf8.ValidString(kept))
		require.True(t, strings.HasPrefix(detail, kept))
		require.LessOrEqual(t, len(kept), maxDetail)
		require.GreaterOrEqual(t, len(kept), min(len(detail), maxDetail-1))
	}
}

// TestTheAuditLogHasAllOfARequest, and nothing that can't be shown: somebody who changes something must not hide a part of it behind
// what the log has no room for, nor change how a terminal shows the rest.
func TestTheAuditLogHasAllOfARequest(t *testing.T) {
	w, first, _ := runForRoles(t)
	ann := newHousehold(t, first, "ann", RoleAll)
	last := func() AuditEntry {
		page, err := first.AuditPage(t.Context(), ann.account, ListQuery{Limit: 1})
		require.NoError(t, err)
		return page.Data[0]
	}
	before, path := last(), "/v1/account/keys/"+decimal(ann.key.ID)
	var answer *httptest.ResponseRecorder
	for _, filling := range []string{strings.Repeat("x", maxDetail), strings.Repeat("\x7f", maxDetail/3), strings.Repeat("\xff", maxDetail/3)} { // stored as three bytes
		var code string
		answer, code = ownAsk(w, ann.token, http.MethodPatch, path, `{"name":"`+filling+`","name":"ok","allowed_addresses":["0.0.0.0/0"]}`)
		require.Equal(t, "malformed", code, answer.Body)
	}
	for _, at := range []string{strings.Repeat("0", 9000) + decimal(ann.key.ID), "+" + decimal(ann.key.ID)} {
		answer, _ = ownAsk(w, ann.token, http.MethodPatch, "/v1/account/keys/"+at, `{"name":"ok"}`)
		require.Equal(t, http.StatusNotFound, answer.Code, "an act is named by its path")
	}
	require.Equal(t, before, last())
	k, err := first.Key(t.Context(), ann.key.ID)
	require.NoError(t, err)
	require.Equal(t, []any{"ann's key", 0}, []any{k.Name, len(k.Allowed)}, "nothing was changed")

	answer, _ = ownAsk(w, ann.token, http.MethodPatch, path, "{\"name\":\"\u009b2J\u202e\",\"name\":\"o\u200dk\"}")
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	require.Equal(t, "{\"name\":\"\ufffd2J\ufffd\",\"name\":\"o\u200dk\"}", last().Detail)
	longest := `{"amount":1,"note":"` + strings.Repeat(`\ud83e\udd80`, maxNote) + `"}` // as Python writes it
	answer, _ = ownAsk(w, firstOperator, http.MethodPost, "/v1/accounts/"+decimal(ann.account)+"/credits", longest)
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	require.Equal(t, longest, last().Detail)
}

// TestAMisspeltFieldIsRefused: it must not look as if it had been changed.
func TestAMisspeltFieldIsRefused(t *testing.T) {
	w, first, _ := runForRoles(t)
	_, err := first.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	for _, body := range []string{`{"suspendd":true}`, `{"name":"a","other":1}`, `[]`, ``, `{"name":`} {
		require.Equal(t, http.StatusBadRequest, answerTo(w, firstOperator, http.MethodPatch, "/v1/accounts/1", strings.NewReader(body)).Code, body)
	}
	require.Equal(t, http.StatusOK, answerTo(w, firstOperator, http.MethodPatch, "/v1/accounts/1", strings.NewReader(`{"name":"a"}`)).Code)
}

// TestTokensThatCannotBeReadAreReadLater, since one of them may have ended.
func TestTokensThatCannotBeReadAreReadLater(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	defer db.Close()
	w, err := Open(t.Context(), Config{OperatorToken: firstOperator, Ledger: db, Access: OpenAccess(t, t.TempDir())})
	require.NoError(t, err)
	for _, statement := range []string{`ALTER TABLE operator_token RENAME TO away`, `ALTER TABLE away RENAME TO operator_token`} {
		_, err = db.Exec(statement)
		require.NoError(t, err)
		w.tokensChanged.Store(true)
		w.refreshTokens(t.Context())
		require.Equal(t, strings.HasSuffix(statement, "away"), w.tokensChanged.Load(), statement)
	}
}

// TestATokenThatEndedDoesNotEndLater when it is ended again.
func TestATokenThatEndedDoesNotEndLater(t *testing.T) {
	_, first, clock := runForRoles(t)
	_, err := first.AddToken(t.Context(), "ci", RoleRead, time.Hour)
	require.NoError(t, err)
	ended, err := first.EndToken(t.Context(), "ci")
	require.NoError(t, err)
	clock.pass(time.Minute)
	again, err := first.EndToken(t.Context(), "ci")
	require.NoError(t, err)
	require.Equal(t, ended.Ends, again.Ends)
}

// TestAWriterWithoutWorkNoticesThatAnotherOneTookTheLedger: operators and edges would else go on with it.
func TestAWriterWithoutWorkNoticesThatAnotherOneTookTheLedger(t *testing.T) {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, err)
	defer db.Close()
	w, err := Open(t.Context(), Config{OperatorToken: firstOperator, Ledger: db, Access: OpenAccess(t, t.TempDir())})
	require.NoError(t, err)
	w.beat(t.Context())
	require.False(t, w.fenced.Load())
	_, err = db.Exec(`UPDATE writer SET generation = generation + 1`)
	require.NoError(t, err)
	w.wrote = false
	w.beat(t.Context())
	require.True(t, w.fenced.Load())
}

// TestAGroupIsBounded, so that no message waits for a transaction without an end.
func TestAGroupIsBounded(t *testing.T) {
	w := &Writer{ops: make(chan *operation, 3*maxGroup)}
	for range 2 * maxGroup {
		w.ops <- &operation{}
	}
	require.Len(t, w.gather(&operation{}), maxGroup)
	require.Len(t, w.gather(&operation{}), maxGroup)
	require.Len(t, w.gather(&operation{}), 3, "what is there, without waiting")
}
