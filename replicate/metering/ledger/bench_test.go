package ledger_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/testkit"
	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
	"regedge/schema"
)

// benchLedger is a ledger in a file, with edges and with accounts that have credits.
func benchLedger(b *testing.B, accounts, edges int) (*ledger.Ledger, func(now int64)) {
	ctx := context.Background()
	db, err := schema.OpenFile(filepath.Join(b.TempDir(), "ledger.db"))
	require.NoError(b, err)
	b.Cleanup(func() { db.Close() })
	require.NoError(b, schema.Migrate(ctx, db, schema.Ledger))
	_, err = ledger.TakeGeneration(ctx, db, 0, false, ledger.Holder{})
	require.NoError(b, err)
	const counted = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) `
	_, err = db.Exec(counted+`INSERT INTO node (name, token_hash, created_at) SELECT 'edge-' || i, x'00', 0 FROM n`, edges)
	require.NoError(b, err)
	_, err = db.Exec(counted+`INSERT INTO account (id, name, email, plan, suspended, created_at, bought)
		SELECT i, '', '', 'scale', 0, 0, 1000000000 FROM n`, accounts)
	require.NoError(b, err)
	l, err := ledger.Load(ctx, db)
	require.NoError(b, err)
	conn, err := db.Conn(ctx)
	require.NoError(b, err)
	b.Cleanup(func() { conn.Close() })
	_, err = conn.ExecContext(ctx, `PRAGMA synchronous = FULL`)
	require.NoError(b, err)
	prepared := ledger.Prepare(conn)
	b.Cleanup(func() { prepared.Close() })
	return l, func(now int64) {
		tx, err := conn.BeginTx(ctx, nil)
		require.NoError(b, err)
		require.NoError(b, l.Flush(ctx, tx, now, prepared))
		require.NoError(b, tx.Commit())
	}
}

// client is one edge of a benchmark.
type client struct {
	edge         *ledger.Edge
	session      uint64
	seen, seq    uint64
	first, usage int64 // accounts that it reports
}

func (c *client) sync(l *ledger.Ledger, now int64, wants []syncproto.Want) {
	c.seq++
	batch := &syncproto.Batch{Seq: c.seq, Of: 1}
	for id := c.first; id < c.first+c.usage; id++ {
		batch.Usage = append(batch.Usage, syncproto.Usage{Account: id, Key: id, Hour: syncproto.Hour(now),
			Endpoint: charge.Companies, Outcome: charge.Found, Count: 1})
	}
	s := &syncproto.Sync{Session: c.session, Seen: c.seen, Batch: batch, Wants: wants}
	c.seen = l.Sync(now, c.edge, s).Upto
}

func benchClient(l *ledger.Ledger, now int64, name string, first, usage int64) *client {
	e := l.Edge(name)
	c := &client{edge: e, session: l.Hello(now, e, &syncproto.Hello{Boot: 1}).Session, first: first, usage: usage}
	var wants []syncproto.Want
	for id := first; id < first+usage; id++ {
		wants = append(wants, syncproto.Want{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: id}, Target: 1000})
	}
	c.sync(l, now, wants)
	return c
}

const benchNow = int64(1_790_000_000_000)

// BenchmarkApply applies batches of 1,000 usage rows, each of another account, to a ledger in a
// file, each batch in a durable transaction. It reports rows per second of the median batch, and
// rows per second of processor time, which does not depend on the load of the machine.
func BenchmarkApply(b *testing.B) {
	const rows = 1000
	l, commit := benchLedger(b, rows, 1)
	now := benchNow
	c := benchClient(l, now, "edge-1", 1, rows)
	commit(now)
	var took []time.Duration
	used := testkit.ProcessorTime(b)
	for b.Loop() {
		begin := time.Now()
		now += 1000
		c.sync(l, now, nil)
		commit(now)
		took = append(took, time.Since(begin))
	}
	used = testkit.ProcessorTime(b) - used
	slices.Sort(took)
	b.ReportMetric(rows/took[len(took)/2].Seconds(), "rows/s")
	b.ReportMetric(rows*float64(len(took))/used.Seconds(), "rows/processor-s")
}
