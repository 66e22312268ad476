package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/schema"
)

// scripted is an endpoint with one answer, or one error.
type scripted struct {
	values []handler.Value
	err    error
	asked  int
	closed int
	given  []time.Duration // for each statement; an hour without a deadline
}

func (s *scripted) Query(ctx context.Context, _ string, _ []handler.Value, dst *handler.Result) error {
	s.asked++
	until, limited := ctx.Deadline()
	if !limited {
		until = time.Now().Add(time.Hour)
	}
	s.given = append(s.given, time.Until(until))
	dst.Columns, dst.Values = len(s.values), s.values
	return s.err
}

func (s *scripted) Close() error {
	s.closed++
	return nil
}

// replicaAt is a replica with a view, at a time, and what it logs.
func replicaAt(now time.Time, v view, endpoint Endpoint) (*Replica, *bytes.Buffer) {
	var log bytes.Buffer
	r := &Replica{config: ReplicaConfig{
		Database: schema.Access, File: "some.db", Endpoint: endpoint, Now: func() time.Time { return now },
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}}
	r.view.Store(&v)
	return r, &log
}

// TestTheAgeOfACopyIsKnownBetweenItsBounds: as far ahead as two clocks may differ, and up to the limit.
func TestTheAgeOfACopyIsKnownBetweenItsBounds(t *testing.T) {
	const ahead = 5 * time.Second // the alarm's text and the guide name it, so it is not read from the code
	beat := time.UnixMilli(1_790_000_000_000)
	for after, want := range map[time.Duration]error{
		-ahead - time.Millisecond: ErrAhead, -ahead: nil, 0: nil, time.Minute: nil, time.Minute + time.Millisecond: ErrTooOld,
	} {
		v := view{beat: beat.UnixMilli()}
		r, _ := replicaAt(beat.Add(after), v, nil)
		require.ErrorIs(t, r.tooOld(&v, time.Minute), want, after)
		require.ErrorIs(t, r.Ready(time.Minute), want, after)
		require.NoError(t, r.tooOld(&v, 0), "any age is good")
		require.NoError(t, r.Ready(0))
		age, known := r.Age()
		require.Equal(t, want != ErrAhead, known, after)
		require.Equal(t, max(0, after), age)
		require.Equal(t, want == ErrAhead, r.Ahead())
		require.NoError(t, r.tooOld(&view{}, time.Minute), "without a heartbeat there is no age")
	}
	r, _ := replicaAt(beat, view{}, nil)
	_, known := r.Age()
	require.False(t, known)
}

func TestWhyAReplicaIsNotReady(t *testing.T) {
	away := errors.New("away")
	for name, c := range map[string]struct {
		view view
		want error
	}{
		"the file is read":              {view{endpoint: away}, nil},
		"the endpoint is read":          {view{remote: true, why: errMissing}, nil},
		"neither is":                    {view{remote: true, why: errMissing, endpoint: away}, ErrUnreadable},
		"a statement finds it damaged":  {view{suspect: &failedStatement{err: sqlite3.CORRUPT}}, sqlite3.CORRUPT},
		"the file does not follow":      {view{remote: true, why: errStuck}, errStuck},
		"and the endpoint is away, too": {view{why: fmt.Errorf("file: %w", errStuck), endpoint: away}, errStuck},
	} {
		r, _ := replicaAt(time.Unix(1000, 0), c.view, nil)
		require.ErrorIs(t, r.Ready(time.Minute), c.want, name)
		require.Equal(t, c.view.remote, r.Remote())
	}
}

// TestStatementsGoToTheEndpointOnlyWhenItCanBeRead.
func TestStatementsGoToTheEndpointOnlyWhenItCanBeRead(t *testing.T) {
	away := errors.New("away")
	for name, c := range map[string]struct {
		view view
		want error
	}{
		"it can":       {view{remote: true, why: errMissing}, nil},
		"without file": {view{}, nil},
		"it is away":   {view{remote: true, endpoint: away, why: away}, ErrUnreadable},
		"not looked":   {view{remote: true, endpoint: errStarting, why: errStarting}, ErrUnreadable},
		"no release":   {view{remote: true, unreleased: true}, ErrUnreleased},
		"too old":      {view{remote: true, beat: 1}, ErrTooOld},
	} {
		e := &scripted{}
		r, _ := replicaAt(time.Unix(1000, 0), c.view, e)
		r.config.MaxAge = time.Minute
		var dst handler.Result
		require.ErrorIs(t, r.Query(t.Context(), "SELECT 1", nil, &dst), c.want, name)
		require.Equal(t, c.want == nil, e.asked == 1, name)
	}
}

// TestAnEndpointThatIsSilentIsLoggedOnce, and so is its recovery.
func TestAnEndpointThatIsSilentIsLoggedOnce(t *testing.T) {
	r, log := replicaAt(time.Unix(1000, 0), view{}, nil)
	lines := func() int { return strings.Count(log.String(), "\n") }
	for range maxFailures - 1 {
		r.logSilence(errMissing)
	}
	r.logSilence(nil)
	require.Zero(t, lines(), "it was back soon")
	r.logSilence(errMissing)
	r.logSilence(nil)
	require.Zero(t, lines(), "checks count that fail in a row")
	for range maxFailures {
		r.logSilence(errMissing)
	}
	require.Equal(t, 1, lines())
	r.logSilence(errMissing)
	require.Equal(t, 1, lines())
	r.logSilence(nil)
	r.logSilence(nil)
	require.Equal(t, 2, lines())
	require.Contains(t, log.String(), "answers again")
	for range 2 * maxFailures {
		r.logSilence(fmt.Errorf("read it: %w", errEmpty))
	}
	require.Equal(t, 2, lines(), "that it is empty is an answer")
	r.view.Store(&view{file: &Store{}})
	for range maxFailures {
		r.logSilence(errEmpty)
	}
	require.Equal(t, 3, lines(), "not beside a file with data")
}

// TestARefusedTokenIsLoggedOnce, and is named when the copy is too old: a replica
// without queries stops following.
func TestARefusedTokenIsLoggedOnce(t *testing.T) {
	r, log := replicaAt(time.Unix(1000, 0), view{beat: 1}, nil)
	require.NotErrorIs(t, r.Ready(time.Minute), ErrToken)
	for range 3 {
		r.logSilence(fmt.Errorf("query: %w", ErrToken))
	}
	require.Equal(t, 1, strings.Count(log.String(), "refuses the token: there is no"))
	require.ErrorIs(t, r.Ready(time.Minute), ErrTooOld)
	require.ErrorIs(t, r.Ready(time.Minute), ErrToken)
	require.True(t, r.Refused())
	r.logSilence(nil)
	require.False(t, r.Refused())
	require.Equal(t, 1, strings.Count(log.String(), "answers again"))
	require.NotErrorIs(t, r.Ready(time.Minute), ErrToken)
	r.logSilence(ErrToken)
	r.logSilence(errMissing)
	require.NotErrorIs(t, r.Ready(time.Minute), ErrToken, "it is silent now")
}

// TestASwitchIsLoggedAndCounted, and nothing is without a change.
func TestASwitchIsLoggedAndCounted(t *testing.T) {
	file, other := &Store{}, &Store{}
	away := errors.New("away")
	for name, c := range map[string]struct {
		before, next view
		want         string
	}{
		"as before":            {view{file: file}, view{file: file}, ""},
		"remote as before":     {view{remote: true, why: errMissing}, view{remote: true, why: errMissing}, ""},
		"the first":            {view{remote: true, why: errStarting}, view{remote: true, why: errMissing}, "reading the replica's endpoint"},
		"nothing yet":          {view{remote: true, why: errStarting}, view{remote: true, why: errors.Join(errMissing, errEmpty), endpoint: errEmpty}, "level=INFO msg=\"there is nothing to read yet\""},
		"nothing any more":     {view{file: file}, view{remote: true, why: errEmpty, endpoint: errEmpty}, "the database can't be read"},
		"another file":         {view{file: file}, view{file: other}, "reading the replica's file"},
		"to the file":          {view{remote: true}, view{file: file}, "reading the replica's file"},
		"to the endpoint":      {view{file: file}, view{file: file, remote: true, why: errStuck}, "reading the replica's endpoint"},
		"nothing can be read":  {view{file: file}, view{remote: true, why: away, endpoint: away}, "the database can't be read"},
		"the file that is not": {view{file: file}, view{endpoint: away}, "the database can't be read"},
	} {
		r, log := replicaAt(time.Unix(1000, 0), view{}, nil)
		r.logSwitch(&c.before, &c.next)
		require.Equal(t, c.want != "", r.Switches() == 1, name)
		require.Equal(t, c.want != "", log.Len() > 0, name)
		require.Contains(t, log.String(), c.want, name)
	}
}

func TestWhatAPushSaysIsRead(t *testing.T) {
	for _, c := range []struct {
		values []handler.Value
		want   pushing
	}{
		{nil, pushing{}},
		{[]handler.Value{{Kind: handler.Integer}, {Kind: handler.Integer}, {Kind: handler.Integer, Int: 9}}, pushing{batch: 9}},
		{[]handler.Value{{Kind: handler.Integer, Int: 1}, {Kind: handler.Integer}, {}}, pushing{underWay: true}},
		{[]handler.Value{{Kind: handler.Integer, Int: 1}, {Kind: handler.Integer, Int: 1}, {}}, pushing{true, true, 0}},
	} {
		got, err := readPushing(&scripted{values: c.values})
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	away := &scripted{err: errMissing, values: []handler.Value{{}, {}, {}}}
	_, err := readPushing(away)
	require.ErrorIs(t, err, errMissing)
	require.Less(t, away.given[0], time.Second)
	s, _ := openWatched(t, "CREATE TABLE pushing (release, dirty, batch); INSERT INTO pushing VALUES ('', 1, 7);")
	got, err := readPushing(s)
	require.NoError(t, err)
	require.Equal(t, pushing{true, true, 7}, got, "its release was completed otherwise")
}

// TestARegistryWithoutAReleaseIsRefusedAfterOneWithIt: the old data is better than none.
func TestARegistryWithoutAReleaseIsRefusedAfterOneWithIt(t *testing.T) {
	r, _ := replicaAt(time.Unix(1000, 0), view{}, nil)
	empty, filled, away := &scripted{}, &scripted{values: []handler.Value{{Kind: handler.Integer, Int: 1}}}, &scripted{err: errMissing}
	require.NoError(t, r.checkReleased(empty), "access has none")
	require.Zero(t, empty.asked)
	r.config.Database = schema.Registry
	require.NoError(t, r.checkReleased(empty))
	require.NoError(t, r.checkReleased(away))
	require.False(t, r.released)
	require.NoError(t, r.checkReleased(filled))
	require.True(t, r.released)
	require.ErrorIs(t, r.checkReleased(empty), errFilling)
	require.ErrorIs(t, r.checkReleased(away), errMissing)
}

// TestTheCacheOfPagesGrowsWithItsFile, within bounds; half of the connections get less.
func TestTheCacheOfPagesGrowsWithItsFile(t *testing.T) {
	c := Config{Connections: 4}
	const gib = 1 << 30
	for _, want := range []struct {
		at   int
		file int64
		kib  int
	}{
		{0, 0, leastCacheKiB}, {0, gib, 10485}, {1, gib, 10485}, {2, gib, leastCacheKiB}, {3, gib, leastCacheKiB},
		{0, 100 * gib, mostCacheKiB}, {1, 100 * gib, mostCacheKiB}, {2, 100 * gib, mostCacheKiB / 8},
	} {
		require.Equal(t, want.kib, c.cacheKiB(want.at, want.file), want)
	}
	c.Connections = 1
	require.Equal(t, mostCacheKiB, c.cacheKiB(0, 100*gib), "the only one gets all")
}

// TestAStatementsTimeIsReadAtEveryFourthPoll.
func TestAStatementsTimeIsReadAtEveryFourthPoll(t *testing.T) {
	var l timeLimit
	require.NoError(t, l.Err())
	_, limited := l.Deadline()
	require.False(t, limited)
	now := time.Unix(1000, 0)
	polls := func() (n int, err error) {
		for n = 1; n <= 9; n++ {
			if err = l.Err(); err != nil {
				return n, err
			}
		}
		return n, nil
	}
	l.set(t.Context(), func() time.Time { return now }, now)
	n, err := polls()
	require.NoError(t, err, "its time is not over yet")
	require.Equal(t, 10, n)
	l.set(t.Context(), func() time.Time { return now }, now.Add(-1))
	n, err = polls()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, 4, n)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l.set(ended, func() time.Time { return now }, now.Add(time.Hour))
	n, err = polls()
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 4, n)
	l.clear()
	require.NoError(t, l.Err())
}

func TestValuesOfADriverAreThoseOfAStore(t *testing.T) {
	for _, v := range []handler.Value{
		{}, {Kind: handler.Integer, Int: -7}, {Kind: handler.Text, Text: "text"}, {Kind: handler.Blob, Text: "\x00blob"},
	} {
		got, err := fromDriver(toDriver(v))
		require.NoError(t, err)
		require.Equal(t, v, got)
	}
	_, err := fromDriver(1.5)
	require.ErrorContains(t, err, "float64 is not supported")
}

func TestAConnectionIsDroppedForErrorsOfItsFile(t *testing.T) {
	for err, drops := range map[error]bool{
		nil: false, errFault: true, ErrTooLarge: false, ErrTimeout: false, sqlite3.CORRUPT: true, sqlite3.NOTADB: true, sqlite3.IOERR: true,
		sqlite3.NOMEM: true, sqlite3.CANTOPEN: true, sqlite3.INTERNAL: true, sqlite3.PROTOCOL: true, sqlite3.MISUSE: true,
		sqlite3.BUSY: false, sqlite3.INTERRUPT: false, sqlite3.CONSTRAINT: false,
	} {
		wrapped := err
		if err != nil {
			wrapped = fmt.Errorf("run statement: %w", err)
		}
		require.Equal(t, drops, breaks(wrapped), err)
	}
	require.True(t, corrupt(sqlite3.CORRUPT) && corrupt(sqlite3.NOTADB))
	require.False(t, corrupt(sqlite3.IOERR))
}

// TestWhatIsCachedIsBounded: large results and empty ones are not kept, and only statements with one text or
// blob.
func TestWhatIsCachedIsBounded(t *testing.T) {
	c := resultCache{version: &sqlite3.Stmt{}, results: map[string]cachedResult{}}
	text := func(s string) handler.Value { return handler.Value{Kind: handler.Text, Text: s} }
	for _, args := range [][]handler.Value{nil, {text("a"), text("b")}, {{Kind: handler.Integer, Int: 1}}, {{}}} {
		_, ok := c.key("SELECT ?1", args)
		require.False(t, ok, args)
	}
	key, ok := c.key("SELECT ?1", []handler.Value{text("a")})
	require.True(t, ok)
	for size, kept := range map[int]bool{maxCachedBytes - 1: true, maxCachedBytes: false} {
		clear(c.results)
		c.put(key, &handler.Result{Columns: 1, Values: []handler.Value{text(strings.Repeat("x", size))}})
		var dst handler.Result
		require.Equal(t, kept, c.get(key, &dst), size)
	}
	clear(c.results)
	c.put(key, &handler.Result{Columns: 1})
	require.Empty(t, c.results)
	c.put(key, &handler.Result{Columns: 2, Values: []handler.Value{text("one"), text("two")}})
	var dst handler.Result
	require.True(t, c.get(key, &dst))
	require.Equal(t, 2, dst.Columns)
	blob, ok := c.key("SELECT ?1", []handler.Value{{Kind: handler.Blob, Text: "a"}})
	require.True(t, ok)
	require.False(t, c.get(blob, &dst), "another kind")
	_, ok = (&resultCache{}).key("SELECT ?1", []handler.Value{text("a")})
	require.False(t, ok, "nothing is cached")
}
