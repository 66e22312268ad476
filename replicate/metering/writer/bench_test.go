package writer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/testkit"
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

const (
	benchEdges    = 1000
	benchAccounts = 2000
	benchUsage    = 5 // accounts that an edge reports with each sync
)

// testEdge sends messages to a writer as an edge does, but serves no requests.
type testEdge struct {
	number  int64
	secret  string
	url     string
	client  *http.Client
	mu      sync.Mutex
	session uint64
	epoch   uint64
	leased  bool // it has asked for leases
	seen    uint64
	seq     uint64
}

func tokenOf(number int64) string { return fmt.Sprintf("token-of-edge-%d", number) }

// send sends a message and takes session and version from the reply.
func (e *testEdge) send(ctx context.Context, m syncproto.Message) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+writer.SyncPath, bytes.NewReader(m.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+e.secret)
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s: %s", response.Status, body)
	}
	reply, err := syncproto.DecodeReply(body)
	if err != nil || reply.Status != syncproto.OK && reply.Status != syncproto.Fresh {
		return fmt.Errorf("reply %+v: %w", reply, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session, e.epoch, e.seen = reply.Session, reply.Epoch, max(e.seen, reply.Upto)
	return nil
}

func (e *testEdge) sync(ctx context.Context) error {
	now := time.Now().UnixMilli()
	e.mu.Lock()
	s := &syncproto.Sync{Session: e.session, Seen: e.seen, NowMillis: now}
	if e.leased { // an edge that spends what it was not granted has to begin anew
		e.seq++
		s.Batch = &syncproto.Batch{Seq: e.seq, Of: e.epoch}
	}
	e.leased = true
	e.mu.Unlock()
	for i := range int64(benchUsage) {
		id := (e.number*benchUsage+i)%benchAccounts + 1
		if s.Batch != nil {
			s.Batch.Usage = append(s.Batch.Usage, syncproto.Usage{Account: id, Key: id, Hour: syncproto.Hour(now),
				Endpoint: charge.Companies, Outcome: charge.Found, Count: 1})
		}
		s.Wants = append(s.Wants, syncproto.Want{Pool: syncproto.Pool{Kind: syncproto.Credits, Subject: id}, Target: 100},
			syncproto.Want{Pool: syncproto.Pool{Kind: syncproto.Volume, Subject: id, Window: syncproto.Month(now)}, Target: 100})
	}
	return e.send(ctx, syncproto.Message{Sync: s})
}

// watch keeps a message open at the writer.
func (e *testEdge) watch(ctx context.Context) {
	for ctx.Err() == nil {
		e.mu.Lock()
		s := &syncproto.Sync{Session: e.session, Seen: e.seen, HoldMillis: 15_000, NowMillis: time.Now().UnixMilli()}
		e.mu.Unlock()
		e.send(ctx, syncproto.Message{Sync: s})
	}
}

// BenchmarkEdges has 1,000 edges sync with a writer over loopback HTTP, each once a second with
// usage and a want of five accounts, and a watch held open. It reports the cores that this
// takes; the edges are in the same process and included. The ledger is a file, and every reply
// comes after a durable commit.
func BenchmarkEdges(b *testing.B) {
	dir := b.TempDir()
	fill(b, dir)
	_, _, w := start(b, dir)
	server := httptest.NewServer(w.Handler())
	b.Cleanup(server.Close)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * benchEdges}}
	ctx, cancel := context.WithCancel(context.Background())
	var watches sync.WaitGroup
	b.Cleanup(func() { cancel(); watches.Wait(); client.CloseIdleConnections() })
	edges := make([]*testEdge, benchEdges)
	for i := range edges {
		e := &testEdge{number: int64(i + 1), secret: tokenOf(int64(i + 1)), url: server.URL, client: client}
		require.NoError(b, e.send(ctx, syncproto.Message{Hello: &syncproto.Hello{Boot: uint64(i + 1), NowMillis: time.Now().UnixMilli()}}))
		watches.Go(func() { e.watch(ctx) })
		edges[i] = e
	}
	syncAll(ctx, b, edges)
	const rounds = 5
	used, begin, seconds := testkit.ProcessorTime(b), time.Now(), 0.0
	for b.Loop() {
		for range rounds {
			syncAll(ctx, b, edges)
		}
		seconds += rounds
	}
	b.ReportMetric((testkit.ProcessorTime(b)-used).Seconds()/seconds, "cores")
	b.ReportMetric(time.Since(begin).Seconds()/seconds, "s/round")
}

// syncAll makes each edge sync once, spread over a second.
func syncAll(ctx context.Context, b *testing.B, edges []*testEdge) {
	pace := time.NewTicker(time.Second / time.Duration(len(edges)))
	defer pace.Stop()
	var syncs sync.WaitGroup
	for _, e := range edges {
		<-pace.C
		syncs.Go(func() {
			if err := e.sync(ctx); err != nil {
				b.Error(err)
			}
		})
	}
	syncs.Wait()
}

// fill makes a ledger with edges and accounts.
func fill(b *testing.B, dir string) {
	db, err := schema.OpenFile(filepath.Join(dir, "ledger.db"))
	require.NoError(b, err)
	defer db.Close()
	require.NoError(b, schema.Migrate(b.Context(), db, schema.Ledger))
	tx, err := db.Begin()
	require.NoError(b, err)
	for n := range int64(benchEdges) {
		hash := sha256.Sum256([]byte(tokenOf(n + 1)))
		_, err := tx.Exec(`INSERT INTO node (name, token_hash, created_at) VALUES (?, ?, 0)`, fmt.Sprintf("edge-%d", n+1), hash[:])
		require.NoError(b, err)
	}
	for n := range benchAccounts {
		_, err := tx.Exec(`INSERT INTO account (id, name, email, plan, suspended, created_at, bought) VALUES (?, '', '', 'scale', 0, 0, 1000000000)`, n+1)
		require.NoError(b, err)
	}
	require.NoError(b, tx.Commit())
}
