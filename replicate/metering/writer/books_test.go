package writer

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// TestTheCreditsOfAnAccountAreItsOwn, and so is what is in doubt, the newest first.
func TestTheCreditsOfAnAccountAreItsOwn(t *testing.T) {
	w, client, _ := runForRoles(t)
	first, _ := keyFor(t, client)
	second, _ := keyFor(t, client)
	for account, amount := range map[int64]int64{first: 11, second: 22} {
		_, err := client.ChangeCredits(t.Context(), account, CreditChange{Amount: amount})
		require.NoError(t, err)
	}
	entries, err := client.Credits(t.Context(), first)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.EqualValues(t, 11, entries[0].Amount)

	_, err = w.config.Ledger.Exec(`INSERT INTO unresolved (id, account, key, node, at) VALUES ('A', ?1, 1, 'one', 1), ('B', ?1, 1, 'one', 2), ('C', ?2, 2, 'one', 2)`, first, second)
	require.NoError(t, err)
	_, err = client.CreditUnresolved(t.Context(), "A")
	require.NoError(t, err)
	all, err := client.UnresolvedPage(t.Context(), ListQuery{})
	require.NoError(t, err)
	var shown []string
	for _, u := range all.Data {
		shown = append(shown, u.ID)
		require.Equal(t, u.ID == "A", u.Credited, u.ID)
	}
	require.Equal(t, []string{"B", "C", "A"}, shown)
	for cursor, want := range map[string]string{"": "B", "B": "C", "C": "A"} {
		page, err := client.UnresolvedPage(t.Context(), ListQuery{Limit: 1, Cursor: cursor})
		require.NoError(t, err)
		require.Len(t, page.Data, 1)
		require.Equal(t, want, page.Data[0].ID)
		require.Equal(t, want == "A", page.Next == "")
	}
	page, err := client.UnresolvedPage(t.Context(), ListQuery{Search: "c"})
	require.NoError(t, err)
	require.Len(t, page.Data, 1)
	audit, err := client.AuditPage(t.Context(), first, ListQuery{Search: "unresolved"})
	require.NoError(t, err)
	require.Len(t, audit.Data, 1, "it is an act of the account")
	metrics := answerTo(w, firstOperator, http.MethodGet, "/metrics", nil)
	require.Contains(t, metrics.Body.String(), "regedge_writer_unresolved_charges 2\n", "those that nobody has credited")
	_, err = client.CreditUnresolved(t.Context(), "A")
	require.NoError(t, err)
	a, err := client.Account(t.Context(), first)
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Compensated, "once")
}

// TestCreditsAreListedInTheOrderOfTheirChanges also when the clock was set back between two of them.
func TestCreditsAreListedInTheOrderOfTheirChanges(t *testing.T) {
	_, client, clock := runForRoles(t)
	account, _ := keyFor(t, client)
	for _, c := range []struct {
		amount int64
		after  time.Duration
	}{{30, 0}, {20, -time.Minute}, {10, 2 * time.Minute}} {
		clock.pass(c.after)
		_, err := client.ChangeCredits(t.Context(), account, CreditChange{Amount: c.amount})
		require.NoError(t, err)
	}
	entries, err := client.Credits(t.Context(), account)
	require.NoError(t, err)
	var amounts []int64
	for _, e := range entries {
		amounts = append(amounts, e.Amount)
	}
	require.Equal(t, []int64{30, 20, 10}, amounts)
}

// TestWhatIsWrittenHasItsLength: notes of 500 characters, requests of 64 KiB.
func TestWhatIsWrittenHasItsLength(t *testing.T) {
	w, client, _ := runForRoles(t)
	account, _ := keyFor(t, client)
	_, err := client.ChangeCredits(t.Context(), account, CreditChange{Amount: 1, Note: strings.Repeat("é", 500)})
	require.NoError(t, err)
	_, err = client.ChangeCredits(t.Context(), account, CreditChange{Amount: 1, Note: strings.Repeat("é", 501)})
	require.ErrorIs(t, err, ErrMalformed)
	body := `{"amount":1}`
	for size, status := range map[int]int{64 << 10: http.StatusOK, 64<<10 + 1: http.StatusBadRequest} {
		padded := strings.Repeat(" ", size-len(body)) + body
		answer := answerTo(w, firstOperator, http.MethodPost, "/v1/accounts/"+decimal(account)+"/credits", strings.NewReader(padded))
		require.Equal(t, status, answer.Code, size)
	}
}

// TestTokensAreListedByName, and the end of an owner's token is in the log of its account, with its first time.
func TestTokensAreListedByName(t *testing.T) {
	w, first, clock := runForRoles(t)
	for _, name := range []string{"b", "c", "a"} {
		_, err := first.AddToken(t.Context(), name, RoleRead, time.Hour)
		require.NoError(t, err)
		clock.pass(time.Second)
	}
	tokens, err := first.Tokens(t.Context())
	require.NoError(t, err)
	require.Len(t, tokens, 3)
	require.Equal(t, []string{"a", "b", "c"}, []string{tokens[0].Name, tokens[1].Name, tokens[2].Name})
	listed := func() int { return len(readAs[[]OperatorToken](t, w, "/v1/tokens")) }
	clock.pass(time.Hour)
	require.Equal(t, 3, listed(), "also those that ended, for 90 days")
	clock.pass(endedTokenKept - 2*time.Second)
	require.Equal(t, 1, listed())

	ann := newHousehold(t, first, "ann", RoleAll)
	ended, err := first.EndOwnerToken(t.Context(), ann.tokenID)
	require.NoError(t, err)
	clock.pass(time.Minute)
	again, err := first.EndOwnerToken(t.Context(), ann.tokenID)
	require.NoError(t, err)
	require.Equal(t, ended.Ends, again.Ends)
	audit := readAs[Page[AuditEntry]](t, w, "/v1/audit?search=owner-tokens&account="+decimal(ann.account))
	require.Len(t, audit.Data, 2)
}

// TestANodeOfANewerProgramIsToldSo, and not fenced: its messages are no nonsense.
func TestANodeOfANewerProgramIsToldSo(t *testing.T) {
	w, client, _ := runForRoles(t)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	for range fenceAfter + 1 {
		answer := answerTo(w, node.Token, http.MethodPost, SyncPath, strings.NewReader("\xf1"))
		require.Equal(t, http.StatusUpgradeRequired, answer.Code, answer.Body)
		require.Contains(t, answer.Body.String(), `"sync_version"`)
	}
}

// TestPeopleOfAnAccountAreShownOnce: who signs in, and who is invited and may still come.
func TestPeopleOfAnAccountAreShownOnce(t *testing.T) {
	w, client, clock := runForRoles(t)
	account, _ := keyFor(t, client)
	people := func() [2][]string {
		a, err := client.Account(t.Context(), account)
		require.NoError(t, err)
		listed, err := client.Accounts(t.Context())
		require.NoError(t, err)
		require.Contains(t, listed, a)
		return [2][]string{a.Owners, a.Invited}
	}
	for _, email := range []string{"b@example.com", "a@example.com"} {
		_, err := client.Invite(t.Context(), email, account)
		require.NoError(t, err)
	}
	require.Equal(t, [2][]string{{}, {"a@example.com", "b@example.com"}}, people())
	_, err := w.config.Ledger.Exec(`INSERT INTO user (email, password, account, operator, created_at) VALUES ('a@example.com', '', ?, 0, 0)`, account)
	require.NoError(t, err)
	require.Equal(t, [2][]string{{"a@example.com"}, {"b@example.com"}}, people(), "an invitation to a new password is no other person")
	clock.pass(invitationLife)
	require.Equal(t, [2][]string{{"a@example.com"}, {}}, people())
	clock.setOff(24 * time.Hour)
	_, err = client.Invite(t.Context(), "c@example.com", account)
	require.NoError(t, err)
	clock.setOff(0)
	require.Equal(t, [2][]string{{"a@example.com"}, {}}, people(), "one of a clock that was ahead is not accepted")
}

// TestAKeyIsFoundByWhatIsShownOfIt.
func TestAKeyIsFoundByWhatIsShownOfIt(t *testing.T) {
	w, client, _ := runForRoles(t)
	account, key := keyFor(t, client)
	found := readAs[Page[Key]](t, w, "/v1/accounts/"+decimal(account)+"/keys?search="+key.Shown)
	require.Len(t, found.Data, 1)
}

// TestHealthCountsTheNodesInContact.
func TestHealthCountsTheNodesInContact(t *testing.T) {
	w, client, clock := runForRoles(t)
	for _, name := range []string{"one", "two"} {
		node, err := client.AddNode(t.Context(), name)
		require.NoError(t, err)
		if name == "one" {
			require.Equal(t, http.StatusOK, syncAs(w, node.Token, syncproto.Message{Hello: &syncproto.Hello{Boot: 1}}).Code)
		}
	}
	live := func() int {
		health, err := client.Health(t.Context())
		require.NoError(t, err)
		return health.Live
	}
	require.Equal(t, 1, live())
	nodes, err := client.Nodes(t.Context())
	require.NoError(t, err)
	require.True(t, nodes[0].Seen.Equal(clock.now().Truncate(time.Millisecond)), "%+v", nodes[0])
	require.Zero(t, nodes[1].Seen)
	clock.pass(time.Hour)
	require.Zero(t, live())
}

// TestAnAccountIsWhatWasLastWritten, its name without spaces around it.
func TestAnAccountIsWhatWasLastWritten(t *testing.T) {
	_, client, _ := runForRoles(t)
	a, err := client.AddAccount(t.Context(), "  Acme ", "a@example.com", "starter")
	require.NoError(t, err)
	require.Equal(t, []string{"Acme", "a@example.com"}, []string{a.Name, a.Email})
	for _, email := range []string{"b@example.com", ""} {
		a, err = client.ChangeAccount(t.Context(), a.ID, AccountChange{Email: &email})
		require.NoError(t, err)
		require.Equal(t, []string{"Acme", email, "starter"}, []string{a.Name, a.Email, a.Plan})
	}
	wrong := "no address"
	_, err = client.ChangeAccount(t.Context(), a.ID, AccountChange{Email: &wrong})
	require.ErrorIs(t, err, ErrMalformed)
	row := accountEdit(nil, &a.ID).row
	require.True(t, row(Account{Suspended: true}).takes, "a suspension reaches the edges first")
	require.False(t, row(Account{}).takes)
}

// TestPlansAreListedByTheirRate.
func TestPlansAreListedByTheirRate(t *testing.T) {
	w, client, _ := runForRoles(t)
	for id, rate := range map[string]int64{"z-slow": 1, "a-fast": 1_000_000} {
		_, err := client.SetPlan(t.Context(), Plan{ID: id, APIAccess: true, PerMinute: rate})
		require.NoError(t, err)
	}
	require.Equal(t, http.StatusBadRequest, answerTo(w, firstOperator, http.MethodPut, "/v1/plans/z-slow", strings.NewReader(`{"id":"a-fast"}`)).Code,
		"it would change another one than the path says")
	plans, err := client.Plans(t.Context())
	require.NoError(t, err)
	require.True(t, slices.IsSortedFunc(plans, func(a, b Plan) int { return cmp.Compare(a.PerMinute, b.PerMinute) }), "%v", plans)
}

// TestABodyIsOneValue: of two the second would be dropped without a word. And a name has no blanks around it, however it is given.
func TestABodyIsOneValue(t *testing.T) {
	w, client, _ := runForRoles(t)
	a, err := client.AddAccount(t.Context(), " made-up ", "", "starter")
	require.NoError(t, err)
	for body, want := range map[string]int{
		`{"name":" other "}`: 200, "{\"name\":\"other\"}\n ": 200, `{"name":"x"} {"name":"y"}`: 400, `{"name":"x"}x`: 400, `{"name":"x"}]`: 400,
	} {
		answer := answerTo(w, firstOperator, http.MethodPatch, fmt.Sprintf("/v1/accounts/%d", a.ID), strings.NewReader(body))
		require.Equal(t, want, answer.Code, body)
	}
	changed, err := client.Account(t.Context(), a.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"made-up", "other"}, []string{a.Name, changed.Name})
}

// TestAPersonIsEitherOfAnAccountOrAnOperator: an invitation makes nobody the other.
func TestAPersonIsEitherOfAnAccountOrAnOperator(t *testing.T) {
	w, client, _ := runForRoles(t)
	account, _ := keyFor(t, client)
	_, err := w.config.Ledger.Exec(`INSERT INTO user (email, password, account, operator, created_at) VALUES ('op@example.com', '', NULL, 1, 0)`)
	require.NoError(t, err)
	_, err = client.Invite(t.Context(), "Op <op@example.com>", account)
	require.ErrorIs(t, err, ErrMalformed)
	_, err = client.Invite(t.Context(), "op@example.com", account)
	require.ErrorIs(t, err, ErrTaken)
	_, err = client.InviteAndReset(t.Context(), "op@example.com", 0)
	require.NoError(t, err)
	var resets bool
	require.NoError(t, w.config.Ledger.QueryRow(`SELECT resets FROM invitation`).Scan(&resets))
	require.True(t, resets)
	body := `{"email":"both@example.com","account":` + decimal(account) + `,"operator":true}`
	require.Equal(t, http.StatusBadRequest, answerTo(w, firstOperator, http.MethodPost, "/v1/invitations", strings.NewReader(body)).Code)
}

// TestANodesTokenIsItsOwn: a new one of another node leaves it, and a retired node gets none.
func TestANodesTokenIsItsOwn(t *testing.T) {
	w, client, _ := runForRoles(t)
	tokens := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		node, err := client.AddNode(t.Context(), name)
		require.NoError(t, err)
		tokens[name] = node.Token
	}
	fresh, err := client.NewNodeToken(t.Context(), "a")
	require.NoError(t, err)
	tokens["a"] = fresh.Token
	node, err := client.RetireNode(t.Context(), "b", true)
	require.NoError(t, err)
	require.False(t, node.Retired, "only what it had before is written off")
	_, err = client.RetireNode(t.Context(), "c", false)
	require.NoError(t, err)
	_, err = client.NewNodeToken(t.Context(), "c")
	require.ErrorIs(t, err, ErrRetired)
	_, err = client.RetireNode(t.Context(), "d", false)
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, w.readTokens(t.Context())) // as the next writer does
	for name, token := range tokens {
		_, err := clientOf(w, token).Report(t.Context(), Report{})
		require.NoError(t, err, name)
	}
}

// TestANodeIsShownWithWhatItHasLeased; what it leased in earlier epochs is stale.
func TestANodeIsShownWithWhatItHasLeased(t *testing.T) {
	w, _ := openUnrun(t)
	defer w.release()
	session := withEdge(t, w)
	require.NoError(t, w.ledger.AddAccount(1, "scale"))
	require.NoError(t, w.ledger.ChangeCredits(w.now(), 1, 100, ledger.EntryBought, ""))
	want := syncproto.Want{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: 1}, Target: 10, Urgent: true}
	edge := w.ledger.Edge("one")
	require.Equal(t, syncproto.OK, w.ledger.Sync(w.now(), edge, &syncproto.Sync{Session: session, Wants: []syncproto.Want{want}}).Status)
	n := Node{Name: "one"}
	n.addLedger(w.ledger, w.now())
	require.EqualValues(t, 10, n.Leased)
	require.Zero(t, n.Stale)
}

// TestANodeIsCountedAsFencedWhenItIs.
func TestANodeIsCountedAsFencedWhenItIs(t *testing.T) {
	var log bytes.Buffer
	now := time.Now()
	o := newOffenders(func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	for n := range fenceAfter {
		require.Zero(t, o.count())
		o.note("one", ErrMalformed)
		require.Equal(t, n+1 < fenceAfter, strings.Contains(log.String(), fmt.Sprint("count=", n+1)))
	}
	require.Equal(t, 1, o.count())
	require.True(t, o.fenced("one"))
	require.False(t, o.fenced("two"))
	now = now.Add(2 * offencesLast)
	o.note("one", errNotStored) // of a message that was queued before the fence
	require.True(t, o.fenced("one"))
	require.Equal(t, 1, strings.Count(log.String(), "a node is fenced"), "it is told once")
}

// TestALimitOfRowsIsKeptOverPages.
func TestALimitOfRowsIsKeptOverPages(t *testing.T) {
	read := func(_ context.Context, q ListQuery) (Page[int], error) {
		require.LessOrEqual(t, q.Limit, maxPage)
		return Page[int]{Data: make([]int, q.Limit), Next: "more"}, nil
	}
	rows, next, err := AllOf(t.Context(), ListQuery{}, 700, read)
	require.NoError(t, err)
	require.Len(t, rows, 700)
	require.Equal(t, "more", next)
	_, err = readListQuery(httptest.NewRequest(http.MethodGet, "/?search="+strings.Repeat("x", 200), nil))
	require.NoError(t, err)
	_, err = readListQuery(httptest.NewRequest(http.MethodGet, "/?search="+strings.Repeat("x", 201), nil))
	require.ErrorIs(t, err, ErrMalformed)
}

// TestWhoMayMakeNoKeyIsToldWhenTheOldestIsADayOld.
func TestWhoMayMakeNoKeyIsToldWhenTheOldestIsADayOld(t *testing.T) {
	w, _ := openUnrun(t)
	_, err := w.config.Ledger.Exec(`INSERT INTO account (id, name, email, plan, suspended, created_at) VALUES (1, '', '', 'starter', 0, 0)`)
	require.NoError(t, err)
	_, err = w.config.Ledger.Exec(`INSERT INTO api_key (account, name, hash, shown, created_at, revoked_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT 1, '', CAST('made up ' || i AS BLOB), 'abcd', i * 60000, 0 FROM n`, newKeysADay)
	require.NoError(t, err)
	tx, err := w.config.Ledger.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	const hours = 3_600_000
	var throttled *throttledError
	require.ErrorAs(t, mayAddKey(t.Context(), tx, 20*hours, 1), &throttled)
	require.Equal(t, 4*time.Hour+time.Minute, throttled.wait)
	require.ErrorAs(t, mayAddKey(t.Context(), tx, -5*hours, 1), &throttled)
	require.Equal(t, 24*time.Hour, throttled.wait, "no longer, though the clock was set back")
	require.NoError(t, mayAddKey(t.Context(), tx, 24*hours+60_000, 1))
}

// TestConnectionsToAServerAreGivenBack after each change.
func TestConnectionsToAServerAreGivenBack(t *testing.T) {
	w, _ := openUnrun(t)
	w.local = false
	change := func(context.Context, *sql.Tx, int64, *ledger.Ledger) error { return nil }
	require.NoError(t, w.commitChange(t.Context(), &operation{change: change}))
	require.Zero(t, w.config.Ledger.Stats().InUse)

	writing, err := w.config.Ledger.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err = w.begin(short)
	require.Error(t, err, "another writes")
	require.NoError(t, writing.Rollback())
	require.Zero(t, w.config.Ledger.Stats().InUse)
}

// TestNobodyWaitsForACommitForEver, whose disk or server hangs.
func TestNobodyWaitsForACommitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Writer{ended: make(chan struct{})}
		begun := time.Now()
		require.ErrorIs(t, w.awaitOutcome(&operation{done: make(chan error)}), ErrUnavailable)
		require.Equal(t, 10*time.Second, time.Since(begun))
	})
}

// TestALookIsNoCommit: it would cost a sync of the disk each time.
func TestALookIsNoCommit(t *testing.T) {
	w, _ := openUnrun(t)
	done := make(chan error, 1)
	go func() {
		_, err := clientOf(w, firstOperator).Health(t.Context())
		done <- err
	}()
	op := <-w.ops
	require.True(t, op.readOnly)
	op.done <- nil
	require.NoError(t, <-done)
}

// TestAnActHasTheAddressOfItsClient, as the proxy before the writer says.
func TestAnActHasTheAddressOfItsClient(t *testing.T) {
	w, client, _ := runForRoles(t)
	w.config.Client = func(*http.Request) string { return "192.0.2.9" }
	account, _ := keyFor(t, client)
	audit := readAs[Page[AuditEntry]](t, w, "/v1/audit?account="+decimal(account))
	require.Equal(t, "192.0.2.9", audit.Data[0].Address)
}

// TestAnAddressThatNoMailCarriesIsNone: RFC 5321 allows 254 bytes.
func TestAnAddressThatNoMailCarriesIsNone(t *testing.T) {
	const domain = "@example.com"
	longest := strings.Repeat("a", 254-len(domain)) + domain
	require.Equal(t, longest, CanonicalEmail(longest))
	require.Empty(t, CanonicalEmail("a"+longest))
}

// TestEveryFieldOfAPlanReachesTheEdges.
func TestEveryFieldOfAPlanReachesTheEdges(t *testing.T) {
	w, client, _ := runForRoles(t)
	for _, p := range []Plan{
		{ID: "own", APIAccess: true, PerMinute: 1, MonthlyVolume: 2, Email: true}, {ID: "own", PerMinute: 3, MonthlyVolume: 4, Phone: true},
		{ID: "own", APIAccess: true, PerMinute: 3, MonthlyVolume: 4, Email: true, Phone: true},
	} {
		set, err := client.SetPlan(t.Context(), p)
		require.NoError(t, err)
		require.False(t, set.Pending)
		known, err := scanPlan(w.config.Access.QueryRow(selectPlans + ` WHERE id = 'own'`))
		require.NoError(t, err)
		require.Equal(t, p, known)
	}
}
