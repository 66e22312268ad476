package meter_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/syncproto"
)

// grantAll is a writer that grants more than any edge wants.
type grantAll struct {
	version uint64
	seq     uint64
}

func (g *grantAll) Sync(ctx context.Context, message []byte) ([]byte, error) {
	m, err := syncproto.DecodeMessage(message)
	if err != nil {
		return nil, err
	}
	reply := &syncproto.Reply{Answers: m.Number, Session: 1, Epoch: 1, Generation: 1, Live: 1, Status: syncproto.OK}
	switch {
	case m.Hello != nil:
		reply.Status, reply.NowMillis = syncproto.Fresh, m.Hello.NowMillis
		return reply.Encode(), nil
	case m.Sync.HoldMillis > 0:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if m.Sync.Batch != nil {
		g.seq = m.Sync.Batch.Seq
	}
	reply.NowMillis, reply.Applied, reply.Since = m.Sync.NowMillis, g.seq, g.version
	const day = 24 * 60 * 60 * 1000 // an end that is much later is not believed
	for _, w := range m.Sync.Wants {
		g.version++
		reply.Rows = append(reply.Rows, syncproto.Row{
			Version: g.version, Pool: w.Pool, Granted: 1 << 30, UntilMillis: m.Sync.NowMillis + day, Balance: 1 << 40,
		})
	}
	reply.Upto = g.version
	return reply.Encode(), nil
}

func openBench(b *testing.B) *meter.Meter {
	m, err := meter.Open(meter.Config{State: b.TempDir(), Writer: &grantAll{}})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-done
		m.Close()
	})
	return m
}

const benchAccounts = 1000

func warm(b *testing.B, m *meter.Meter, accounts int64) {
	for id := int64(1); id <= accounts; id++ {
		v := m.Charge(context.Background(), benchRequest(id, fmt.Sprintf("warm-%d", id)))
		require.Equal(b, "", v.Code)
	}
}

func benchRequest(account int64, id string) charge.Request {
	return charge.Request{ID: id, Account: account, Key: account, PerMinute: 1 << 30, Endpoint: charge.Companies, Outcome: charge.Found}
}

func BenchmarkCharge(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			m := openBench(b)
			warm(b, m, benchAccounts)
			var n atomic.Int64
			b.SetParallelism(max(callers/runtime.GOMAXPROCS(0), 1))
			b.ReportAllocs()
			b.ResetTimer()
			one := func() {
				i := n.Add(1)
				r := benchRequest(i%benchAccounts+1, fmt.Sprintf("01J8ZC0000%016d", i))
				if v := m.Charge(context.Background(), r); v.Code != "" {
					b.Error(v.Code)
				}
			}
			if callers == 1 {
				for b.Loop() {
					one()
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					one()
				}
			})
		})
	}
}

// BenchmarkWarmAccounts reports the memory of an edge with 100,000 warm accounts.
func BenchmarkWarmAccounts(b *testing.B) {
	const accounts = 100_000
	for b.Loop() {
		before := heap()
		m := openBench(b)
		var waiting atomic.Int64
		done := make(chan struct{})
		for range 512 {
			go func() {
				for {
					id := waiting.Add(1)
					if id > accounts {
						done <- struct{}{}
						return
					}
					m.Charge(context.Background(), benchRequest(id, fmt.Sprintf("01J8ZC0000%016d", id)))
				}
			}()
		}
		for range 512 {
			<-done
		}
		b.ReportMetric(float64(heap()-before)/1e6, "MB")
		b.ReportMetric(float64(m.Stats().Accounts), "accounts")
	}
}

func heap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
