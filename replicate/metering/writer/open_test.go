package writer

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
	"regedge/schema"
)

// TestAWriterLeavesALedgerOfANewerProgramAlone: it would not know what the newer one has to keep.
func TestAWriterLeavesALedgerOfANewerProgramAlone(t *testing.T) {
	w, _ := openUnrun(t)
	generation := func() (n int64) {
		require.NoError(t, w.config.Ledger.QueryRow(`SELECT generation FROM writer`).Scan(&n))
		return n
	}
	before := generation()
	_, err := w.config.Ledger.Exec(`INSERT INTO schema_version (version, applied_at, database) SELECT max(version) + 1, 0, database FROM schema_version`)
	require.NoError(t, err)
	config := w.config
	config.TakeOver = true
	_, err = Open(t.Context(), config)
	var newer *schema.NewerError
	require.ErrorAs(t, err, &newer)
	require.Equal(t, before, generation(), "it took no generation")

	w, _ = openUnrun(t)
	_, err = w.config.Access.Exec(`INSERT INTO schema_version (version, applied_at, database) SELECT max(version) + 1, 0, database FROM schema_version`)
	require.NoError(t, err)
	config = w.config
	config.TakeOver = true
	_, err = Open(t.Context(), config)
	require.ErrorAs(t, err, &newer, "nor does it go on without a projection")
}

// TestAWriterThatIsInterruptedAtItsStartSaysNoMore: nobody wants to know what it was doing then.
func TestAWriterThatIsInterruptedAtItsStartSaysNoMore(t *testing.T) {
	w, _ := openUnrun(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, w.config)
	require.EqualError(t, err, "open writer: context canceled")
}

// TestSessionsOfAWriterBeginAtRandom: a ledger that was lost may have had the same generation.
func TestSessionsOfAWriterBeginAtRandom(t *testing.T) {
	w, _ := openUnrun(t)
	config := w.config
	config.TakeOver, config.Random = true, func(p []byte) {
		for i := range p {
			p[i] = 0x5a
		}
	}
	w, err := Open(t.Context(), config)
	require.NoError(t, err)
	defer w.release()
	const counter = 1<<24 - 1 // above it is the generation
	require.InDelta(t, 0x5a5a5a, withEdge(t, w)&counter, 4)
}

// TestARestoredLedgerLeapsBeyondWhatWasLost: generations that a lost writer had must not come again.
func TestARestoredLedgerLeapsBeyondWhatWasLost(t *testing.T) {
	most := func(p []byte) {
		for i := range p {
			p[i] = 0xff
		}
	}
	require.EqualValues(t, ledger.MaxRestoredLeap-1, (&Writer{config: Config{Restored: true, Random: most}}).leap())
	require.EqualValues(t, ledger.MaxLeap-1, (&Writer{config: Config{Random: most}}).leap())
}

// TestADamagedBackupIsNotRestored, however well the writer would start with it: no page that it reads at its start may be
// affected. No row of it is changed.
func TestADamagedBackupIsNotRestored(t *testing.T) {
	w, _ := openUnrun(t)
	_, err := w.config.Ledger.Exec(`INSERT INTO credit_entry (account, at, amount, kind, note)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT 1, i, 1, 'bought', printf('%050d', i) FROM n`)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "backup.db")
	_, err = w.config.Ledger.Exec(`VACUUM INTO ?`, path)
	require.NoError(t, err)
	open := func() error {
		backup, err := schema.OpenFile(path)
		require.NoError(t, err)
		defer backup.Close()
		config := w.config
		config.Ledger, config.Restored = backup, true
		opened, err := Open(t.Context(), config)
		if err == nil {
			opened.release()
		}
		return err
	}
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	spoilt := bytes.Clone(whole)
	at := bytes.Index(spoilt, fmt.Appendf(nil, "%050d", 2500)) &^ 4095
	for i := range spoilt[at : at+8192] {
		spoilt[at+i] = 0xa5
	}
	require.NoError(t, os.WriteFile(path, spoilt, 0o600))
	require.ErrorIs(t, open(), ErrDamaged)
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(spoilt[4096:], left[4096:]), "the first page says how SQLite keeps its log")
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	require.NoError(t, open())
}

// TestAnEmptyBackupIsNotRestored: without --restored the writer would begin a ledger there.
func TestAnEmptyBackupIsNotRestored(t *testing.T) {
	w, _ := openUnrun(t)
	path := filepath.Join(t.TempDir(), "backup.db")
	for _, made := range []bool{false, true} {
		if made { // by a copy that met a full disk
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		}
		backup, err := schema.OpenFile(path)
		require.NoError(t, err)
		config := w.config
		config.Ledger, config.Restored = backup, true
		_, err = Open(t.Context(), config)
		require.ErrorIs(t, err, ErrNothingRestored)
		tables := 1
		require.NoError(t, backup.QueryRow(`SELECT count(*) FROM sqlite_schema`).Scan(&tables))
		require.Zero(t, tables, "nothing is begun there")
		require.NoError(t, backup.Close())
	}
}

// TestAnEmptyServerIsNotRestored either, such as one whose volume was not mounted.
func TestAnEmptyServerIsNotRestored(t *testing.T) {
	w, _ := openUnrun(t)
	name, err := schema.FileURI(filepath.Join(t.TempDir(), "ledger.db"), false)
	require.NoError(t, err)
	connector, err := w.config.Ledger.Driver().(driver.DriverContext).OpenConnector(name)
	require.NoError(t, err)
	server := sql.OpenDB(otherDriver{connector})
	defer server.Close()
	config := w.config
	config.Ledger, config.Restored = server, true
	_, err = Open(t.Context(), config)
	require.ErrorIs(t, err, ErrNothingRestored)
	tables := 1
	require.NoError(t, server.QueryRow(`SELECT count(*) FROM sqlite_schema`).Scan(&tables))
	require.Zero(t, tables)
	config.Restored = false
	_, err = Open(t.Context(), config)
	require.NoError(t, err)
	config.Restored = true
	_, err = Open(t.Context(), config)
	require.NoError(t, err, "its own ledger is there")
}

// otherDriver is SQLite under another name, so that the writer takes its file for a server.
type otherDriver struct{ driver.Connector }

func (o otherDriver) Driver() driver.Driver { return o }

func (o otherDriver) Open(string) (driver.Conn, error) { return o.Connect(context.Background()) }

// TestAConnectionToAServerIsNotKeptIdle: the server ends its stream after some seconds, and the next
// transaction would fail. A file has no such end.
func TestAConnectionToAServerIsNotKeptIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		access, err := schema.OpenFile(filepath.Join(dir, "access.db"))
		require.NoError(t, err)
		defer access.Close()
		name, err := schema.FileURI(filepath.Join(dir, "ledger.db"), false)
		require.NoError(t, err)
		connector, err := access.Driver().(driver.DriverContext).OpenConnector(name)
		require.NoError(t, err)
		server := sql.OpenDB(otherDriver{connector})
		defer server.Close()
		_, err = Open(t.Context(), Config{OperatorToken: firstOperator, Ledger: server, Access: access})
		require.NoError(t, err)
		require.NotZero(t, server.Stats().OpenConnections)
		time.Sleep(2 * streamIdle)
		require.Zero(t, server.Stats().OpenConnections)
		require.NotZero(t, access.Stats().OpenConnections)
	})
}

// TestAFencedWriterShowsNothingFromMemory: another one may have changed it since. A look writes nothing.
func TestAFencedWriterShowsNothingFromMemory(t *testing.T) {
	for _, local := range []bool{true, false} {
		w, clock := openUnrun(t)
		w.local = local
		look := &operation{readOnly: true, change: func(context.Context, *sql.Tx, int64, *ledger.Ledger) error { return nil }}
		before, err := ledger.ReadHolder(t.Context(), w.config.Ledger)
		require.NoError(t, err)
		clock.pass(time.Minute)
		require.NoError(t, w.commitChange(t.Context(), look))
		after, err := ledger.ReadHolder(t.Context(), w.config.Ledger)
		require.NoError(t, err)
		require.Equal(t, before, after)

		_, err = w.config.Ledger.Exec(`UPDATE writer SET generation = generation + 1`)
		require.NoError(t, err)
		require.ErrorIs(t, w.commitChange(t.Context(), look), ErrFenced)
		require.True(t, w.fenced.Load())
		require.NoError(t, w.release())
	}
}

// TestSessionsGoOnAfterALedgerThatCouldNotBeRead for a while: a delayed message would else be taken for one of
// another session.
func TestSessionsGoOnAfterALedgerThatCouldNotBeRead(t *testing.T) {
	w, _ := openUnrun(t)
	config := w.config
	config.TakeOver, config.Random = true, func(p []byte) { clear(p) }
	w, err := Open(t.Context(), config)
	require.NoError(t, err)
	defer w.release()
	first := withEdge(t, w)
	for _, rename := range []string{`ALTER TABLE pool RENAME TO away`, `ALTER TABLE away RENAME TO pool`} {
		_, err := w.config.Ledger.Exec(rename)
		require.NoError(t, err)
		w.reload(t.Context())
	}
	require.NotNil(t, w.ledger)
	again := &operation{edge: "one", step: step(syncproto.Message{Hello: &syncproto.Hello{Boot: 1}}), done: make(chan error, 1)}
	w.commitSteps(t.Context(), []*operation{again})
	require.NoError(t, <-again.done)
	require.NotEqual(t, first, again.reply.Session)
}

// TestAWriterIsNotReadyWhileItsLedgerCanNotBeRead: it gives signs of life, and refuses all. The log says so once, and not with each
// message.
func TestAWriterIsNotReadyWhileItsLedgerCanNotBeRead(t *testing.T) {
	w, _ := openUnrun(t)
	log := new(testkit.Log)
	w.config.Logger = slog.New(slog.NewTextHandler(log, nil))
	defer w.release()
	rename := func(from, to string) {
		_, err := w.config.Ledger.Exec(`ALTER TABLE ` + from + ` RENAME TO ` + to)
		require.NoError(t, err)
	}
	rename("lease", "away")
	w.reload(t.Context())
	for range 3 {
		w.everySecond(t.Context())
	}
	status, said := readiness(w)
	require.Equal(t, http.StatusServiceUnavailable, status, said)
	require.Contains(t, said, "the ledger can't be read")
	require.Equal(t, 1, strings.Count(log.String(), "the ledger can't be read"), log.String())
	require.Contains(t, log.String(), "load leases")
	require.EqualValues(t, 3, scrapeWriter(t, w)["regedge_writer_failed_groups_total"])
	rename("away", "lease")
	w.everySecond(t.Context())
	require.NotContains(t, log.String(), "read again", "it may fail again")
	w.unloaded.last = w.unloaded.last.Add(-refusalsOver)
	w.everySecond(t.Context())
	require.Contains(t, log.String(), `msg="the ledger is read again" failed=4`)
	require.Zero(t, w.unloaded.count)
	status, said = readiness(w)
	require.Equal(t, http.StatusOK, status, said)
	require.EqualValues(t, 3, scrapeWriter(t, w)["regedge_writer_failed_groups_total"])
}

// TestWhatStillWaitsAtTheEndIsNotSaidToBeDone.
func TestWhatStillWaitsAtTheEndIsNotSaidToBeDone(t *testing.T) {
	queued, held := &operation{done: make(chan error, 1)}, heldOperation("one", &syncproto.Sync{})
	w := &Writer{ops: make(chan *operation, 1), held: []*operation{held}}
	w.ops <- queued
	w.releaseAll(ErrFenced)
	require.ErrorIs(t, <-queued.done, ErrFenced)
	require.ErrorIs(t, <-held.done, ErrFenced)
	w.releaseAll(ErrUnavailable) // as when the loop ends after that
	require.Empty(t, held.done, "each is answered once: nobody reads a second answer")
}

// TestAWriterStartsAsSoonAsTheOneBeforeHasEnded, which had not when it first looked.
func TestAWriterStartsAsSoonAsTheOneBeforeHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, _ := openUnrun(t)
		began := time.Now()
		time.AfterFunc(time.Second, func() {
			require.NoError(t, ledger.NoteEnd(context.Background(), before.config.Ledger, before.generation))
		})
		_, err := Open(t.Context(), before.config)
		require.NoError(t, err)
		require.Less(t, time.Since(began), silentAfter)

		ended, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = Open(ended, before.config)
		require.ErrorIs(t, err, context.Canceled, "who starts it need not wait")
	})
}

// TestAWriterThatNeverRanGivesTheLedgerUp: what failed before it served would keep the next one waiting.
func TestAWriterThatNeverRanGivesTheLedgerUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, _ := openUnrun(t)
		require.NoError(t, before.Close())
		began := time.Now()
		next, err := Open(t.Context(), before.config)
		require.NoError(t, err)
		require.Zero(t, time.Since(began))

		next.config.Access.Close()
		broken := next.config
		require.NoError(t, next.Close())
		_, err = Open(t.Context(), broken)
		require.Error(t, err)
		holder, err := ledger.ReadHolder(t.Context(), broken.Ledger)
		require.NoError(t, err)
		require.Zero(t, holder.PID, "nor does one that could not be opened")
	})
}

// TestWhoHoldsTheLedgerIsNamed: the operator has to find it.
func TestWhoHoldsTheLedgerIsNamed(t *testing.T) {
	holder := ledger.Holder{Host: "centre-1", PID: 4711, Since: 1_790_000_000_000, Heard: 1_790_000_060_000}
	require.Equal(t, "process 4711 at centre-1, since 2026-09-21T14:13:20Z, last heard 2026-09-21T14:14:20Z", describe(holder))
}
