package writer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits of requests with owners' tokens. Owners are customers, and share the writer with the edges.
const (
	// wrongWindow and wrongsPerAddress bound requests with unknown tokens from one client address, as for sign-ins. A
	// token that was accepted before is still accepted.
	wrongWindow      = 15 * time.Minute
	wrongsPerAddress = 30
	// ownerWindow and requestsPerToken bound the requests with one token.
	ownerWindow      = time.Minute
	requestsPerToken = 120
	// formsPerOwner bounds the forms that an owner sends in a minute. It is apart from the calls with tokens, so that a
	// token which calls too often can still be ended in the dashboard.
	formsPerOwner = 120
	// changeWindow and changesPerAccount bound the changes with the tokens of an account. Each stays in the audit
	// log for ever.
	changeWindow      = 24 * time.Hour
	changesPerAccount = 1000
	// maxGateEntries bounds what the gate remembers, of each kind.
	maxGateEntries = 10_000
)

// throttledError is ErrTooMany with the time to wait.
type throttledError struct {
	wait time.Duration
	text string
}

func (e *throttledError) Error() string   { return e.text }
func (e *throttledError) Unwrap() error   { return ErrTooMany }
func (e *throttledError) seconds() string { return strconv.FormatInt(int64(e.wait/time.Second)+1, 10) }

// ownerGate counts the requests with owners' tokens in windows. It is safe for concurrent use.
type ownerGate struct {
	now func() time.Time

	mu      sync.Mutex
	wrongs  map[string]gateCount            // by network of the client
	asked   map[int64]gateCount             // by number of the token
	changes map[int64]gateCount             // by number of the account
	forms   map[int64]gateCount             // by number of the person
	let     map[[sha256.Size]byte]time.Time // tokens that were accepted
}

type gateCount struct {
	since time.Time
	count int
}

func newOwnerGate(now func() time.Time) *ownerGate {
	return &ownerGate{now: now, wrongs: map[string]gateCount{}, asked: map[int64]gateCount{}, changes: map[int64]gateCount{}, forms: map[int64]gateCount{}, let: map[[sha256.Size]byte]time.Time{}}
}

// before refuses a token that was never accepted, from an address that has sent too many unknown ones.
func (g *ownerGate) before(address string, hash [sha256.Size]byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.wrongs[Network(address)]
	if _, known := g.let[hash]; known || c.count < wrongsPerAddress || g.now().Sub(c.since) >= wrongWindow {
		return nil
	}
	return &throttledError{wrongWindow - g.now().Sub(c.since), "too many requests with unknown tokens from this address"}
}

// wrong counts a request with an unknown token.
func (g *ownerGate) wrong(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	countIn(g.wrongs, Network(address), g.now(), wrongWindow)
}

// enter counts a request with a token, and refuses it when there were too many in the minute.
func (g *ownerGate) enter(id int64, hash [sha256.Size]byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.let) >= maxGateEntries {
		clear(g.let)
	}
	g.let[hash] = g.now()
	c := countIn(g.asked, id, g.now(), ownerWindow)
	if c.count <= requestsPerToken {
		return nil
	}
	return &throttledError{ownerWindow - g.now().Sub(c.since), fmt.Sprintf("a token may make %d requests a minute", requestsPerToken)}
}

// change counts a change of an account, and refuses it when there were too many in a day.
func (g *ownerGate) change(account int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := countIn(g.changes, account, g.now(), changeWindow)
	if c.count <= changesPerAccount {
		return nil
	}
	return &throttledError{changeWindow - g.now().Sub(c.since), fmt.Sprintf("the tokens of an account may make %d changes a day", changesPerAccount)}
}

// CountForm counts a form of a person, and refuses it with ErrTooMany when there were too many in the minute.
func (w *Writer) CountForm(person int64) error {
	w.gate.mu.Lock()
	defer w.gate.mu.Unlock()
	c := countIn(w.gate.forms, person, w.gate.now(), ownerWindow)
	if c.count <= formsPerOwner {
		return nil
	}
	return &throttledError{ownerWindow - w.gate.now().Sub(c.since), fmt.Sprintf("an owner may send %d forms a minute", formsPerOwner)}
}

// countIn counts one more in the window of a key. When there are too many keys, it drops expired
// windows, and all if that does not help.
func countIn[K comparable](counts map[K]gateCount, key K, now time.Time, window time.Duration) gateCount {
	c, known := counts[key]
	if !known && len(counts) >= maxGateEntries {
		for k, c := range counts {
			if now.Sub(c.since) >= window {
				delete(counts, k)
			}
		}
		if len(counts) >= maxGateEntries {
			clear(counts)
		}
	}
	if now.Sub(c.since) >= window {
		c = gateCount{since: now}
	}
	c.count++
	counts[key] = c
	return c
}

// Network returns the prefix by which a client address is counted: for IPv6 a /64, which one person usually has.
func Network(address string) string {
	addr, err := netip.ParseAddr(address)
	if err == nil && addr.Is6() && !addr.Is4In6() {
		prefix, _ := addr.WithZone("").Prefix(64)
		return prefix.String()
	}
	return address
}

// ownerToken is an owner's token as a request carries it.
type ownerToken struct {
	id, account int64
	name        string
	role        Role
	suspended   bool
}

// actor names the caller for the audit log.
func (t ownerToken) actor() string { return fmt.Sprintf("%s%d (%s)", OwnerActor, t.id, t.name) }

// OwnerActor begins the actor of acts with an owner's token.
const OwnerActor = "owner's token "

type ownerKey struct{}

// ownerOf returns the owner's token of a request, if it has one.
func ownerOf(r *http.Request) (ownerToken, bool) {
	t, ok := r.Context().Value(ownerKey{}).(ownerToken)
	return t, ok
}

// checkOwn hides other accounts' keys from an owner's token, as not found.
func checkOwn(r *http.Request, k Key) error {
	if t, ok := ownerOf(r); ok && t.account != k.Account {
		return notFound("key", k.ID)
	}
	return nil
}

const selectOwner = `SELECT t.id, t.account, t.name, t.role, t.ends_at, a.suspended FROM owner_token t
	JOIN account a ON a.id = t.account WHERE t.hash = ?`

// asOwner finds the owner's token of a request and its actor for the audit log. Changes need RoleAll
// and an account that is not suspended.
func (w *Writer) asOwner(r *http.Request, _ Role) (*http.Request, string, error) {
	hash, ok := tokenHash(r)
	if !ok {
		return r, "", ErrUnauthorized
	}
	if _, err := w.operatorOf(r); err == nil {
		return r, "", &detailed{ErrForbidden, "this call takes an owner's token; an operators' token opens " + ownPath + "s"}
	}
	address := w.config.Client(r)
	if err := w.gate.before(address, hash); err != nil {
		return r, "", err
	}
	t, err := w.findOwner(r.Context(), hash)
	switch {
	case errors.Is(err, ErrUnauthorized):
		w.gate.wrong(address)
	case err == nil, errors.Is(err, ErrTokenEnded): // a program may go on with one that has ended
		err = cmp.Or(w.gate.enter(t.id, hash), err)
	}
	if err == nil && r.Method != http.MethodGet {
		if err = t.mayChange(); err == nil {
			err = w.gate.change(t.account)
		}
	}
	return r.WithContext(context.WithValue(r.Context(), ownerKey{}, t)), t.actor(), err
}

func (t ownerToken) mayChange() error {
	switch {
	case t.role != RoleAll:
		return &detailed{ErrForbidden, fmt.Sprintf("the token %s may read only", t.name)}
	case t.suspended:
		return ErrSuspended
	}
	return nil
}

// findOwner returns the token of a hash, ErrUnauthorized for none, or ErrTokenEnded.
func (w *Writer) findOwner(ctx context.Context, hash [sha256.Size]byte) (t ownerToken, err error) {
	var ends int64
	err = w.config.Ledger.QueryRowContext(ctx, selectOwner, hash[:]).Scan(&t.id, &t.account, &t.name, &t.role, &ends, &t.suspended)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return t, ErrUnauthorized
	case err != nil:
		return t, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case ends <= w.now():
		at := endOfToken(ends).Format(time.RFC3339)
		return t, &detailed{ErrTokenEnded, fmt.Sprintf("the token %s ended at %s", strings.TrimSpace(t.name), at)}
	}
	return t, nil
}
