package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regedge/internal/cluster"
	"regedge/replicate/metering/writer"
)

// soak reports whether the long versions run.
func soak() bool { return os.Getenv("SOAK") != "" }

func suspension(on bool) writer.AccountChange { return writer.AccountChange{Suspended: &on} }

// traffic is a steady load of lookups on every edge, with every answer checked.
type traffic struct {
	f        *fixture
	accounts []int64
	keys     []string
	cins     []string
	// right has the possible answers for each CIN.
	right map[string]map[string]bool

	paid, unknown atomic.Int64             // charged lookups; those without an answer
	answered      map[string]*atomic.Int64 // by edge
	mu            sync.Mutex
	wrong         []string
	down          sync.Map     // edges that are meant not to answer, by name
	slowest       atomic.Int64 // of the phase, nanoseconds
	stop          context.CancelFunc
	all           sync.WaitGroup
}

// load is how many lookups a second each edge gets.
func load() (perSecond int) {
	if soak() {
		return 1000
	}
	return 250
}

const (
	// manyAccounts is for a load in which many leases go through each fault.
	manyAccounts = 1000
	fewAccounts  = 10
	// inParallel is how many accounts are created or warmed up at once.
	inParallel = 16
)

// newTraffic creates accounts, and reads the right answers from edges on the two registry files.
func (f *fixture) newTraffic(accounts int) *traffic {
	f.t.Helper()
	l := &traffic{f: f, cins: f.watched(), right: make(map[string]map[string]bool), answered: make(map[string]*atomic.Int64)}
	for _, e := range f.Edges {
		l.answered[e.Name] = new(atomic.Int64)
	}
	l.makeAccounts(accounts)
	changed := 0
	for name, registry := range map[string]string{"single-before": f.before, "single-after": f.after} {
		single := f.single(name, registry)
		for _, cin := range l.cins {
			a := l.insist(single, cin, l.keys[0])
			if l.right[cin] == nil {
				l.right[cin] = make(map[string]bool)
			}
			l.right[cin][a.data] = true
			if len(l.right[cin]) == 2 {
				changed++
			}
		}
		require.Eventually(f.t, func() bool { // it cannot report the rest once it is stopped
			account, err := f.Client.Account(f.t.Context(), l.accounts[0])
			return err == nil && account.Spent == l.paid.Load()
		}, patience, 50*time.Millisecond)
		single.Stop()
	}
	require.Greater(f.t, changed, 10, "companies that differ between the two states")
	// Each account has its leases at each edge before anything is broken.
	for _, e := range f.Edges {
		parallel(len(l.keys), func(n int) { l.insist(e, l.cins[0], l.keys[n]) })
	}
	return l
}

func (l *traffic) makeAccounts(accounts int) {
	l.f.t.Helper()
	l.f.plan()
	l.accounts, l.keys = make([]int64, accounts), make([]string, accounts)
	failed := make([]error, accounts)
	parallel(accounts, func(n int) { l.accounts[n], l.keys[n], failed[n] = l.f.addAccount(n) })
	require.NoError(l.f.t, errors.Join(failed...))
}

// parallel calls do for each number below count, inParallel at a time.
func parallel(count int, do func(n int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range inParallel {
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < count; n = int(next.Add(1)) - 1 {
				do(n)
			}
		})
	}
	all.Wait()
}

// insist repeats a lookup until the answer is 200.
func (l *traffic) insist(e *cluster.Edge, cin, key string) (a answer) {
	assert.Eventually(l.f.t, func() bool {
		var err error
		a, err = fetch(http.DefaultClient, e.URL, "/v1/companies/"+cin, key)
		return err == nil && a.status == 200
	}, patience, 10*time.Millisecond, "%s: %+v", e.Name, &a)
	l.paid.Add(1)
	return a
}

// start starts the load.
func (l *traffic) start() {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	const workers = 32 // so that a slow answer does not hold up the others
	between := time.Second * workers / time.Duration(load())
	for _, e := range l.f.Edges {
		client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: workers}}
		for i := range workers {
			due := time.Now().Add(between * time.Duration(i) / workers)
			l.all.Go(func() {
				for ; ctx.Err() == nil; due = nextDue(due, between) {
					select {
					case <-ctx.Done():
						return
					case <-time.After(time.Until(due)):
						l.one(client, e)
					}
				}
			})
		}
	}
}

// nextDue is when the next lookup is due. Lookups that a slow answer has delayed are sent late, those of
// more than a second are left out.
func nextDue(due time.Time, between time.Duration) time.Time {
	due = due.Add(between)
	if late := time.Now().Add(-time.Second); due.Before(late) {
		return late
	}
	return due
}

// one sends one lookup and checks its answer.
func (l *traffic) one(client *http.Client, e *cluster.Edge) {
	_, wasDown := l.down.Load(e.Name)
	sent := time.Now()
	cin := l.cins[rand.IntN(len(l.cins))]
	a, err := fetch(client, e.URL, "/v1/companies/"+cin, l.keys[rand.IntN(len(l.keys))])
	_, isDown := l.down.Load(e.Name)
	switch {
	case err != nil:
		l.unknown.Add(1)
		if !wasDown && !isDown {
			l.fault("%s: %v", e.Name, err)
		}
	case a.status == http.StatusOK:
		l.paid.Add(1)
		l.answered[e.Name].Add(1)
		l.note(time.Since(sent))
		if !l.right[cin][a.data] {
			l.fault("%s: an answer of no state: %s", e.Name, a.data)
		}
	case !wasDown && !isDown:
		l.fault("%s: status %d: %s", e.Name, a.status, a.data)
	}
}

func (l *traffic) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) < 20 {
		l.wrong = append(l.wrong, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

// end stops the load, and requires that all answers were right and charged once.
func (l *traffic) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.all.Wait()
	require.Empty(t, l.wrong)
	paid, unknown := l.paid.Load(), l.unknown.Load()
	spent, problem := int64(0), error(nil)
	all := assert.Eventually(t, func() bool {
		sum, failed := int64(0), error(nil)
		for _, id := range l.accounts {
			account, err := l.f.Client.Account(t.Context(), id)
			sum, failed = sum+account.Spent, errors.Join(failed, err)
		}
		spent, problem = sum, failed
		return failed == nil && sum >= paid
	}, patience, 100*time.Millisecond)
	require.True(t, all, "%d answered, %d charged: %v", paid, spent, problem)
	require.LessOrEqual(t, spent, paid+unknown, "a charge was doubled")
	t.Logf("%d lookups answered, %d without an answer while their edge was down, %d charged", paid, unknown, spent)
}

// note notes how long a lookup took.
func (l *traffic) note(took time.Duration) {
	for slowest := l.slowest.Load(); int64(took) > slowest && !l.slowest.CompareAndSwap(slowest, int64(took)); {
		slowest = l.slowest.Load()
	}
}

// phase is a part of the load.
type phase struct {
	l        *traffic
	began    time.Time
	answered map[string]int64
}

// begin starts a phase.
func (l *traffic) begin() *phase {
	p := &phase{l: l, began: time.Now(), answered: make(map[string]int64)}
	for name, n := range l.answered {
		p.answered[name] = n.Load()
	}
	l.slowest.Store(0)
	return p
}

// describe says how many lookups were answered in the phase, and how long the slowest took.
func (p *phase) describe() string {
	took := time.Since(p.began)
	text := fmt.Sprintf("%v in all, slowest lookup %v", took.Round(time.Millisecond), time.Duration(p.l.slowest.Load()).Round(time.Millisecond))
	for _, e := range p.l.f.Edges {
		n := p.l.answered[e.Name].Load() - p.answered[e.Name]
		text += fmt.Sprintf(", %s answered %d (%.0f/s)", e.Name, n, float64(n)/took.Seconds())
	}
	return text
}

// through waits until every edge has answered so many lookups more.
func (l *traffic) through(t *testing.T, lookups int64) {
	t.Helper()
	for _, e := range l.f.Edges {
		until := l.answered[e.Name].Load() + lookups
		require.Eventually(t, func() bool { return l.answered[e.Name].Load() >= until }, patience, 10*time.Millisecond, e.Name)
	}
}

// cutFor is how long the network is cut.
func cutFor() time.Duration {
	switch {
	case soak():
		return 10 * time.Minute
	case testing.Short():
		return 3 * time.Second
	}
	if seconds, err := strconv.Atoi(os.Getenv("CUT_SECONDS")); err == nil {
		return time.Duration(seconds) * time.Second
	}
	return time.Minute
}
