package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/history"
	"regedge/replicate/metering/writer"
)

var histories = flag.Int("histories", 1, "how many histories TestHistory makes, each of a new cluster")

const (
	// historyLasts is how long clients and operators call: the search for an order takes memory and
	// time by the square of their calls.
	historyLasts = 20 * time.Second
	poorAccounts = 4 // whose credits are soon spent
	refillUnits  = 2 // credits that an account gets each time it has none
	keyAccounts  = 2 // whose keys come and go
	// operatorLimit is how long operators wait for an answer, clientLimit how long clients do: longer
	// than a fault lasts, but for the end of their edge, so that few calls have no answer.
	operatorLimit = 2 * time.Second
	clientLimit   = 2 * longestFault
	// rareRefusals is the pause of a client after a 402.
	rareRefusals = 100 * time.Millisecond
)

// TestHistory has clients look up and operators change credits, keys and suspension, while the network
// between writer, edges and operators is cut, in one direction too, processes are stopped and killed,
// and the ledger comes back from a backup. What everybody was told must be what happened: see package
// history.
func TestHistory(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	for range *histories {
		t.Logf("run it again, with other timing: go test ./internal/chaos -run TestHistory -seed %d", *seed)
		require.NoError(t, newWorld(t, newCluster(t)).run(historyLasts))
		*seed++
	}
}

// world is a cluster with its clients and operators, and what they were told.
type world struct {
	*cluster
	*history.History
	random *rand.Rand // of the faults
	links  []*link    // of the edges, to the writer
	desk   *link      // of the operators
	office *writer.Client
	// changing is held by an operator during a change, and by a backup and its restore.
	changing sync.RWMutex
	poor     []int64
	holders  []*holder
	ended    atomic.Bool
	clients  atomic.Int64

	mu     sync.Mutex
	wrongs error // what operators were told that can't be
}

func (w *world) wrong(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrongs = errors.Join(w.wrongs, fmt.Errorf(format, args...))
}

// holder is an account whose keys come and go.
type holder struct {
	account int64
	mu      sync.Mutex
	secrets map[int64]string // of its newest keys
}

func newWorld(t *testing.T, c *cluster) *world {
	w := &world{cluster: c, History: history.New(), random: rand.New(rand.NewPCG(*seed, 2))}
	for _, name := range []string{"one", "two", "three"} {
		l := newLink(t, c.writer.address)
		p := c.edge(name, l.url(), c.path(name))
		p.start()
		p.await("/readyz", http.StatusOK)
		w.links = append(w.links, l)
	}
	w.desk = newLink(t, c.writer.address)
	w.office = writer.NewClient(w.desk.url(), operatorToken, &http.Client{Timeout: operatorLimit, Transport: &http.Transport{DisableKeepAlives: true}})
	return w
}

// run lets everybody work for some time, and judges.
func (w *world) run(d time.Duration) error {
	var all sync.WaitGroup
	for range poorAccounts {
		a := w.account(1)
		w.poor = append(w.poor, a.id)
		w.Add(history.Call{Subject: a.id, Kind: history.Bought, Units: 1})
		for _, p := range w.edges {
			all.Go(func() { w.lookUp(p, a) })
		}
		all.Go(func() { w.trade(a.id) })
	}
	for _, p := range w.edges {
		a := w.account(1)
		w.poor = append(w.poor, a.id)
		w.Add(history.Call{Subject: a.id, Kind: history.Bought, Units: 1})
		all.Go(func() { w.refill(p, a) })
	}
	for range keyAccounts {
		h := &holder{account: w.account(1_000_000).id, secrets: map[int64]string{}}
		w.holders = append(w.holders, h)
		for _, p := range w.edges {
			all.Go(func() { w.tryKeys(p, h) })
		}
		all.Go(func() { w.changeKeys(h) })
	}
	faults := w.disturb(d)
	w.ended.Store(true)
	all.Wait()
	w.settle()
	calls := w.Calls()
	w.t.Logf("%d calls, %v", len(calls), faults)
	return errors.Join(w.wrongs, history.Balances().Check(calls), history.Keys().Check(calls))
}

// lookUp is a client of an account at an edge.
func (w *world) lookUp(p *process, a *account) {
	ask := w.asker(p, a)
	for !w.ended.Load() {
		pause := 5 * time.Millisecond
		if ask() != history.Served {
			pause = rareRefusals
		}
		time.Sleep(pause)
	}
}

// refill is the only client of an account, at one edge, and sells it credits whenever it gets a 402: a
// 402 that an edge believes for too long is seen as soon as that edge is cut off.
func (w *world) refill(p *process, a *account) {
	ask := w.asker(p, a)
	me := int(w.clients.Add(1))
	for !w.ended.Load() {
		if ask() == history.Refused {
			c := history.Call{Client: me, Subject: a.id, Kind: history.Bought, Units: refillUnits, Begin: w.Now()}
			w.insist(writer.NewIdempotencyKey(), func(ctx context.Context) (any, error) {
				return w.office.ChangeCredits(ctx, a.id, writer.CreditChange{Amount: refillUnits})
			})
			w.Add(c)
		}
		time.Sleep(rareRefusals)
	}
}

// asker returns a function that looks up as a new client of an account, and returns what it recorded of
// the answer, 0 for nothing. A call that was not sent, since the edge is down, is no call.
func (w *world) asker(p *process, a *account) func() history.Kind {
	me := int(w.clients.Add(1))
	client := &http.Client{Timeout: clientLimit, Transport: &http.Transport{DisableKeepAlives: true}}
	sent := false
	ctx := httptrace.WithClientTrace(w.t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	return func() history.Kind {
		sent = false
		c := history.Call{Client: me, Subject: a.id, Begin: w.Now()}
		switch status(ctx, client, "http://"+p.address, a.key) {
		case http.StatusOK:
			c.Kind = history.Served
		case http.StatusPaymentRequired:
			c.Kind = history.Refused
		case 0:
			if sent {
				c.Kind = history.CutOff
			}
		}
		if c.Kind != 0 {
			w.Add(c)
		}
		return c.Kind
	}
}

// trade is an operator who changes the credits of an account, and now and then repeats a change that
// was made, which must be answered as the first time.
func (w *world) trade(id int64) {
	me := int(w.clients.Add(1))
	random := rand.New(rand.NewPCG(*seed, uint64(id)))
	var done []func()
	bought := int64(1) // by account, less what was taken
	for !w.ended.Load() {
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		if len(done) > 0 && random.IntN(4) == 0 {
			done[random.IntN(len(done))]()
			continue
		}
		c := history.Call{Client: me, Subject: id, Kind: history.Bought, Units: 1 + random.Int64N(30)}
		amount := c.Units
		if random.IntN(5) == 0 {
			c.Kind, amount = history.Taking, -amount
		}
		change := func(ctx context.Context) (any, error) {
			return w.office.ChangeCredits(ctx, id, writer.CreditChange{Amount: amount})
		}
		c.Begin = w.Now()
		key := writer.NewIdempotencyKey()
		first := w.insist(key, change)
		if first == nil {
			continue
		}
		w.Add(c)
		if c.Kind == history.Taking {
			bought -= w.took(me, id, bought)
		} else {
			bought += amount
		}
		done = append(done, func() {
			if again := w.insist(key, change); !reflect.DeepEqual(again, first) {
				w.wrong("a change is answered %+v, and again %+v", first, again)
			}
		})
	}
}

// took waits until credits were taken, and returns how many of those that were bought.
func (w *world) took(me int, id, bought int64) int64 {
	for {
		w.changing.RLock()
		begin := w.Now()
		at, err := w.client.Account(context.Background(), id)
		done := err == nil && at.Deducting == 0
		if done {
			w.Add(history.Call{Client: me, Subject: id, Kind: history.Took, Units: bought - at.Bought, Begin: begin})
		}
		w.changing.RUnlock()
		if done {
			return bought - at.Bought
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// changer is what an operator is answered to a change that edges learn of.
type changer interface{ IsPending() bool }

// insist makes a change under its key until it is certain, and edges can know of it. It returns the
// answer, nil for one that takes more than is left, which changes nothing.
func (w *world) insist(key string, change func(context.Context) (any, error)) any {
	w.changing.RLock()
	defer w.changing.RUnlock()
	for {
		answer, err := change(writer.WithIdempotencyKey(context.Background(), key))
		pending, ok := answer.(changer)
		if err == nil && !(ok && pending.IsPending()) {
			return answer
		}
		if errors.Is(err, writer.ErrBeyondBalance) {
			return nil
		}
		var network *url.Error
		if err != nil && !errors.Is(err, writer.ErrUncertain) && !errors.Is(err, writer.ErrUnavailable) && !errors.As(err, &network) {
			w.wrong("a change is refused: %w", err)
			return answer
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// changeKeys is an operator who makes and revokes the keys of an account, and suspends it.
func (w *world) changeKeys(h *holder) {
	me := int(w.clients.Add(1))
	random := rand.New(rand.NewPCG(*seed, uint64(h.account)))
	for !w.ended.Load() {
		begin := w.Now()
		made := w.insist(writer.NewIdempotencyKey(), func(ctx context.Context) (any, error) { return w.office.AddKey(ctx, h.account, "") })
		key, ok := made.(writer.NewKey)
		if !ok || key.ID == 0 {
			return
		}
		w.Add(history.Call{Client: me, Subject: key.ID, Kind: history.Made, Begin: begin})
		h.put(key)
		pause := func() { time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond) }
		pause()
		if random.IntN(2) == 0 {
			w.suspend(me, h, key.ID, true)
			pause()
			w.suspend(me, h, key.ID, false)
			pause()
		}
		begin = w.Now()
		w.insist(writer.NewIdempotencyKey(), func(ctx context.Context) (any, error) { return w.office.RevokeKey(ctx, key.ID) })
		w.Add(history.Call{Client: me, Subject: key.ID, Kind: history.Revoked, Begin: begin})
		pause()
	}
}

func (w *world) suspend(me int, h *holder, key int64, suspended bool) {
	c := history.Call{Client: me, Subject: key, Kind: history.Resumed, Begin: w.Now()}
	if suspended {
		c.Kind = history.Suspended
	}
	w.insist(writer.NewIdempotencyKey(), func(ctx context.Context) (any, error) {
		return w.office.ChangeAccount(ctx, h.account, writer.AccountChange{Suspended: &suspended})
	})
	w.Add(c)
}

// put remembers a key, and forgets the one before the last.
func (h *holder) put(key writer.NewKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secrets[key.ID] = key.Secret
	for id := range h.secrets {
		if len(h.secrets) > 2 && id < key.ID-int64(2*keyAccounts) {
			delete(h.secrets, id)
		}
	}
}

// tryKeys is a client who tries the keys of an account at an edge.
func (w *world) tryKeys(p *process, h *holder) {
	me := int(w.clients.Add(1))
	client := &http.Client{Timeout: clientLimit, Transport: &http.Transport{DisableKeepAlives: true}}
	for !w.ended.Load() {
		h.mu.Lock()
		secrets := make(map[int64]string, len(h.secrets))
		for id, secret := range h.secrets {
			secrets[id] = secret
		}
		h.mu.Unlock()
		for id, secret := range secrets {
			c := history.Call{Client: me, Subject: id, Begin: w.Now()}
			switch status(w.t.Context(), client, "http://"+p.address, secret) {
			case http.StatusOK:
				c.Kind = history.Admitted
			case http.StatusUnauthorized:
				c.Kind = history.Unknown
			case http.StatusForbidden:
				c.Kind = history.Forbidden
			}
			if c.Kind != 0 {
				w.Add(c)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// settle waits until the ledger knows all that clients were told, and reads the balances.
func (w *world) settle() {
	spent := map[int64]int64{}
	for _, c := range w.Calls() {
		if c.Kind == history.Served {
			spent[c.Subject]++
		}
	}
	for _, id := range w.poor {
		var at writer.Account
		var err error
		eventually(w.t, func() bool {
			before := at.Spent
			at, err = w.client.Account(context.Background(), id)
			time.Sleep(1200 * time.Millisecond) // an edge reports each second
			return err == nil && at.Spent >= spent[id] && at.Spent == before && at.Deducting == 0
		}, func() string { return fmt.Sprintf("%d answers are spent: %+v %v", spent[id], at, err) })
		w.Add(history.Call{Subject: id, Kind: history.Left, Units: at.Balance, Begin: w.Now()})
		begin := w.Now()
		w.Add(history.Call{Subject: id, Kind: history.Counted, Units: w.charged(id), Begin: begin})
		if at.Compensated != 0 {
			w.wrong("%d credits were compensated, though no disk was lost: %+v", at.Compensated, at)
		}
	}
}

// charged is how many calls of an account the ledger counts as charged.
func (w *world) charged(id int64) (n int64) {
	rows, err := w.client.Usage(context.Background(), writer.UsageQuery{Account: id})
	require.NoError(w.t, err)
	for _, row := range rows {
		if row.Outcome == charge.Found.String() {
			n += row.Count
		}
	}
	return n
}
