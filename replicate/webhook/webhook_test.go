package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/syncproto"
	"regedge/schema"
)

// post is a request that a receiver got.
type post struct {
	header http.Header
	body   string
}

// receiver is an owner's server. It answers with a status that the test sets.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []post
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusNoContent}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, post{q.Header, string(body)})
		if r.status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(r.status)
		io.WriteString(w, "words that nobody may see")
	}))
	r.Config.ErrorLog = nil
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) posts() []post {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]post{}, r.got...)
}

func (r *receiver) trust() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(r.Certificate())
	return &tls.Config{RootCAs: pool}
}

// office is a ledger with an account and a key, and a sender whose clock the test sets.
type office struct {
	*testing.T
	db     *sql.DB
	sender *Sender
	now    time.Time
	secret string
}

func newOffice(t *testing.T, config Config) *office {
	db, err := schema.OpenFile(filepath.Join(t.TempDir(), "ledger.db"), false)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	o := &office{T: t, db: db, now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), secret: NewSecret()}
	config.Ledger, config.Commit, config.Now = db, o.commit, func() time.Time { return o.now }
	o.sender = New(config)
	o.exec(`INSERT INTO account (id, name, email, plan, suspended, created_at, bought) VALUES (1, 'a', '', 'starter', 0, 0, 100), (2, 'b', '', 'starter', 0, 0, 0)`)
	o.exec(`INSERT INTO api_key (id, account, name, hash, shown, created_at) VALUES (5, 1, 'server', x'01', 'abcd', 0)`)
	return o
}

func (o *office) commit(ctx context.Context, change func(ctx context.Context, tx *sql.Tx, now int64) error) error {
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := change(ctx, tx, o.now.UnixMilli()); err != nil {
		return err
	}
	return tx.Commit()
}

func (o *office) exec(statement string, args ...any) {
	o.Helper()
	_, err := o.db.Exec(statement, args...)
	require.NoError(o, err)
}

func (o *office) set(url string, low int64) {
	o.Helper()
	require.NoError(o, o.commit(o.Context(), func(ctx context.Context, tx *sql.Tx, now int64) error {
		_, err := Set(ctx, tx, now, Hook{Account: 1, URL: url, Low: low}, o.secret, false)
		return err
	}))
}

func (o *office) test() error {
	return o.commit(o.Context(), func(ctx context.Context, tx *sql.Tx, now int64) error { return PutTest(ctx, tx, now, 1) })
}

// look finds events, and returns the kinds of those that wait.
func (o *office) look() (kinds []string) {
	o.Helper()
	require.NoError(o, o.sender.Look(o.Context()))
	for _, d := range o.deliveries() {
		if d.Next != nil {
			kinds = append(kinds, d.Kind)
		}
	}
	o.exec(`UPDATE webhook_event SET next_at = NULL`)
	return kinds
}

func (o *office) send() int {
	o.Helper()
	n, err := o.sender.Send(o.Context())
	require.NoError(o, err)
	return n
}

func (o *office) deliveries() []Delivery {
	o.Helper()
	list, err := Deliveries(o.Context(), o.db, 1, 200)
	require.NoError(o, err)
	return list
}

func TestAnEventIsSentSignedAndOnce(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	o.set(r.URL+"/hook?x=1", 0)
	require.NoError(t, o.test())
	require.Equal(t, 1, o.send())
	require.Zero(t, o.send(), "what was delivered is not sent again")
	got := r.posts()
	require.Len(t, got, 1)
	id, at := got[0].header.Get(IDHeader), got[0].header.Get(TimestampHeader)
	require.Equal(t, strconv.FormatInt(o.now.Unix(), 10), at)
	want, err := Sign(o.secret, id, at, []byte(got[0].body))
	require.NoError(t, err)
	require.Equal(t, want, got[0].header.Get(SignatureHeader))
	for _, other := range [][2]string{{at, got[0].body + " "}, {at + "0", got[0].body}} {
		forged, err := Sign(o.secret, id, other[0], []byte(other[1]))
		require.NoError(t, err)
		require.NotEqual(t, want, forged, "another time or body has another signature")
	}
	var body map[string]any
	require.NoError(t, json.Unmarshal([]byte(got[0].body), &body))
	require.Equal(t, []any{id, Test, "2026-01-31T12:00:00Z", 1.0}, []any{body["id"], body["type"], body["timestamp"], body["account"]})
	d := o.deliveries()[0]
	require.Equal(t, []any{1, "204", true}, []any{d.Attempts, d.Last, d.Delivered != nil && d.Next == nil})
}

// TestSignaturesAreThoseOfStandardWebhooks has the example of that specification's libraries.
func TestSignaturesAreThoseOfStandardWebhooks(t *testing.T) {
	got, err := Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	require.NoError(t, err)
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", got)
}

func TestAFailedAttemptIsRepeatedWithGrowingPauses(t *testing.T) {
	r := newReceiver(t)
	r.answer(http.StatusInternalServerError)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	o.set(r.URL, 0)
	require.NoError(t, o.test())
	began := o.now
	for i := 1; i <= MaxAttempts; i++ {
		require.Equal(t, 1, o.send(), i)
		require.Zero(t, o.send(), "not before the pause is over")
		d := o.deliveries()[0]
		require.Equal(t, []any{i, "500", true}, []any{d.Attempts, d.Last, d.Delivered == nil})
		if i == MaxAttempts {
			require.Nil(t, d.Next, "it is given up")
			break
		}
		require.Equal(t, pauseAfter(i), d.Next.Sub(o.now))
		o.now = *d.Next
	}
	require.InDelta(t, 48*time.Hour, o.now.Sub(began), float64(6*time.Hour))
	ids := map[string]bool{}
	for _, p := range r.posts() {
		ids[p.header.Get(IDHeader)] = true
	}
	require.Len(t, ids, 1, "every attempt has the event's id")

	require.NoError(t, o.test())
	r.answer(http.StatusOK)
	next := New(Config{Ledger: o.db, Commit: o.commit, Now: o.sender.config.Now, Private: true, Trust: r.trust()})
	n, err := next.Send(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n, "a sender that starts anew finds what waits")
}

func TestRedirectsAreNotFollowedAndAnswersNotKept(t *testing.T) {
	r := newReceiver(t)
	r.answer(http.StatusFound)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	o.set(r.URL, 0)
	require.NoError(t, o.test())
	o.send()
	require.Len(t, r.posts(), 1)
	require.Equal(t, "302", o.deliveries()[0].Last)
	var kept int
	require.NoError(t, o.db.QueryRow(`SELECT count(*) FROM webhook_event WHERE instr(body || last, 'nobody may see')`).Scan(&kept))
	require.Zero(t, kept)
}

// TestOnlyPublicAddressesAreCalled sends to a server that listens on loopback, by number and by name.
func TestOnlyPublicAddressesAreCalled(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, Config{Trust: r.trust()})
	_, port, err := net.SplitHostPort(r.Listener.Addr().String())
	require.NoError(t, err)
	for host, words := range map[string]string{
		"127.0.0.1": "not a public address", "[::1]": "not a public address", "[::ffff:127.0.0.1]": "not a public address",
		"localhost": "the host is unknown, or not at a public address", "2130706433": "the host is unknown, or not at a public address",
		"127.1": "the host is unknown, or not at a public address", "no-such-host.invalid": "the host is unknown, or not at a public address",
	} {
		o.exec(`DELETE FROM webhook_event`)
		o.set("https://"+host+":"+port+"/", 0)
		require.NoError(t, o.test())
		o.send()
		require.Contains(t, o.deliveries()[0].Last, words, host)
	}
	require.Empty(t, r.posts())
	for address, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "127.0.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "100.64.0.1": false, "224.0.0.1": false,
		"255.255.255.255": false, "198.18.0.1": false, "::": false, "::1": false, "fe80::1": false, "fc00::1": false, "ff02::1": false,
		"::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "2001:db8::1": false, "2001::1": false, "fec0::1": false,
	} {
		require.Equal(t, want, public(netip.MustParseAddr(address)), address)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for _, good := range []string{"https://example.com/hook", "https://example.com:8443/a?b=c%20d", "https://8.8.8.8/"} {
		require.NoError(t, CheckURL(good, false), good)
	}
	require.NoError(t, CheckURL("http://127.0.0.1:9/", true))
	for _, bad := range []string{
		"", "example.com", "http://example.com", "ftp://example.com", "https://", "https:example.com", "https://user:pass@example.com", "https://example.com/#x",
		"https://10.0.0.1/", "https://[::1]/", "https://exa mple.com", "https://example.com/\n", "https://example.com/é", "javascript:alert(1)",
		"https://example.com/" + strings.Repeat("x", MaxURL),
	} {
		require.ErrorIs(t, CheckURL(bad, false), ErrURL, bad)
	}
}

func TestWhatAnOwnerIsTold(t *testing.T) {
	o := newOffice(t, Config{})
	volume := func(kind, subject, window, spent int64) {
		o.exec(`INSERT OR REPLACE INTO pool (kind, subject, time_window, compensated, spent, lost) VALUES (?, ?, ?, 0, ?, 0)`, kind, subject, window, spent)
	}
	ms := o.now.UnixMilli()
	volume(int64(syncproto.Volume), 1, int64(syncproto.Month(ms)), 9999)
	require.Empty(t, o.look(), "who has no hook is told nothing")
	volume(int64(syncproto.Volume), 1, int64(syncproto.Month(ms)), 7999)
	volume(int64(syncproto.NotFound), 5, int64(syncproto.Day(ms)), 99)
	o.set("https://example.com", 50)
	require.Empty(t, o.look())

	o.exec(`UPDATE account SET spent = 51`)
	require.Equal(t, []string{LowBalance}, o.look())
	require.Empty(t, o.look(), "once")
	o.exec(`UPDATE account SET bought = bought + 10`)
	require.Empty(t, o.look())
	o.exec(`UPDATE account SET spent = 80`)
	o.now = o.now.Add(time.Minute)
	ms = o.now.UnixMilli()
	require.Equal(t, []string{LowBalance}, o.look(), "again after it was enough in between")
	o.set("https://example.com", 0)
	require.Empty(t, o.look(), "0 is for never")

	volume(int64(syncproto.Volume), 1, int64(syncproto.Month(ms)), 8000)
	require.Equal(t, []string{VolumeUsed}, o.look())
	volume(int64(syncproto.Volume), 1, int64(syncproto.Month(ms)), 9000)
	require.Empty(t, o.look(), "once a month")

	volume(int64(syncproto.NotFound), 5, int64(syncproto.Day(ms)), 100)
	require.Equal(t, []string{NotFoundCap}, o.look())
	require.Empty(t, o.look(), "once a day")

	o.exec(`UPDATE api_key SET expires_at = ?`, ms+endsSoon.Milliseconds()+1)
	require.Empty(t, o.look())
	o.exec(`UPDATE api_key SET expires_at = ?`, ms+endsSoon.Milliseconds())
	require.Equal(t, []string{KeyEnding}, o.look())
	require.Empty(t, o.look(), "once for each end")
	o.exec(`UPDATE api_key SET revoked_at = 1, expires_at = expires_at - 1`)
	require.Empty(t, o.look(), "a revoked key does not end")
	var body string
	require.NoError(t, o.db.QueryRow(`SELECT body FROM webhook_event WHERE kind = ?`, KeyEnding).Scan(&body))
	require.Contains(t, body, `"begins":"reg_live_abcd"`)

	o.now = o.now.Add(24 * time.Hour)
	ms = o.now.UnixMilli()
	volume(int64(syncproto.Volume), 1, int64(syncproto.Month(ms)), 8000)
	require.Equal(t, []string{VolumeUsed}, o.look(), "another month")
	o.now = o.now.Add(kept)
	o.exec(`UPDATE account SET spent = 0`)
	o.set("https://example.com", 1000)
	require.Equal(t, []string{LowBalance}, o.look())
	require.Len(t, o.deliveries(), 1, "old events are dropped")
}

// TestNoQueryReadsATableThatGrows holds that hooks, which are few, lead to the rest by an index.
func TestNoQueryReadsATableThatGrows(t *testing.T) {
	o := newOffice(t, Config{})
	for query, values := range map[string]int{selectBalances: 2, selectCapped: 3, selectEnding: 2, selectDue: 2} {
		var steps []string
		require.NoError(t, each(t.Context(), o.db, "EXPLAIN QUERY PLAN "+query, make([]any, values), func(rows *sql.Rows) error {
			var id, parent, unused int
			var step string
			err := rows.Scan(&id, &parent, &unused, &step)
			steps = append(steps, step)
			return err
		}))
		for _, step := range steps {
			if strings.HasPrefix(step, "SCAN") {
				require.Equal(t, "SCAN h", step, steps)
			}
		}
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	o := newOffice(t, Config{})
	o.set("https://example.com", 0)
	for range maxWaiting {
		require.NoError(t, o.test())
	}
	require.ErrorIs(t, o.test(), ErrFull)
	require.NoError(t, o.commit(t.Context(), func(ctx context.Context, tx *sql.Tx, _ int64) error { return Remove(ctx, tx, 1) }))
	require.Empty(t, o.deliveries())
	hook, err := Read(t.Context(), o.db, 1)
	require.NoError(t, err)
	require.Nil(t, hook)
}

// TestOneSlowReceiverHoldsUpNoOther has one that does not answer until the others have.
func TestOneSlowReceiverHoldsUpNoOther(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	answered := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-answered }))
	t.Cleanup(slow.Close)
	o.set(slow.URL, 0)
	require.NoError(t, o.test())
	require.NoError(t, o.commit(t.Context(), func(ctx context.Context, tx *sql.Tx, now int64) error {
		_, err := Set(ctx, tx, now, Hook{Account: 2, URL: r.URL}, o.secret, false)
		if err == nil {
			err = PutTest(ctx, tx, now, 2)
		}
		return err
	}))
	sent := make(chan int)
	go func() { n, _ := o.sender.Send(t.Context()); sent <- n }()
	require.Eventually(t, func() bool { return len(r.posts()) == 1 }, 30*time.Second, time.Millisecond)
	close(answered)
	require.Equal(t, 2, <-sent)
}

func TestASecretStaysUntilItIsRenewed(t *testing.T) {
	o := newOffice(t, Config{})
	for i, want := range []bool{true, false, true} {
		require.NoError(t, o.commit(t.Context(), func(ctx context.Context, tx *sql.Tx, now int64) error {
			taken, err := Set(ctx, tx, now, Hook{Account: 1, URL: fmt.Sprint("https://example.com/", i)}, NewSecret(), i == 2)
			require.Equal(t, want, taken, i)
			return err
		}))
	}
	hook, err := Read(t.Context(), o.db, 1)
	require.NoError(t, err)
	require.Equal(t, "https://example.com/2", hook.URL)
}

func TestTheSenderRunsUntilItsContextEnds(t *testing.T) {
	r := newReceiver(t)
	o := newOffice(t, Config{Private: true, Trust: r.trust()})
	o.set(r.URL, 0)
	require.NoError(t, o.test())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.sender.Run(ctx) }()
	require.Eventually(t, func() bool { return len(r.posts()) > 0 }, 30*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}
