package meter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/syncproto"
)

// books is a Transport that asks a ledger in memory, with one account of a number of credits. before,
// if set, comes before each message; its error is the transport's.
type books struct {
	mu     sync.Mutex
	ledger *ledger.Ledger
	before func(ctx context.Context, m syncproto.Message) error
	last   *syncproto.Sync // with a batch
}

const bookedAccount = int64(1)

func newBooks(t *testing.T, credits int64) *books {
	t.Helper()
	b := &books{ledger: ledger.New(1)}
	b.ledger.SetPlan(0, ledger.Plan{ID: "scale", APIAccess: true, PerMinute: 1000, MonthlyVolume: 1000})
	require.NoError(t, b.ledger.AddAccount(bookedAccount, "scale"))
	require.NoError(t, b.ledger.ChangeCredits(time.Now().UnixMilli(), bookedAccount, credits, ledger.EntryBought, ""))
	require.NoError(t, b.ledger.AddEdge("one"))
	return b
}

func (b *books) Sync(ctx context.Context, encoded []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	m, err := syncproto.DecodeMessage(encoded)
	if err != nil {
		return nil, err
	}
	if b.before != nil {
		if err := b.before(ctx, m); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now().UnixMilli()
	var reply *syncproto.Reply
	if m.Hello != nil {
		reply = b.ledger.Hello(now, b.ledger.Edge("one"), m.Hello)
	} else {
		if m.Sync.Batch != nil {
			b.last = m.Sync
		}
		reply = b.ledger.Sync(now, b.ledger.Edge("one"), m.Sync)
	}
	reply.Answers = m.Number
	return reply.Encode(), nil
}

// openOn opens a meter that asks the books, without running it.
func openOn(t *testing.T, state string, b meter.Transport) *edge {
	t.Helper()
	m, err := meter.Open(meter.Config{State: state, Writer: b, WaitLimit: 10 * time.Second})
	require.NoError(t, err)
	return &edge{Meter: m, name: "one", state: state}
}

// exchanged sends a number of messages.
func exchanged(t *testing.T, e *edge, times int) {
	t.Helper()
	for range times {
		require.NoError(t, e.Exchange(t.Context()))
	}
}

// granted has a meter get a lease, so that charges need no message.
func granted(t *testing.T, e *edge) {
	t.Helper()
	exchanged(t, e, 1)
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	e.Charge(short, request(bookedAccount, charge.Found)) // asks for one
	exchanged(t, e, 2)
	require.Equal(t, "", e.found(bookedAccount))
}

// TestEveryMessageHasADeadline: a writer that hangs must not hold up the next message for ever.
func TestEveryMessageHasADeadline(t *testing.T) {
	b := newBooks(t, 10)
	e := openOn(t, t.TempDir(), b)
	defer e.Close()
	messages, hold := 0, int64(0)
	b.before = func(ctx context.Context, m syncproto.Message) error {
		messages++
		until, ok := ctx.Deadline()
		limit := 5 * time.Second
		if m.Sync != nil {
			hold = m.Sync.HoldMillis
			limit += time.Duration(hold) * time.Millisecond
		}
		require.True(t, ok)
		require.LessOrEqual(t, time.Until(until), limit)
		require.Greater(t, time.Until(until), limit-5*time.Second, "an answer that is held has the same time to arrive")
		return nil
	}
	exchanged(t, e, 3)
	require.NoError(t, e.Watch(t.Context(), 3*time.Second))
	require.Equal(t, 4, messages)
	require.EqualValues(t, 3000, hold)
}

// TestAWriterThatIsLostEndsTheWaitOfRequests at once, and the next ones do not wait.
func TestAWriterThatIsLostEndsTheWaitOfRequests(t *testing.T) {
	b := newBooks(t, 10)
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: b, WaitLimit: time.Hour})
	require.NoError(t, err)
	e := &edge{Meter: m, name: "one"}
	defer e.Close()
	exchanged(t, e, 1)
	codes := make(chan string, 3)
	ask := func() { codes <- e.found(bookedAccount) }
	go ask()
	go ask()
	require.Eventually(t, func() bool { return e.Waiting() == 2 }, time.Minute, time.Millisecond)
	b.before = func(context.Context, syncproto.Message) error { return errors.New("connection refused") }
	require.Error(t, e.Exchange(t.Context()))
	for range 2 {
		require.Equal(t, charge.MeteringUnavailable, <-codes)
	}
	require.Zero(t, e.Waiting(), "their places are free")
	go ask()
	require.Equal(t, charge.MeteringUnavailable, <-codes)
	require.True(t, e.Stats().Unreachable)

	b.before = nil
	exchanged(t, e, 2)
	require.False(t, e.Stats().Unreachable)
	require.Equal(t, "", e.found(bookedAccount), "the wants were asked for again")
}

// TestNobodyWaitsForAWriterThatIsAway: such a request is not counted as one that waited, and takes nobody's place.
func TestNobodyWaitsForAWriterThatIsAway(t *testing.T) {
	b := newBooks(t, 10)
	e := openOn(t, t.TempDir(), b)
	defer e.Close()
	b.before = func(context.Context, syncproto.Message) error { return errors.New("connection refused") }
	require.Error(t, e.Exchange(t.Context()))
	require.Equal(t, charge.MeteringUnavailable, e.found(bookedAccount))
	require.Zero(t, e.Stats().Waited)
	require.EqualValues(t, 1, e.Stats().Unavailable)
}

// TestARequestThatGoesAwayDoesNotWait and leaves its place.
func TestARequestThatGoesAwayDoesNotWait(t *testing.T) {
	b := newBooks(t, 10)
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: b, WaitLimit: time.Hour})
	require.NoError(t, err)
	defer m.Close()
	exchanged(t, &edge{Meter: m}, 1)
	for range 2 * meter.MaxWaiting { // more than there are places
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Equal(t, charge.MeteringUnavailable, m.Charge(ctx, request(bookedAccount, charge.Found)).Code)
	}
	require.Zero(t, m.Waiting())
	require.Zero(t, m.Stats().Crowded)

	gone, cancel := context.WithCancel(t.Context())
	r := request(bookedAccount, charge.Found)
	overHTTP := httptest.NewRequestWithContext(gone, http.MethodPost, r.Target(), nil)
	overHTTP.Header.Set("Authorization", "Bearer meter-token")
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		m.Handler("meter-token").ServeHTTP(httptest.NewRecorder(), overHTTP)
	}()
	require.Eventually(t, func() bool { return m.Waiting() == 1 }, time.Minute, time.Millisecond)
	cancel()
	require.Eventually(t, func() bool { return m.Waiting() == 0 }, time.Minute, time.Millisecond, "nor one over HTTP")
	<-answered
}

// TestAReportedBatchIsArchivedAfterACrash that came between its acknowledgement and the archive.
func TestAReportedBatchIsArchivedAfterACrash(t *testing.T) {
	state := t.TempDir()
	e := openOn(t, state, newBooks(t, 10))
	granted(t, e)
	exchanged(t, e, 2)
	require.Zero(t, e.Stats().Unsettled)
	require.NoError(t, e.Flush())
	archives := func(folder string) []string {
		found, err := filepath.Glob(filepath.Join(folder, "batches-*"))
		require.NoError(t, err)
		return found
	}
	copied := t.TempDir() // as a crash leaves it
	require.NoError(t, os.CopyFS(copied, os.DirFS(state)))
	require.NotEmpty(t, archives(copied))
	for _, file := range archives(copied) {
		require.NoError(t, os.Remove(file))
	}
	require.NoError(t, e.Close())
	again := openOn(t, copied, newBooks(t, 10))
	defer again.Close()
	require.Len(t, archives(copied), 1)
	info, err := os.Stat(archives(copied)[0])
	require.NoError(t, err)
	require.Positive(t, info.Size())
}

// TestBatchesAreArchivedByTheLaterClock and deleted by the earlier one: one of the two may be wrong.
func TestBatchesAreArchivedByTheLaterClock(t *testing.T) {
	const day = 24 * time.Hour
	for name, own := range map[string]time.Duration{"right": 0, "a month behind": -30 * day, "a month ahead": 30 * day} {
		t.Run(name, func(t *testing.T) {
			b, state := newBooks(t, 10), t.TempDir()
			m, err := meter.Open(meter.Config{State: state, Writer: b, Now: func() time.Time { return time.Now().Add(own) }})
			require.NoError(t, err)
			defer m.Close()
			e := &edge{Meter: m, name: "one"}
			var old string
			for ago := range 8 { // the oldest comes after as many as are kept whatever the clocks say
				at := time.Now().Add(day - time.Duration(ago)*day)
				old = filepath.Join(state, fmt.Sprintf("batches-%08d.log", syncproto.Day(at.UnixMilli())))
				require.NoError(t, os.WriteFile(old, nil, 0o600))
			}
			exchanged(t, e, 1)
			e.charge(bookedAccount, charge.Failed) // reported too, and needs no lease
			exchanged(t, e, 2)
			later := time.Now().Add(max(own, 0))
			archived, err := os.Stat(filepath.Join(state, fmt.Sprintf("batches-%08d.log", syncproto.Day(later.UnixMilli()))))
			require.NoError(t, err)
			require.NotZero(t, archived.Size(), "it is empty, or there from before")
			require.FileExists(t, old, "six days old by a right clock")
		})
	}
}

// TestWhatIsUnreportedIsReportedAtTheEnd, if the writer answers, and the end does not wait for one that
// hangs.
func TestWhatIsUnreportedIsReportedAtTheEnd(t *testing.T) {
	b := newBooks(t, 10)
	e := openOn(t, t.TempDir(), b)
	granted(t, e)
	exchanged(t, e, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.last = nil
	require.Equal(t, "", e.found(bookedAccount))
	require.NoError(t, e.Run(ended))
	require.NotNil(t, b.last)
	require.Zero(t, e.Stats().Unsettled)

	require.Equal(t, "", e.found(bookedAccount))
	b.before = func(ctx context.Context, _ syncproto.Message) error {
		<-ctx.Done()
		return ctx.Err()
	}
	require.NoError(t, e.Run(ended))
	require.EqualValues(t, 1, e.Stats().Unsettled, "it is reported after the next start")
	require.NoError(t, e.Close())
}

// TestWhatIsRecalledIsReturnedAtTheEnd: others wait for it, and this edge may be away for long.
func TestWhatIsRecalledIsReturnedAtTheEnd(t *testing.T) {
	b := newBooks(t, 10)
	e := openOn(t, t.TempDir(), b)
	defer e.Close()
	granted(t, e)
	exchanged(t, e, 2) // all is reported
	require.NoError(t, b.ledger.ChangeAccount(time.Now().UnixMilli(), bookedAccount, "scale", true))
	exchanged(t, e, 1) // the recall arrives
	require.Positive(t, b.ledger.Account(bookedAccount).Credits().Leased)
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, e.Run(ended))
	require.Zero(t, b.ledger.Account(bookedAccount).Credits().Leased)
}

// TestAVoidIsDurable before it is answered, also one that is repeated.
func TestAVoidIsDurable(t *testing.T) {
	state := t.TempDir()
	var syncs atomic.Int64
	b := newBooks(t, 10)
	m, err := meter.Open(meter.Config{State: state, Writer: b, Synced: func(time.Duration) { syncs.Add(1) }})
	require.NoError(t, err)
	e := &edge{Meter: m, name: "one", state: state}
	granted(t, e)
	r := request(bookedAccount, charge.Found)
	require.Equal(t, "", e.Charge(t.Context(), r).Code)
	require.NoError(t, e.Flush())
	before := syncs.Load()
	require.NoError(t, e.Void(t.Context(), r.ID))
	require.Greater(t, syncs.Load(), before)
	require.NoError(t, e.Void(t.Context(), r.ID))
	require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), r).Code)
	copied := t.TempDir()
	require.NoError(t, os.CopyFS(copied, os.DirFS(state)))
	require.NoError(t, e.Close())
	again := openOn(t, copied, b)
	defer again.Close()
	require.Equal(t, charge.MeteringUnavailable, again.Charge(t.Context(), r).Code, "after a restart")
}

// TestACallWhoseClientIsGoneIsInDoubt: the verdict may not have reached the component.
func TestACallWhoseClientIsGoneIsInDoubt(t *testing.T) {
	e := openOn(t, t.TempDir(), newBooks(t, 10))
	defer e.Close()
	granted(t, e)
	call := func(ctx context.Context) {
		r := request(bookedAccount, charge.Found)
		q := httptest.NewRequestWithContext(ctx, http.MethodPost, r.Target(), nil)
		q.Header.Set("Authorization", "Bearer meter-token")
		e.Handler("meter-token").ServeHTTP(httptest.NewRecorder(), q)
	}
	call(t.Context())
	require.Zero(t, e.Stats().Doubted)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	call(gone)
	require.EqualValues(t, 1, e.Stats().Doubted)
	require.Equal(t, 1, e.Stats().Unresolved)
}

// TestALookupThatARetryDeliversIsNotInDoubt, but one is of which the retry's verdict is lost as well.
func TestALookupThatARetryDeliversIsNotInDoubt(t *testing.T) {
	for _, lost := range []bool{false, true} {
		b := newBooks(t, 10)
		ahead := time.Duration(0)
		m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: b, Now: func() time.Time { return time.Now().Add(ahead) }, WaitLimit: 10 * time.Second})
		require.NoError(t, err)
		defer m.Close()
		granted(t, &edge{Meter: m})
		call := func(ctx context.Context, id string) {
			r := request(bookedAccount, charge.Found)
			r.ID, r.IdempotencyHash, r.TargetHash = id, strings.Repeat("1", charge.HashLength), strings.Repeat("2", charge.HashLength)
			q := httptest.NewRequestWithContext(ctx, http.MethodPost, r.Target(), nil)
			q.Header.Set("Authorization", "Bearer meter-token")
			w := httptest.NewRecorder()
			m.Handler("meter-token").ServeHTTP(w, q)
			require.Equal(t, http.StatusOK, w.Code)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		call(gone, "first")
		if lost {
			call(gone, "retry")
		} else {
			call(t.Context(), "retry")
		}
		ahead = time.Minute
		require.NoError(t, m.Exchange(t.Context()))
		require.Len(t, b.last.Batch.Unresolved, map[bool]int{true: 1}[lost])
		require.Zero(t, m.Stats().Unresolved)
	}
}

// endless is a body far over every limit, and counts what was read of it.
type endless struct{ read atomic.Int64 }

func (b *endless) Read(p []byte) (int, error) {
	if b.read.Add(int64(len(p))) > 8*syncproto.MaxMessage {
		return 0, io.EOF
	}
	return len(p), nil
}

func (*endless) Close() error { return nil }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWhatTheWriterAnswersIsBounded: neither a reply nor a refusal fills the memory or the log.
func TestWhatTheWriterAnswersIsBounded(t *testing.T) {
	for status, most := range map[int]int64{http.StatusOK: 2 * syncproto.MaxMessage, http.StatusTeapot: 64 << 10} {
		body := &endless{}
		client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Body: body}, nil
		})}
		reply, err := meter.OverHTTP("http://writer/", "token", client).Sync(t.Context(), nil)
		require.LessOrEqual(t, body.read.Load(), most)
		if status == http.StatusOK {
			require.NoError(t, err)
			_, err = syncproto.DecodeReply(reply)
			require.Error(t, err)
		} else {
			require.ErrorContains(t, err, "418")
			require.Less(t, len(err.Error()), 1000)
		}
	}
}

// TestMessagesCarryTheToken to the writer's path, whatever slash its URL ends with.
func TestMessagesCarryTheToken(t *testing.T) {
	for _, url := range []string{"http://writer", "http://writer/"} {
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			require.Equal(t, "http://writer/v1/sync", r.URL.String())
			require.Equal(t, "Bearer token", r.Header.Get("Authorization"))
			sent, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, "message", string(sent))
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("reply"))}, nil
		})}
		reply, err := meter.OverHTTP(url, "token", client).Sync(t.Context(), []byte("message"))
		require.NoError(t, err)
		require.Equal(t, "reply", string(reply))
	}
}

// TestTheSkewIsTheLeastThatAMessageAllows: the writer may have read its clock at any time between sending
// and receiving.
func TestTheSkewIsTheLeastThatAMessageAllows(t *testing.T) {
	b := newBooks(t, 10)
	ahead := time.Duration(0)
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: b, Now: func() time.Time { return time.Now().Add(ahead) }})
	require.NoError(t, err)
	defer m.Close()
	for by, ready := range map[time.Duration]bool{0: true, 4 * time.Second: true, -4 * time.Second: true, 7 * time.Second: false, -7 * time.Second: false} {
		ahead = by
		require.NoError(t, m.Exchange(t.Context()))
		if err := m.Ready(); ready {
			require.NoError(t, err, "%v", by)
		} else {
			require.ErrorIs(t, err, meter.ErrSkew, "%v", by)
		}
	}
	ahead = 0
	b.before = func(context.Context, syncproto.Message) error { // the message takes a minute
		ahead = time.Minute
		return nil
	}
	require.NoError(t, m.Exchange(t.Context()))
	require.NoError(t, m.Ready())
}

// TestVerdictsAreCounted by kind.
func TestVerdictsAreCounted(t *testing.T) {
	e := openOn(t, t.TempDir(), newBooks(t, 10))
	defer e.Close()
	granted(t, e)
	before := e.Stats()
	require.Equal(t, "", e.found(bookedAccount))
	limited := request(bookedAccount, charge.Found)
	limited.PerMinute = 1
	require.Equal(t, charge.RateLimitExceeded, e.Charge(t.Context(), limited).Code)
	_, exceeded := e.Exceeded(limited)
	require.True(t, exceeded)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, charge.MeteringUnavailable, e.Charge(gone, request(99, charge.Found)).Code)
	after := e.Stats()
	require.EqualValues(t, 1, after.Answered-before.Answered)
	require.EqualValues(t, 2, after.Refused-before.Refused)
	require.EqualValues(t, 1, after.Unavailable-before.Unavailable)
}
