package writer

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// requestID is a request id of a time; n tells those of a millisecond apart.
func requestID(at time.Time, n int) string { return firstRequestAt(at) + fmt.Sprintf("%016d", n) }

func ids(p Page[Request]) (list []string) {
	for _, r := range p.Data {
		list = append(list, r.ID)
	}
	return list
}

func TestTheLastRequestsOfAKeyAreKept(t *testing.T) {
	w, client, clock := runForRoles(t)
	account, key := keyFor(t, client)
	_, other := keyFor(t, client)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	edge := clientOf(w, node.Token)
	now := clock.now()
	paid := Served{ID: requestID(now, 1), Key: key.ID, Endpoint: "companies", Status: 200, Credits: 1}
	refused := Served{ID: requestID(now.Add(time.Second), 2), Key: key.ID, Endpoint: "search_companies", Status: 402, Code: "insufficient_credits"}
	foreign := Served{ID: requestID(now, 3), Key: other.ID, Endpoint: "llps", Status: 404, Code: "llp_not_found"}
	require.NoError(t, edge.SendRequests(t.Context(), []Served{
		paid, refused, foreign, paid,
		{ID: requestID(now, 4), Key: 99, Endpoint: "llps", Status: 200},             // no such key
		{ID: requestID(now, 5), Key: key.ID, Endpoint: "none", Status: 200},         // none of ours
		{ID: strings.ToLower(requestID(now, 6)), Key: 0, Endpoint: "llps"},          // nonsense
		{ID: requestID(now.Add(time.Hour), 7), Key: key.ID, Endpoint: "llps"},       // by a clock that is ahead
		{ID: requestID(now.Add(-8*24*time.Hour), 8), Key: key.ID, Endpoint: "llps"}, // too old
	}))
	require.NoError(t, w.requests.tick(t.Context()))

	p, err := client.RequestPage(t.Context(), RequestQuery{Key: key.ID}, ListQuery{})
	require.NoError(t, err)
	require.Equal(t, []Request{
		{ID: refused.ID, At: now.Add(time.Second).Truncate(time.Millisecond).UTC(), Account: account, Key: key.ID, Node: "one", Endpoint: "search_companies", Status: 402, Code: "insufficient_credits"},
		{ID: paid.ID, At: now.Truncate(time.Millisecond).UTC(), Account: account, Key: key.ID, Node: "one", Endpoint: "companies", Status: 200, Credits: 1},
	}, p.Data)
	for name, c := range map[string]struct {
		of   RequestQuery
		q    ListQuery
		want []string
	}{
		"of all keys":              {q: ListQuery{}, want: []string{refused.ID, foreign.ID, paid.ID}},
		"of an account":            {of: RequestQuery{Account: account}, want: []string{refused.ID, paid.ID}},
		"by id, of whatever key":   {q: ListQuery{Search: foreign.ID}, want: []string{foreign.ID}},
		"by id in small letters":   {q: ListQuery{Search: strings.ToLower(foreign.ID)}, want: []string{foreign.ID}},
		"by id, of another":        {of: RequestQuery{Account: account}, q: ListQuery{Search: foreign.ID}},
		"by the end of an id":      {of: RequestQuery{Key: key.ID}, q: ListQuery{Search: paid.ID[20:]}, want: []string{paid.ID}},
		"by the end, of all keys":  {q: ListQuery{Search: paid.ID[20:]}, want: []string{paid.ID}},
		"by code":                  {q: ListQuery{Search: "insufficient"}, want: []string{refused.ID}},
		"by code, of a key":        {of: RequestQuery{Key: key.ID}, q: ListQuery{Search: "insufficient"}, want: []string{refused.ID}},
		"by id, of another key":    {of: RequestQuery{Key: key.ID}, q: ListQuery{Search: foreign.ID}},
		"a key of another account": {of: RequestQuery{Account: account, Key: other.ID}},
	} {
		p, err := client.RequestPage(t.Context(), c.of, c.q)
		require.NoError(t, err, name)
		require.Equal(t, c.want, ids(p), name)
	}
	p, err = client.RequestPage(t.Context(), RequestQuery{Key: key.ID}, ListQuery{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, []string{refused.ID}, ids(p))
	p, err = client.RequestPage(t.Context(), RequestQuery{Key: key.ID}, ListQuery{Limit: 1, Cursor: p.Next})
	require.NoError(t, err)
	require.Equal(t, []string{paid.ID}, ids(p))
	require.Empty(t, p.Next)
	_, err = client.RequestPage(t.Context(), RequestQuery{}, ListQuery{Cursor: "x"})
	require.ErrorIs(t, err, ErrMalformed)
	require.ErrorIs(t, clientOf(w, "nobody's token").SendRequests(t.Context(), nil), ErrUnauthorized)

	w.requests.ticking.Lock()
	require.Empty(t, w.requests.grown, "a key is cut once after it has grown")
	w.requests.ticking.Unlock()

	clock.setOff(400 * 24 * time.Hour)
	for range idleTicks {
		require.NoError(t, w.requests.tick(t.Context()))
	}
	p, err = client.RequestPage(t.Context(), RequestQuery{Key: key.ID}, ListQuery{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, []string{refused.ID}, ids(p), "a clock that is set ahead deletes nothing")
	clock.setOff(-400 * 24 * time.Hour)
	for range idleTicks {
		require.NoError(t, w.requests.tick(t.Context()))
	}
	clock.setOff(0)

	clock.pass(keptFor + 2*time.Second)
	newest := Served{ID: requestID(clock.now(), 9), Key: key.ID, Endpoint: "llps", Status: 200}
	require.NoError(t, edge.SendRequests(t.Context(), []Served{newest}))
	require.NoError(t, w.requests.tick(t.Context()))
	p, err = client.RequestPage(t.Context(), RequestQuery{}, ListQuery{})
	require.NoError(t, err)
	require.Equal(t, []string{newest.ID}, ids(p), "after a week they are gone")
	clock.pass(keptFor + 2*time.Second)
	for range idleTicks {
		require.NoError(t, w.requests.tick(t.Context()))
	}
	p, err = client.RequestPage(t.Context(), RequestQuery{}, ListQuery{})
	require.NoError(t, err)
	require.Empty(t, p.Data, "also where nothing is asked any more")

	old := Served{ID: requestID(clock.now(), 10), Key: key.ID, Endpoint: "llps", Status: 200}
	require.NoError(t, edge.SendRequests(t.Context(), []Served{old}))
	require.NoError(t, w.requests.tick(t.Context()))
	clock.setOff(30 * 24 * time.Hour)
	late := Served{ID: requestID(clock.now(), 11), Key: key.ID, Endpoint: "llps", Status: 200}
	require.NoError(t, edge.SendRequests(t.Context(), []Served{late}))
	for range idleTicks {
		require.NoError(t, w.requests.tick(t.Context()))
	}
	p, err = client.RequestPage(t.Context(), RequestQuery{}, ListQuery{})
	require.NoError(t, err)
	require.Equal(t, []string{late.ID}, ids(p), "a clock that an edge's confirms was behind before")
}

// TestARequestIsLoggedAsItWasToldFirst: an edge that sends requests again, or another that names one of them, changes
// nothing.
func TestARequestIsLoggedAsItWasToldFirst(t *testing.T) {
	w, client, clock := runForRoles(t)
	_, key := keyFor(t, client)
	first := Served{ID: requestID(clock.now(), 1), Key: key.ID, Endpoint: "companies", Status: 200, Credits: 1}
	again := Served{ID: first.ID, Key: key.ID, Endpoint: "llps", Status: 503, Code: "overloaded"}
	for _, c := range []struct {
		node   string
		served []Served
	}{{"one", []Served{first, again}}, {"two", []Served{again}}} {
		node, err := client.AddNode(t.Context(), c.node)
		require.NoError(t, err)
		for _, served := range c.served {
			require.NoError(t, clientOf(w, node.Token).SendRequests(t.Context(), []Served{served}))
			require.NoError(t, w.requests.tick(t.Context()))
		}
	}
	p, err := client.RequestPage(t.Context(), RequestQuery{}, ListQuery{})
	require.NoError(t, err)
	require.Len(t, p.Data, 1)
	require.Equal(t, []any{"one", "companies", 200, "", 1}, []any{p.Data[0].Node, p.Data[0].Endpoint, p.Data[0].Status, p.Data[0].Code, p.Data[0].Credits})
}

func TestAnOwnersTokenSeesItsOwnRequests(t *testing.T) {
	w, client, clock := runForRoles(t)
	account, key := keyFor(t, client)
	_, other := keyFor(t, client)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	mine, foreign := requestID(clock.now(), 1), requestID(clock.now(), 2)
	require.NoError(t, clientOf(w, node.Token).SendRequests(t.Context(), []Served{
		{ID: mine, Key: key.ID, Endpoint: "llps", Status: 200}, {ID: foreign, Key: other.ID, Endpoint: "llps", Status: 200},
	}))
	require.NoError(t, w.requests.tick(t.Context()))
	token, err := client.AddOwnerToken(t.Context(), account, "t", RoleRead, time.Hour)
	require.NoError(t, err)
	owner := clientOf(w, token.Token)
	for query, want := range map[string][]string{
		"": {mine}, "?key=" + decimal(other.ID): nil, "?search=" + foreign: nil, "?search=" + mine: {mine},
	} {
		p, err := call[Page[Request]](t.Context(), owner, "list", "GET", ownPath+"/requests"+query, nil)
		require.NoError(t, err)
		require.Equal(t, want, ids(p), query)
	}
	_, err = call[Page[Request]](t.Context(), owner, "list", "GET", ownPath+"/requests?account="+decimal(account), nil)
	require.ErrorIs(t, err, ErrMalformed)
}

// TestTheLogOfRequestsIsBounded by key, in all, and by what waits.
func TestTheLogOfRequestsIsBounded(t *testing.T) {
	w, client, clock := runForRoles(t)
	_, key := keyFor(t, client)
	_, quiet := keyFor(t, client)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	edge := clientOf(w, node.Token)
	send := func(key int64, from, to int) {
		var served []Served
		for n := from; n < to; n++ {
			served = append(served, Served{ID: requestID(clock.now(), n), Key: key, Endpoint: "companies", Status: 200})
		}
		require.NoError(t, edge.SendRequests(t.Context(), served))
	}
	stored := func(key int64) (n int) {
		require.NoError(t, w.config.Ledger.QueryRow(`SELECT count(*) FROM request_log WHERE key = ?`, key).Scan(&n))
		return n
	}
	send(quiet.ID, 0, 3)
	require.NoError(t, w.requests.tick(t.Context()))
	for n := range 8 { // more than waits
		send(key.ID, n*MaxRequests, (n+1)*MaxRequests)
	}
	require.LessOrEqual(t, len(w.requests.waiting), maxWaitingRequests)
	for range 8 {
		require.NoError(t, w.requests.tick(t.Context()))
	}
	require.Greater(t, stored(key.ID), KeptRequests)
	clock.pass(trimInterval)
	require.NoError(t, w.requests.tick(t.Context()))
	require.Equal(t, KeptRequests, stored(key.ID))
	require.Equal(t, 3, stored(quiet.ID))
	p, err := client.RequestPage(t.Context(), RequestQuery{Key: key.ID}, ListQuery{Limit: 1})
	require.NoError(t, err)
	require.Greater(t, p.Data[0].ID, requestID(clock.now().Add(-2*trimInterval), 0), "the newest stay")

	w.requests.most = 150
	clock.pass(trimInterval)
	send(quiet.ID, 3, 5)
	require.NoError(t, w.requests.tick(t.Context()))
	require.Equal(t, 148, stored(key.ID), "of all keys")
	require.Equal(t, 2, stored(quiet.ID), "its oldest were the oldest of all")
}

// TestTheLogOfRequestsIsTrimmedOnceTheLedgerCanBeWritten: also that of keys without requests since.
func TestTheLogOfRequestsIsTrimmedOnceTheLedgerCanBeWritten(t *testing.T) {
	w, client, clock := runForRoles(t)
	_, key := keyFor(t, client)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	served := make([]Served, KeptRequests+10)
	for n := range served {
		served[n] = Served{ID: requestID(clock.now(), n), Key: key.ID, Endpoint: "llps", Status: 200}
	}
	require.NoError(t, clientOf(w, node.Token).SendRequests(t.Context(), served))
	stored := func() (n int) {
		require.NoError(t, w.config.Ledger.QueryRow(`SELECT count(*) FROM request_log`).Scan(&n))
		return n
	}
	_, err = w.config.Ledger.Exec(`CREATE TRIGGER full BEFORE DELETE ON request_log BEGIN SELECT raise(ABORT, 'disk full'); END`)
	require.NoError(t, err)
	require.Error(t, w.requests.tick(t.Context()))
	require.Equal(t, KeptRequests+10, stored())
	_, err = w.config.Ledger.Exec(`DROP TRIGGER full`)
	require.NoError(t, err)
	clock.pass(trimInterval)
	require.NoError(t, w.requests.tick(t.Context()))
	require.Equal(t, KeptRequests, stored())
}

// TestASearchReadsAPartOfTheLogAtATime and says where it goes on, also when it found nothing there.
func TestASearchReadsAPartOfTheLogAtATime(t *testing.T) {
	w, client, clock := runForRoles(t)
	_, key := keyFor(t, client)
	first := firstRequestAt(clock.now())
	id := func(n int) string { return fmt.Sprintf("%s%016d", first, n) }
	_, err := w.config.Ledger.Exec(`WITH RECURSIVE n (value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM n WHERE value < ?3)
		INSERT INTO request_log (key, id, node, endpoint, status, code, credits)
		SELECT ?1, printf('%s%016d', ?2, value), 'one', 'llps', 404, iif(value IN (0, ?4, ?3 - 1), 'rare', 'llp_not_found'), 0 FROM n`,
		key.ID, first, 2*searched+5, searched+6)
	require.NoError(t, err)
	search := func(cursor string) Page[Request] {
		p, err := client.RequestPage(t.Context(), RequestQuery{}, ListQuery{Search: "rare", Cursor: cursor})
		require.NoError(t, err)
		return p
	}
	p := search("")
	require.Equal(t, []string{id(2*searched + 4), id(searched + 6)}, ids(p), "the last of the part, too")
	require.Equal(t, id(searched+6), p.Next)
	p = search(p.Next)
	require.Empty(t, p.Data)
	require.Equal(t, id(6), p.Next)
	p = search(p.Next)
	require.Equal(t, []string{id(0)}, ids(p))
	require.Empty(t, p.Next)
	p, err = client.RequestPage(t.Context(), RequestQuery{}, ListQuery{Search: "not_found", Limit: 2})
	require.NoError(t, err)
	require.Equal(t, []string{id(2*searched + 5), id(2*searched + 3)}, ids(p))
	require.Equal(t, id(2*searched+3), p.Next, "a full page ends where it ends")
	found, next, err := AllOf(t.Context(), ListQuery{Search: "rare"}, 0, func(ctx context.Context, q ListQuery) (Page[Request], error) {
		return client.RequestPage(ctx, RequestQuery{}, q)
	})
	require.NoError(t, err)
	require.Len(t, found, 3, "each once")
	require.Empty(t, next)
	p, err = client.RequestPage(t.Context(), RequestQuery{}, ListQuery{Search: strings.ToLower(id(6))})
	require.NoError(t, err)
	require.Equal(t, []string{id(6)}, ids(p), "a whole id is found at once, however old, in any case")
}

// TestOfAnAccountTheActiveAndTheNewestKeysAreListed: an owner's programs make up to 100 keys a day.
func TestOfAnAccountTheActiveAndTheNewestKeysAreListed(t *testing.T) {
	w, client, clock := runForRoles(t)
	account, oldest := keyFor(t, client)
	insert := `INSERT INTO api_key (account, name, hash, shown, created_at, revoked_at) VALUES (?, '', randomblob(32), 'abcd', 0, 1)`
	var newest int64
	for range searchedKeys {
		result, err := w.config.Ledger.Exec(insert, account)
		require.NoError(t, err)
		newest, err = result.LastInsertId()
		require.NoError(t, err)
	}
	for n, key := range []int64{oldest.ID, oldest.ID + 1, oldest.ID + 2, newest} {
		_, err := w.config.Ledger.Exec(`INSERT INTO request_log (key, id, node, endpoint, status, code, credits) VALUES (?, ?, 'one', 'llps', 200, '', 1)`, key, requestID(clock.now(), n))
		require.NoError(t, err)
	}
	p, err := client.RequestPage(t.Context(), RequestQuery{Account: account}, ListQuery{})
	require.NoError(t, err)
	require.Equal(t, []string{requestID(clock.now(), 3), requestID(clock.now(), 2), requestID(clock.now(), 0)}, ids(p), "all but of the oldest that was revoked")
	p, err = client.RequestPage(t.Context(), RequestQuery{Key: oldest.ID + 1}, ListQuery{})
	require.NoError(t, err)
	require.Len(t, p.Data, 1, "which is listed by its number")
}

// TestRequestsAreReadThroughIndexes: of a key or account by the primary key, of all by the index of ids.
func TestRequestsAreReadThroughIndexes(t *testing.T) {
	w, _, _ := runForRoles(t)
	plan := func(query string, args ...any) string {
		rows, err := w.config.Ledger.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+query, args...)
		require.NoError(t, err)
		defer rows.Close()
		var steps []string
		for rows.Next() {
			var id, parent, unused int64
			var detail string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
			steps = append(steps, detail)
		}
		return strings.Join(steps, "; ")
	}
	five := []any{"~", "%%", 2, 1, 1}
	require.Contains(t, plan(requestsByKey, five...), "SEARCH r USING PRIMARY KEY (key=? AND id<?)")
	require.Contains(t, plan(requestsOfOwner, append(five, 1)...), "SEARCH api_key USING INDEX api_key_by_account (account=?)")
	require.Contains(t, plan(requestsOfOwner, append(five, 1)...), "SEARCH r USING PRIMARY KEY (key=? AND id<?)")
	require.Contains(t, plan(requestByID, append(five, "x")...), "SEARCH r USING INDEX request_log_by_id (id=?)")
	all := plan(requestsOfAll, "~", "%%", 2, "")
	require.Contains(t, all, "SEARCH request_log USING COVERING INDEX request_log_by_id (id>? AND id<?)")
	require.Contains(t, all, "SEARCH r USING PRIMARY KEY (key=? AND id=?)")
	require.Contains(t, plan(searchedPart, "~", 2), "SEARCH request_log USING COVERING INDEX request_log_by_id (id<?)")
	require.Contains(t, plan(trimRequests, "[1]", 1), "SEARCH r USING PRIMARY KEY (key=?)")
	require.NotContains(t, plan(trimRequests, "[1]", 1), "SCAN r")
	require.NotContains(t, plan(expireRequests, "x", 1), "SCAN request_log ")
}

func TestTheTimeOfARequestIsInItsID(t *testing.T) {
	at := time.UnixMilli(1_790_000_000_123).UTC()
	got, ok := timeOfRequest(requestID(at, 7))
	require.True(t, ok)
	require.Equal(t, at, got)
	for _, wrong := range []string{"", requestID(at, 7)[1:], requestID(at, 7) + "0", strings.Repeat("i", 26), strings.Repeat("U", 26)} {
		_, ok = timeOfRequest(wrong)
		require.False(t, ok, wrong)
	}
}

// TestWhatNoEdgeServesIsNotLogged: each is refused for one reason alone.
func TestWhatNoEdgeServesIsNotLogged(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_123)
	fine := Served{ID: requestID(now, 1), Key: 7, Endpoint: "llps", Status: 200, Code: "", Credits: 1}
	require.True(t, fine.valid(now))
	for reason, change := range map[string]func(*Served){
		"no id":                   func(s *Served) { s.ID = "x" },
		"a clock that is ahead":   func(s *Served) { s.ID = requestID(now.Add(clockAhead), 1) },
		"a week ago":              func(s *Served) { s.ID = requestID(now.Add(-keptFor), 1) },
		"no key":                  func(s *Served) { s.Key = 0 },
		"no endpoint":             func(s *Served) { s.Endpoint = "none" },
		"a status below all":      func(s *Served) { s.Status = 99 },
		"a status above all":      func(s *Served) { s.Status = 600 },
		"a long code":             func(s *Served) { s.Code = strings.Repeat("x", 65) },
		"a code for the terminal": func(s *Served) { s.Code = "\x1b[2J" },
		"a credit given":          func(s *Served) { s.Credits = -1 },
		"two credits":             func(s *Served) { s.Credits = 2 },
	} {
		changed := fine
		change(&changed)
		require.False(t, changed.valid(now), reason)
	}
	for _, change := range []func(*Served){
		func(s *Served) { s.ID = requestID(now.Add(clockAhead-time.Millisecond), 1) }, func(s *Served) { s.ID = requestID(now.Add(time.Second-keptFor), 1) },
		func(s *Served) { s.Status = 599 }, func(s *Served) { s.Code = strings.Repeat("x", 64) }, func(s *Served) { s.Credits = 0 },
	} {
		changed := fine
		change(&changed)
		require.True(t, changed.valid(now), "%+v", changed)
	}
}

// TestAnEdgeSendsSoManyRequestsAtATime; more of them are dropped, and nothing of one without a token is read.
func TestAnEdgeSendsSoManyRequestsAtATime(t *testing.T) {
	w, client, clock := runForRoles(t)
	_, key := keyFor(t, client)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	served := make([]Served, 2*MaxRequests)
	for n := range served {
		served[n] = Served{ID: requestID(clock.now(), n), Key: key.ID, Endpoint: "llps", Status: 200}
	}
	require.ErrorIs(t, clientOf(w, "").SendRequests(t.Context(), served), ErrUnauthorized)
	require.Empty(t, w.requests.waiting)
	require.NoError(t, clientOf(w, node.Token).SendRequests(t.Context(), served))
	require.Len(t, w.requests.waiting, MaxRequests)
	require.Equal(t, "one", w.requests.waiting[0].Node)
}

// TestTheLogOfRequestsIsTrimmedAlsoAfterAClockWasSetBack: it would else wait until the time comes again.
func TestTheLogOfRequestsIsTrimmedAlsoAfterAClockWasSetBack(t *testing.T) {
	w, _ := openUnrun(t)
	w.requests.trimmed = w.config.Now().Add(time.Hour)
	w.requests.idle = idleTicks
	require.NoError(t, w.requests.tick(t.Context()))
	require.Equal(t, w.config.Now(), w.requests.trimmed)
}

// TestTheEndWaitsForRequestsThatAreBeingStored: the ledger is closed next.
func TestTheEndWaitsForRequestsThatAreBeingStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := openUnrun(t)
		l := &w.requests
		l.waiting = []loggedRequest{{Node: "one"}}
		stop := l.start(t.Context())
		time.Sleep(storeInterval + time.Millisecond)
		synctest.Wait() // nobody takes the operation
		require.False(t, l.ticking.TryLock())
		stop()
		require.True(t, l.ticking.TryLock())
	})
}

// TestRequestsBeyondOnePartAreStoredWithTheNext, in the order in which they came.
func TestRequestsBeyondOnePartAreStoredWithTheNext(t *testing.T) {
	w, client, clock := runForRoles(t)
	_, key := keyFor(t, client)
	node, err := client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	edge := clientOf(w, node.Token)
	stored := func() (n int) {
		require.NoError(t, w.requests.tick(t.Context()))
		require.NoError(t, w.config.Ledger.QueryRow(`SELECT count(*) FROM request_log WHERE id >= ?`, firstRequestAt(clock.now())).Scan(&n))
		return n
	}
	stored()
	w.requests.trimmed = w.config.Now() // so that none is trimmed meanwhile
	served := make([]Served, MaxRequests)
	for n := range served {
		served[n] = Served{ID: requestID(clock.now(), n), Key: key.ID, Endpoint: "llps", Status: 200}
	}
	require.NoError(t, edge.SendRequests(t.Context(), served))
	require.NoError(t, edge.SendRequests(t.Context(), []Served{{ID: requestID(clock.now(), MaxRequests), Key: key.ID, Endpoint: "llps", Status: 200}}))
	require.Equal(t, MaxRequests, stored())
	require.Equal(t, MaxRequests+1, stored())
}
