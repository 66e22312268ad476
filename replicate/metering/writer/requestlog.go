package writer

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
)

// RequestsPath is where edges send the requests that they answered, and where operators read them.
const RequestsPath = "/v1/requests"

// Bounds of the request log. It is a log, not money: requests beyond them are dropped, and those in
// memory when a process ends are lost.
const (
	// KeptRequests is how many requests of a key are kept, besides those of the last minute.
	KeptRequests = 200
	// keptInAll is how many are kept of all keys, about 150 MB: the ledger is backed up and shipped as a whole.
	keptInAll = 1_000_000
	keptFor   = 7 * 24 * time.Hour
	// MaxRequests bounds the requests that an edge sends at a time, and those stored at a time. The
	// rest is queued, up to maxWaitingRequests.
	MaxRequests        = 2000
	maxWaitingRequests = 5 * MaxRequests
	maxRequestsBody    = 1 << 20
	storeInterval      = 2 * time.Second
	trimInterval       = time.Minute
	// idleTicks is the number of ticks without a request before old ones are searched: an hour.
	idleTicks = int(time.Hour / storeInterval)
	// trimmedKeys bounds the keys that one transaction trims, expired the requests that one drops, and
	// mostExpired those dropped in a tick.
	trimmedKeys, expired, mostExpired = 200, 10_000, 1_000_000
	// searched is how many requests of all keys are searched for a page, and
	// searchedKeys how many keys of an account.
	searched, searchedKeys = 10_000, 50
	// clockAhead is how far in the future a request may be, by its edge's clock.
	clockAhead = time.Minute
)

// Request is one request of a key, as the edge answered it.
type Request struct {
	ID       string    `json:"id"` // the request id, which has the time
	At       time.Time `json:"at"`
	Account  int64     `json:"account"`
	Key      int64     `json:"key"`
	Node     string    `json:"node"`
	Endpoint string    `json:"endpoint"`
	Status   int       `json:"status"`
	Code     string    `json:"code"` // the problem's, empty for none
	Credits  int       `json:"credits"`
}

// Served is a Request as its edge sends it.
type Served struct {
	ID       string `json:"id"`
	Key      int64  `json:"key"`
	Endpoint string `json:"endpoint"`
	Status   int    `json:"status"`
	Code     string `json:"code,omitempty"`
	Credits  int    `json:"credits,omitempty"`
}

// timeOfRequest returns the time in a request id; ok is false for an invalid id.
func timeOfRequest(id string) (at time.Time, ok bool) {
	if !syncproto.IsRequestID(id) {
		return at, false
	}
	millis, _ := syncproto.RequestMillis(id)
	return time.UnixMilli(millis).UTC(), true
}

// firstRequestAt sorts before the ids of all requests from a time on.
func firstRequestAt(at time.Time) string { return syncproto.RequestIDsFrom(at.UnixMilli()) }

func (s *Served) valid(now time.Time) bool {
	at, ok := timeOfRequest(s.ID)
	return ok && at.Before(now.Add(clockAhead)) && at.After(now.Add(-keptFor)) && s.Key > 0 && charge.ParseEndpoint(s.Endpoint) != 0 &&
		s.Status >= 100 && s.Status < 600 && len(s.Code) <= 64 && Printable(s.Code) && s.Credits >= 0 && s.Credits <= 1
}

// requestLog queues the edges' requests until they are stored.
type requestLog struct {
	w       *Writer
	mu      sync.Mutex
	waiting []loggedRequest
	most    int // of all keys

	ticking sync.Mutex // held by tick, which owns the others
	// grown are the keys that got requests since they were trimmed.
	grown   map[int64]bool
	trimmed time.Time
	idle    int // ticks in a row with nothing to trim
}

type loggedRequest struct {
	Served
	Node string `json:"node"`
}

// put takes requests of an edge. It drops malformed or excess ones, and those of a retired or fenced node, without an
// error: the edge could do nothing about it.
func (l *requestLog) put(rw http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	node, ok := l.w.edgeOf(r)
	if !ok {
		l.w.fail(rw, r, ErrUnauthorized)
		return
	}
	var served []Served
	if err := json.NewDecoder(io.LimitReader(r.Body, maxRequestsBody)).Decode(&served); err != nil {
		l.w.fail(rw, r, fmt.Errorf("%w: %w", ErrMalformed, err))
		return
	}
	if l.w.isRetired(node) || l.w.offenders.fenced(node) {
		served = nil
	}
	now := l.w.config.Now()
	l.mu.Lock()
	for i := range served[:min(len(served), MaxRequests)] {
		if s := &served[i]; s.valid(now) && len(l.waiting) < maxWaitingRequests {
			l.waiting = append(l.waiting, loggedRequest{*s, node})
		}
	}
	l.mu.Unlock()
	rw.Header().Set("Content-Type", "application/json")
	io.WriteString(rw, "{}\n")
}

// start stores queued requests until ctx ends or the returned function is called, which waits for the end.
func (l *requestLog) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(storeInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := l.tick(ctx); err != nil && ctx.Err() == nil {
					l.w.config.Logger.Warn("the last requests of keys were not stored", "error", err)
				}
			}
		}
	})
	return func() { cancel(); running.Wait() }
}

// tick stores some queued requests, and trims once a minute.
func (l *requestLog) tick(ctx context.Context) error {
	l.ticking.Lock()
	defer l.ticking.Unlock()
	l.mu.Lock()
	n := min(len(l.waiting), MaxRequests)
	batch := slices.Clone(l.waiting[:n])
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	l.mu.Unlock()
	if len(batch) > 0 {
		if err := l.store(ctx, batch); err != nil {
			return err
		}
	}
	if l.idle++; len(l.grown) == 0 && l.idle < idleTicks {
		return nil
	}
	now := l.w.config.Now()
	if since := now.Sub(l.trimmed); since >= 0 && since < trimInterval {
		return nil
	}
	l.trimmed, l.idle = now, 0
	return l.trim(ctx, now)
}

// storeRequests skips requests of unknown keys.
const storeRequests = `INSERT INTO request_log (key, id, node, endpoint, status, code, credits)
	SELECT k.id, value ->> 'id', value ->> 'node', value ->> 'endpoint', value ->> 'status', coalesce(value ->> 'code', ''), coalesce(value ->> 'credits', 0)
	FROM json_each(?) CROSS JOIN api_key k ON k.id = value ->> 'key' WHERE true ON CONFLICT DO NOTHING`

func (l *requestLog) store(ctx context.Context, batch []loggedRequest) error {
	rows, err := json.Marshal(batch)
	if err != nil {
		return err
	}
	for i := range batch {
		l.grown[batch[i].Key] = true
	}
	return l.w.Commit(ctx, Act{}, func(ctx context.Context, tx *sql.Tx, _ int64) error {
		_, err := tx.ExecContext(ctx, storeRequests, string(rows))
		return err
	})
}

const (
	// trimRequests cuts keys to their newest requests, of which ?2 are kept.
	trimRequests = `WITH cut (key, id) AS MATERIALIZED (SELECT k.value, (SELECT r.id FROM request_log r WHERE r.key = k.value ORDER BY r.id DESC LIMIT 1 OFFSET ?2)
			FROM json_each(?1) k)
		DELETE FROM request_log WHERE (key, id) IN (SELECT r.key, r.id FROM cut c CROSS JOIN request_log r ON r.key = c.key AND r.id <= c.id)`
	// firstKept is the oldest of the newest ? requests, or before all, and the newest one.
	firstKept = `SELECT coalesce((SELECT id FROM request_log INDEXED BY request_log_by_id ORDER BY id DESC LIMIT 1 OFFSET ? - 1), ''),
		coalesce((SELECT id FROM request_log INDEXED BY request_log_by_id ORDER BY id DESC LIMIT 1), '')`
	// expireRequests drops some of those before an id, at most ?2.
	expireRequests = `DELETE FROM request_log WHERE (key, id) IN (SELECT key, id FROM request_log INDEXED BY request_log_by_id WHERE id < ?1 ORDER BY id LIMIT ?2)`
)

func (l *requestLog) trim(ctx context.Context, now time.Time) error {
	keys := slices.Sorted(maps.Keys(l.grown))
	for some := range slices.Chunk(keys, trimmedKeys) {
		list, err := json.Marshal(some)
		if err != nil {
			return err
		}
		if err := l.w.Commit(ctx, Act{}, func(ctx context.Context, tx *sql.Tx, _ int64) error {
			_, err := tx.ExecContext(ctx, trimRequests, string(list), KeptRequests)
			return err
		}); err != nil {
			return err // the keys that are left are trimmed next time
		}
		for _, key := range some {
			delete(l.grown, key)
		}
	}
	var first, newest string
	if err := l.w.config.Ledger.QueryRowContext(ctx, firstKept, l.most).Scan(&first, &newest); err != nil {
		return err
	}
	// A clock that is set ahead for a minute must not delete the log. One that was behind when the writer began is right
	// by now if an edge's clock says the same.
	believed := time.UnixMilli(l.w.steadyNow())
	if at, ok := timeOfRequest(newest); ok && at.After(believed) {
		believed = at
	}
	if now.Before(believed) {
		believed = now
	}
	return l.expire(ctx, max(first, firstRequestAt(believed.Add(-keptFor))))
}

// expire drops the requests before an id in parts, so that other changes need not wait for all of it.
func (l *requestLog) expire(ctx context.Context, first string) error {
	for range mostExpired / expired {
		var more bool
		err := l.w.config.Ledger.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM request_log WHERE id < ?)`, first).Scan(&more)
		if err != nil || !more {
			return err
		}
		if err := l.w.Commit(ctx, Act{}, func(ctx context.Context, tx *sql.Tx, _ int64) error {
			_, err := tx.ExecContext(ctx, expireRequests, first, expired)
			return err
		}); err != nil {
			return err
		}
	}
	return nil // the next tick goes on
}

// Requests of a key or an account are found by the primary key, requests of all keys by the index of ids, newest first.
// ?1 is the id that they come before, and ?2 the pattern that they match; ?4 is the key or 0, and ?5 the account. A
// search of all keys reads only the index for what does not match. For an account, active keys come first, then the
// newest.
const (
	requestColumns  = `SELECT r.id, k.account, r.key, r.node, r.endpoint, r.status, r.code, r.credits `
	requestsMatch   = ` WHERE r.id < ?1 AND (?2 = '%%' OR r.id LIKE ?2 ESCAPE '\' OR r.code LIKE ?2 ESCAPE '\') AND (?4 = 0 OR r.key = ?4) AND (?5 = 0 OR k.account = ?5)`
	requestsNewest  = ` ORDER BY r.id DESC LIMIT ?3`
	requestsByKey   = requestColumns + `FROM api_key k CROSS JOIN request_log r ON r.key = k.id` + requestsMatch + ` AND k.id = ?4` + requestsNewest
	requestsOfOwner = requestColumns + `FROM (SELECT id, account FROM api_key WHERE account = ?5
		ORDER BY revoked_at IS NOT NULL, coalesce(expires_at, 1 << 60) DESC, id DESC LIMIT ?6) k CROSS JOIN request_log r ON r.key = k.id` + requestsMatch + requestsNewest
	requestByID = requestColumns + `FROM request_log r INDEXED BY request_log_by_id CROSS JOIN api_key k ON k.id = r.key` + requestsMatch + ` AND r.id = ?6` + requestsNewest
	// requestsOfAll has the end of the part that is read as ?4.
	requestsOfAll = requestColumns + `FROM (SELECT key, id FROM request_log INDEXED BY request_log_by_id
			WHERE id < ?1 AND id >= ?4 AND (?2 = '%%' OR id LIKE ?2 ESCAPE '\' OR code LIKE ?2 ESCAPE '\') ORDER BY id DESC LIMIT ?3) f
		CROSS JOIN request_log r ON r.key = f.key AND r.id = f.id CROSS JOIN api_key k ON k.id = r.key` + requestsNewest
	// searchedPart is the last of the next requests that a search of all keys reads, ?2 of
	// them; NULL when there are fewer.
	searchedPart = `SELECT (SELECT id FROM request_log INDEXED BY request_log_by_id WHERE id < ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2 - 1)`
)

// RequestQuery says of which key's or account's requests a page is; 0 for all.
type RequestQuery struct{ Account, Key int64 }

// RequestPage lists the last requests of keys, newest first. The search looks into ids and codes.
func (c *Client) RequestPage(ctx context.Context, of RequestQuery, q ListQuery) (Page[Request], error) {
	others := url.Values{}
	for name, id := range map[string]int64{"account": of.Account, "key": of.Key} {
		if id != 0 {
			others.Set(name, decimal(id))
		}
	}
	return call[Page[Request]](ctx, c, "list requests", http.MethodGet, q.encode(RequestsPath, others), nil)
}

// SendRequests sends requests that an edge answered. The client needs the edge's token.
func (c *Client) SendRequests(ctx context.Context, served []Served) error {
	_, err := call[struct{}](ctx, c, "send requests", http.MethodPost, RequestsPath, served)
	return err
}

// ListRequests is RequestPage, from the ledger itself. A search of all keys reads a part of the log for
// a page, so that it takes no longer than another: a page may then have few requests or none, and a
// Next at which the search goes on.
func ListRequests(ctx context.Context, db querier, of RequestQuery, q ListQuery) (Page[Request], error) {
	if q.Limit == 0 {
		q.Limit = defaultPage
	}
	before := q.Cursor
	if _, ok := timeOfRequest(before); before != "" && !ok {
		return Page[Request]{}, fmt.Errorf("%w: that is no cursor of this list", ErrMalformed)
	}
	if before == "" {
		before = "~" // behind all
	}
	id := strings.ToUpper(q.Search)
	args := []any{before, q.pattern(), q.more(), of.Key, of.Account}
	switch _, whole := timeOfRequest(id); {
	case whole:
		return requestPage(ctx, db, q, requestByID, append(args, id)...)
	case of.Key != 0:
		return requestPage(ctx, db, q, requestsByKey, args...)
	case of.Account != 0:
		return requestPage(ctx, db, q, requestsOfOwner, append(args, searchedKeys)...)
	case q.Search == "":
		return requestPage(ctx, db, q, requestsOfAll, before, q.pattern(), q.more(), "")
	}
	var last sql.NullString
	if err := db.QueryRowContext(ctx, searchedPart, before, searched).Scan(&last); err != nil {
		return Page[Request]{}, err
	}
	p, err := requestPage(ctx, db, q, requestsOfAll, before, q.pattern(), q.more(), last.String)
	if p.Next == "" {
		p.Next = last.String // the search goes on there
	}
	return p, err
}

func requestPage(ctx context.Context, db querier, q ListQuery, query string, args ...any) (Page[Request], error) {
	rows, err := collect(ctx, db, query, args, scanRequest)
	return pageOf(q, rows, func(r Request) string { return r.ID }), err
}

func scanRequest(rows *sql.Rows) (Request, error) {
	var r Request
	err := rows.Scan(&r.ID, &r.Account, &r.Key, &r.Node, &r.Endpoint, &r.Status, &r.Code, &r.Credits)
	r.At, _ = timeOfRequest(r.ID)
	return r, err
}

// listRequests answers operators, and owners about their own account.
func (w *Writer) listRequests(r *http.Request, _ httprouter.Params) (any, error) {
	q, err := readListQuery(r)
	if err != nil {
		return nil, err
	}
	var of RequestQuery
	for name, id := range map[string]*int64{"account": &of.Account, "key": &of.Key} {
		if asked := r.URL.Query().Get(name); asked != "" {
			if *id, err = strconv.ParseInt(asked, 10, 64); err != nil || *id < 1 {
				return nil, fmt.Errorf("%w: %s is a number from 1", ErrMalformed, name)
			}
		}
	}
	if t, ok := ownerOf(r); ok {
		of.Account = t.account
	}
	return ListRequests(r.Context(), w.config.Ledger, of, q)
}
