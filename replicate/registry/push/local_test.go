package push

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
	"regedge/schema/content"
)

// onFile is a push to a primary that is a file, with a clock that each pause sets forward.
func onFile(t *testing.T, script string) (p *pusher, pauses *int) {
	t.Helper()
	dir := t.TempDir()
	db, err := schema.OpenFile(filepath.Join(dir, "primary.db"))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
	_, err = db.Exec(script)
	require.NoError(t, err)
	now, pauses := time.Unix(1000, 0), new(int)
	return &pusher{
		config: Config{
			Release: "r-2", Primary: db, PrimaryDir: sqld.Seed(dir), Now: func() time.Time { return now },
			Pause: func(_ context.Context, d time.Duration) {
				require.Equal(t, seedPause, d)
				*pauses++
				now = now.Add(time.Second)
			},
		},
		there: &side{db: db}, token: "own", sequence: 3,
	}, pauses
}

const (
	pushed  = `INSERT INTO pushing (id, release, back, token, claimed, batch) VALUES (1, '', 0, 'own', 'own', 3);`
	oneMade = `INSERT INTO release (seq, id, released_at, companies, llps, directors, appointments, partners) VALUES (1, 'r-1', 0, 0, 0, 0, 0, 0);`
	twoMade = `INSERT INTO release (seq, id, released_at, companies, llps, directors, appointments, partners) VALUES (2, 'r-2', 0, 0, 0, 0, 0, 0);`
)

func TestAPushKnowsItsLastTransactionByTokenAndNumber(t *testing.T) {
	p, _ := onFile(t, pushed)
	done, err := p.committed(t.Context())
	require.NoError(t, err)
	require.True(t, done)
	p.sequence++
	done, err = p.committed(t.Context())
	require.NoError(t, err)
	require.False(t, done)
	p.token = "another"
	_, err = p.committed(t.Context())
	require.ErrorIs(t, err, ErrTakenOver)
	p, _ = onFile(t, "")
	_, err = p.committed(t.Context())
	require.ErrorIs(t, err, ErrTakenOver, "a primary that was made anew")
	require.NoError(t, p.config.Primary.Close())
	_, err = p.committed(t.Context())
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrTakenOver)
}

// TestATransactionThatIsRefusedWasWrittenBefore, or belongs to a push that was taken over: what the primary has says which, once
// it can be asked.
func TestATransactionThatIsRefusedWasWrittenBefore(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(rw, `{"error":"SQLite error: CHECK constraint failed: claimed"}`)
	}))
	t.Cleanup(refuses.Close)
	commit := func(p *pusher) error {
		there, err := libsql.Open(refuses.URL, "")
		require.NoError(t, err)
		t.Cleanup(func() { there.Close() })
		p.there.db, p.sequence = there, 2
		return p.commit(t.Context(), nil) // the third
	}
	p, _ := onFile(t, pushed)
	require.NoError(t, commit(p), "only its answer was lost")
	p, _ = onFile(t, strings.ReplaceAll(pushed, "3)", "2)"))
	require.ErrorIs(t, commit(p), libsql.ErrRefused)
	p, _ = onFile(t, strings.ReplaceAll(pushed, "'own'", "'another'"))
	require.ErrorIs(t, commit(p), ErrTakenOver)

	p, _ = onFile(t, pushed+`ALTER TABLE pushing RENAME TO away`) // as a primary that starts again
	back := 0
	p.config.Pause = func(context.Context, time.Duration) {
		back++
		_, err := p.config.Primary.Exec(`ALTER TABLE away RENAME TO pushing`)
		require.NoError(t, err)
	}
	require.NoError(t, commit(p))
	require.Equal(t, 1, back)
}

// TestAFileIsWaitedForUntilThePrimaryServesIt.
func TestAFileIsWaitedForUntilThePrimaryServesIt(t *testing.T) {
	p, pauses := onFile(t, pushed+oneMade+twoMade)
	require.NoError(t, p.awaitSeed(t.Context()))
	require.Zero(t, *pauses)

	p, pauses = onFile(t, pushed+oneMade)
	pause := p.config.Pause
	p.config.Pause = func(ctx context.Context, d time.Duration) {
		if pause(ctx, d); *pauses == 100 {
			_, err := p.config.Primary.Exec(twoMade)
			require.NoError(t, err)
		}
	}
	require.NoError(t, p.awaitSeed(t.Context()), "it was taken, and takes long")
	require.Equal(t, 100, *pauses)
}

// TestAFileThatNobodyTakesIsRemoved after half a minute; one that was taken is waited for some minutes.
func TestAFileThatNobodyTakesIsRemoved(t *testing.T) {
	p, pauses := onFile(t, pushed+oneMade)
	seed := waits(t, p)
	require.ErrorIs(t, p.awaitSeed(t.Context()), ErrNotTaken)
	require.NoFileExists(t, seed)
	require.Equal(t, 31, *pauses)

	p, pauses = onFile(t, pushed+oneMade)
	seed = waits(t, p)
	require.NoError(t, os.Mkdir(filepath.Join(string(p.config.PrimaryDir), "base.part"), 0o700))
	require.ErrorIs(t, p.awaitSeed(t.Context()), ErrNotTaken, "one that is compressed, and not to the end")
	require.NoFileExists(t, seed)
	require.Equal(t, 601, *pauses)

	p, pauses = onFile(t, pushed)
	require.ErrorContains(t, p.awaitSeed(t.Context()), "does not answer with the file")
	require.Equal(t, 601, *pauses)
}

// waits puts a file where the primary would take it.
func waits(t *testing.T, p *pusher) string {
	t.Helper()
	seed := sqld.SeedFile(string(p.config.PrimaryDir))
	require.NoError(t, os.MkdirAll(filepath.Dir(seed), 0o700))
	require.NoError(t, os.WriteFile(seed, nil, 0o600))
	return seed
}

// TestAFileIsNotWaitedForInVain, nor taken after the push that brought it has ended, or when another one has written since.
func TestAFileIsNotWaitedForInVain(t *testing.T) {
	p, pauses := onFile(t, pushed+oneMade)
	p.token = "another"
	require.ErrorIs(t, p.awaitSeed(t.Context()), ErrTakenOver)
	seed := waits(t, p)
	require.ErrorIs(t, p.awaitSeed(t.Context()), ErrTakenOver)
	require.NoFileExists(t, seed)
	p.token = "own"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	waits(t, p)
	require.ErrorIs(t, p.awaitSeed(ended), context.Canceled)
	require.NoFileExists(t, seed)
	require.Zero(t, *pauses)
}

// TestThePrimaryIsAskedWhatEarlierPushesLeft.
func TestThePrimaryIsAskedWhatEarlierPushesLeft(t *testing.T) {
	p, _ := onFile(t, "")
	s, err := p.readState(t.Context())
	require.NoError(t, err)
	require.Equal(t, state{}, s)
	p, _ = onFile(t, oneMade+twoMade+`UPDATE release SET digest = 'd-' || id;
		INSERT INTO pushing (id, release, back, token, claimed, batch, dirty) VALUES (1, 'r-3', 0, 't', 't', 1, 1);
		INSERT INTO search_push (id, generation, terms) VALUES (1, 5, 77);
		INSERT INTO search_name (place, value, name, label) VALUES (1, 'a', 'a', ''), (2, 'b', 'b', '');`)
	s, err = p.readState(t.Context())
	require.NoError(t, err)
	require.Equal(t, state{current: "r-2", pushing: "r-3", dirty: true, token: "t", pushed: true, generation: 5, terms: 77, names: 2}, s)
	require.EqualValues(t, 5, p.generation)
	require.Equal(t, "d-r-2", p.lastDigest)
	p.blank = true
	s, err = p.readState(t.Context())
	require.NoError(t, err)
	require.Equal(t, state{}, s, "it has no schema")
	p.blank = false
	require.NoError(t, p.config.Primary.Close())
	_, err = p.readState(t.Context())
	require.Error(t, err)
}

// TestReleasesAreListedTheCurrentOneFirst, and none of a database without a schema.
func TestReleasesAreListedTheCurrentOneFirst(t *testing.T) {
	p, _ := onFile(t, oneMade+twoMade)
	list, err := Releases(t.Context(), p.config.Primary)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "r-2", list[0].ID)
	_, err = Previous(t.Context(), p.config.Primary)
	require.ErrorIs(t, err, ErrNoEarlier)
	_, err = p.config.Primary.Exec(`INSERT INTO release_stack (release) VALUES ('r-1'), ('r-2')`)
	require.NoError(t, err)
	previous, err := Previous(t.Context(), p.config.Primary)
	require.NoError(t, err)
	require.Equal(t, "r-1", previous)
	newest, err := stacked(t.Context(), p.config.Primary, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"r-2"}, newest)

	empty, err := sql.Open("sqlite3", ":memory:")
	require.NoError(t, err)
	list, err = Releases(t.Context(), empty)
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = Previous(t.Context(), empty)
	require.ErrorIs(t, err, ErrNoEarlier)
	_, err = empty.Exec(`CREATE TABLE release (id)`)
	require.NoError(t, err)
	_, err = Releases(t.Context(), empty)
	require.Error(t, err, "a table of another program")
	require.NoError(t, empty.Close())
	_, err = Releases(t.Context(), empty)
	require.Error(t, err)
}

func TestAReportAddsUpItsKinds(t *testing.T) {
	r := Report{Counts: []Count{{Added: 1, Changed: 20, Removed: 300}, {Added: 4000, Changed: 50_000, Removed: 600_000}}}
	require.EqualValues(t, 654_321, r.Records())
	require.EqualValues(t, 600_300, r.Removed())
}

// TestAPauseEndsWithItsContext.
func TestAPauseEndsWithItsContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	begun := time.Now()
	pause(ended, time.Hour)
	require.Less(t, time.Since(begun), time.Minute)
}

// TestTheNewestReleaseIsTheLastOne, also when a clock was set back before it was made.
func TestTheNewestReleaseIsTheLastOne(t *testing.T) {
	p, _ := onFile(t, pushed+oneMade+twoMade+`UPDATE release SET released_at = -seq, pushed_at = -seq, digest = id;`)
	release, err := newestRelease(t.Context(), p.config.Primary)
	require.NoError(t, err)
	require.Equal(t, "r-2", release)
	before, err := p.readState(t.Context())
	require.NoError(t, err)
	require.Equal(t, "r-2", before.current)
	require.Equal(t, "r-2", p.lastDigest)
	var current string
	var ignored int64
	require.NoError(t, p.config.Primary.QueryRow(selectCurrent).Scan(&current, &ignored, &ignored, &ignored, &ignored, &ignored))
	require.Equal(t, "r-2", current)
}

// TestALongStatementOnAFileEndsWithItsContext: somebody who interrupts a push would otherwise wait for it.
func TestALongStatementOnAFileEndsWithItsContext(t *testing.T) {
	p, _ := onFile(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := withConn(ctx, p.config.Primary, func(c *sqlite3.Conn) error {
		return c.Exec(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000000) SELECT count(*) FROM n`)
	})
	require.ErrorIs(t, err, sqlite3.INTERRUPT)
	require.NoError(t, withConn(t.Context(), p.config.Primary, func(c *sqlite3.Conn) error { return c.Exec("SELECT 1") }))
}

// TestTheStatementsOfALargeTransactionAreDivided: sqld takes no argument beyond 4 MiB.
func TestTheStatementsOfALargeTransactionAreDivided(t *testing.T) {
	p, _ := onFile(t, "")
	p.here = p.there
	var batch []change
	for n := range 2*statementKeys + 1 {
		batch = append(batch, change{record: record{Kind: company, Key: fmt.Sprintf("U%020d", n)}, there: true})
	}
	list, err := p.recordStatements(t.Context(), company, batch)
	require.NoError(t, err)
	require.Len(t, list, 3*len(content.Tables[company]))
	for at, want := range []int{statementKeys, statementKeys, 1} {
		var keys []string
		require.NoError(t, json.Unmarshal([]byte(list[at].Args[0].(string)), &keys))
		require.Len(t, keys, want)
	}
}

// TestTheRowsOfAFewRecordsAreDivided, where they have many bytes, as the appointments of listed companies: sqld then refuses
// the transaction ("string or blob too big").
func TestTheRowsOfAFewRecordsAreDivided(t *testing.T) {
	p, _ := onFile(t, `WITH RECURSIVE n (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 6)
		INSERT INTO appointment (cin, din, designation, as_of) SELECT printf('U%020d', i), '00000001', printf('%.*c', 1000000, 'x'), '2025-05-05' FROM n`)
	p.here = p.there
	var batch []change
	for n := range 7 {
		batch = append(batch, change{record: record{Kind: company, Key: fmt.Sprintf("U%020d", n)}, there: true})
	}
	list, err := p.recordStatements(t.Context(), company, batch)
	require.NoError(t, err)
	written := 0
	for _, statement := range list {
		for _, arg := range statement.Args {
			require.Less(t, len(arg.(string)), 4<<20)
		}
		if strings.HasPrefix(statement.SQL, "INSERT INTO appointment ") {
			var rows [][]any
			require.NoError(t, json.Unmarshal([]byte(statement.Args[0].(string)), &rows))
			for _, row := range rows {
				require.Equal(t, batch[written].Key, row[0])
				written++
			}
		}
	}
	require.Len(t, batch, written)
}
