package notice

import (
	"context"
	"database/sql"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	lookEvery = 30 * time.Second
	sendEvery = 2 * time.Second
	// atOnce is how many targets a carrier notifies at the same time, each of one notice.
	atOnce = 16
	// MaxAttempts and the pauses between them, from firstPause on four times as long each time up to
	// longestPause, make about two days.
	MaxAttempts  = 14
	firstPause   = 30 * time.Second
	longestPause = 6 * time.Hour
	// noteGrace is how long a change of the ledger may still take after a stop: what was delivered would come again
	// after the next start if that were not stored.
	noteGrace = 3 * time.Second
	// day is the time in which Way.PerDay counts.
	day = 24 * time.Hour
)

// Notice is a notice on its way, with what its carrier needs to know of its target.
type Notice struct {
	ID, Kind string
	Body     string // JSON: id, type, timestamp, account, data
	Account  string // its name
	URL      string // of a webhook
	Secret   string // of a webhook
	Address  string // of mail
	target   int64
	attempts int
	account  int64
}

// State is the result of an attempt.
type State int

// The states. A failed notice is retried until MaxAttempts, a refused one is given up, and an attempt that
// was not made does not count.
const (
	Failed State = iota
	Delivered
	Refused
	Untried
)

// Outcome is the result of an attempt, in words for the owner.
type Outcome struct {
	State  State
	Result string
}

// Carrier delivers notices. It makes at most one attempt for each, within a deadline of its own, and returns
// their outcomes in the same order.
type Carrier interface {
	Carry(ctx context.Context, list []Notice) []Outcome
}

// Way is a channel with its carrier.
type Way struct {
	Channel Channel
	Carrier Carrier
	// PerDay bounds the notices that a target gets within 24 hours; 0 does not. The rest is queued.
	PerDay int
}

// Config configures a Sender. Ledger and Commit are required.
type Config struct {
	// Ledger is the writer's database, for reading.
	Ledger *sql.DB
	// Commit changes it in a transaction of the writer.
	Commit func(ctx context.Context, change func(ctx context.Context, tx *sql.Tx, nowMillis int64) error) error
	// Ways are the available channels; targets of other channels get nothing.
	Ways []Way
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Logger gets what an operator should see; nil discards it.
	Logger *slog.Logger
	// Metrics, if set, shows counters of attempts.
	Metrics prometheus.Registerer
}

// Sender finds notices and has them delivered.
type Sender struct {
	config   Config
	attempts *prometheus.CounterVec
	rounds   map[Channel]*round
}

// round is the state of a channel's attempts. The sender owns it.
type round struct {
	after int64 // the target that had the last turn
	// tried are attempts whose outcomes could not be stored yet. Until they are, nothing is sent: these notices
	// would all be due again at once.
	tried    []Notice
	outcomes []Outcome
	// delivered has, by address, the times of the newest deliveries within a day, as many as Way.PerDay. The
	// ledger forgets deliveries with a target that its owner removes, and may make again. A restart forgets
	// these.
	delivered map[string][]int64
}

// deliver counts a delivery to an address.
func (r *round) deliver(address string, now int64, perDay int) {
	kept := map[string][]int64{}
	for other := range r.delivered {
		if times := r.lastDay(other, now); len(times) > 0 {
			kept[other] = times
		}
	}
	times := append(kept[address], now)
	kept[address] = times[max(len(times)-perDay, 0):]
	r.delivered = kept
}

// lastDay returns the times of deliveries to an address within a day. Later times are from a clock that was
// ahead, and are left out.
func (r *round) lastDay(address string, now int64) []int64 {
	return slices.DeleteFunc(slices.Clone(r.delivered[address]), func(at int64) bool { return at <= now-day.Milliseconds() || at > now })
}

// freeAt returns when an address that has its deliveries of a day may get one more; 0 for now.
func (r *round) freeAt(address string, now int64, perDay int) int64 {
	if times := r.lastDay(address, now); len(times) >= perDay {
		return times[0] + day.Milliseconds()
	}
	return 0
}

// New makes a Sender, which does nothing before Run.
func New(config Config) *Sender {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Sender{config: config, rounds: map[Channel]*round{}, attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "regedge_writer_notices_total",
		Help: "Attempts to tell an owner something by webhook or mail, by outcome: delivered, failed, given_up.",
	}, []string{"channel", "outcome"})}
	for _, w := range config.Ways {
		s.rounds[w.Channel] = &round{}
		for _, outcome := range []string{"delivered", "failed", "given_up"} {
			s.attempts.WithLabelValues(string(w.Channel), outcome)
		}
	}
	if config.Metrics != nil {
		config.Metrics.MustRegister(s.attempts)
	}
	return s
}

// Run finds and delivers notices until ctx ends. It goes on after errors of the ledger. A slow channel
// delays no other.
func (s *Sender) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { s.repeat(ctx, lookEvery, s.Look) })
	for _, w := range s.config.Ways {
		all.Go(func() {
			s.repeat(ctx, sendEvery, func(ctx context.Context) error {
				_, err := s.Send(ctx, w.Channel)
				return err
			})
		})
	}
	all.Wait()
	return nil
}

// repeat calls act until ctx ends. It logs an error once until another one or a success.
func (s *Sender) repeat(ctx context.Context, every time.Duration, act func(context.Context) error) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for said := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch err := act(ctx); {
		case err == nil:
			said = ""
		case ctx.Err() == nil && err.Error() != said:
			said = err.Error()
			s.config.Logger.Warn("notices to owners wait", "error", err)
		}
	}
}

// Look finds new events, stores their notices, and drops expired ones.
func (s *Sender) Look(ctx context.Context) error {
	var f finding
	for i, w := range s.config.Ways {
		f.channels[i] = string(w.Channel)
	}
	err := f.find(ctx, s.config.Ledger, s.config.Now().UnixMilli())
	if err == nil {
		err = f.news(ctx, s.config.Ledger)
	}
	if err != nil || len(f.events)+len(f.again) == 0 && !f.expired {
		return err
	}
	return s.commit(ctx, f.store)
}

// selectDue finds, for each target of a channel, the notice that has been due for longest. Its parameters are
// the channel, the time, ahead, the target that had the last turn, and a limit. Targets take turns: one with
// many notices and a server that never answers must not delay the others.
const selectDue = `SELECT e.id, e.kind, e.body, e.attempts, t.id, t.account, a.name, t.url, t.secret, coalesce(u.email, ''), min(e.next_at)
	FROM notice_target t CROSS JOIN notice e ON e.target = t.id JOIN account a ON a.id = t.account LEFT JOIN user u ON u.id = t.user
	WHERE t.channel = ?1 AND e.next_at IS NOT NULL AND (e.next_at <= ?2 OR e.next_at > ?2 + ?3)
	GROUP BY t.id ORDER BY t.id <= ?4, t.id LIMIT ?5`

// ahead exceeds every delay of a notice: a notice that is due later than that was put off by a wrong clock.
const ahead = 2 * day

// Send makes one attempt for each target of a channel that has a notice due, and returns how many.
func (s *Sender) Send(ctx context.Context, channel Channel) (attempts int, err error) {
	for _, w := range s.config.Ways {
		if w.Channel == channel {
			return s.send(ctx, w)
		}
	}
	return 0, nil
}

func (s *Sender) send(ctx context.Context, w Way) (attempts int, err error) {
	r := s.rounds[w.Channel]
	if err := s.note(ctx, w, r); err != nil {
		return 0, err
	}
	var due []Notice
	args := []any{string(w.Channel), s.config.Now().UnixMilli(), ahead.Milliseconds(), r.after, atOnce}
	err = each(ctx, s.config.Ledger, selectDue, args, func(rows *sql.Rows) error {
		var n Notice
		var next int64
		err := rows.Scan(&n.ID, &n.Kind, &n.Body, &n.attempts, &n.target, &n.account, &n.Account, &n.URL, &n.Secret, &n.Address, &next)
		due = append(due, n)
		return err
	})
	if err != nil || len(due) == 0 {
		return 0, err
	}
	r.after = due[len(due)-1].target
	due, err = s.within(ctx, w, r, due)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	outcomes := w.Carrier.Carry(ctx, due)
	if ctx.Err() != nil { // an attempt that was cut short is no failure
		due, outcomes = delivered(due, outcomes)
	}
	r.tried, r.outcomes = due, outcomes
	if err := s.note(ctx, w, r); err != nil {
		return 0, err
	}
	for _, o := range outcomes {
		if o.State != Untried {
			attempts++
		}
	}
	return attempts, ctx.Err()
}

// delivered returns the notices that were delivered, with their outcomes.
func delivered(tried []Notice, outcomes []Outcome) (taken []Notice, of []Outcome) {
	for i, o := range outcomes {
		if o.State == Delivered {
			taken, of = append(taken, tried[i]), append(of, o)
		}
	}
	return taken, of
}

// note stores the outcomes of attempts, also when ctx has ended.
func (s *Sender) note(ctx context.Context, w Way, r *round) error {
	tried, outcomes := r.tried, r.outcomes
	if len(tried) == 0 {
		return nil
	}
	err := s.commit(ctx, func(ctx context.Context, tx *sql.Tx, now int64) error {
		for i, n := range tried {
			if err := n.note(ctx, tx, now, outcomes[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.tried, r.outcomes = nil, nil
	for i, n := range tried {
		if outcomes[i].State != Untried {
			s.tell(w.Channel, n, outcomes[i])
		}
		if outcomes[i].State == Delivered && w.PerDay > 0 {
			r.deliver(n.Address, s.config.Now().UnixMilli(), w.PerDay)
		}
	}
	return nil
}

// commit changes the ledger. Once ctx has ended it waits noteGrace for that, and no longer: a commit that has begun ends
// later than its context, if the ledger hangs.
func (s *Sender) commit(ctx context.Context, change func(ctx context.Context, tx *sql.Tx, now int64) error) error {
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(noteGrace, cancel) })()
	done := make(chan error, 1)
	go func() { done <- s.config.Commit(last, change) }()
	select {
	case err := <-done:
		return err
	case <-last.Done():
		return last.Err()
	}
}

// tell counts an attempt, and logs a notice that is given up.
func (s *Sender) tell(channel Channel, n Notice, o Outcome) {
	outcome := "failed"
	switch {
	case o.State == Delivered:
		outcome = "delivered"
	case n.last(o):
		outcome = "given_up"
		s.config.Logger.Warn("gave up a notice to an owner", "channel", string(channel), "notice", n.ID, "kind", n.Kind,
			"account", n.account, "attempts", n.attempts+1, "result", o.Result)
	}
	s.attempts.WithLabelValues(string(channel), outcome).Inc()
}

// last reports whether an attempt without success was the last.
func (n *Notice) last(o Outcome) bool { return o.State == Refused || n.attempts+1 >= MaxAttempts }

// note stores the result of an attempt, once: after some errors it is not known whether it was stored.
func (n *Notice) note(ctx context.Context, tx *sql.Tx, now int64, o Outcome) error {
	var next, delivered any
	switch {
	case o.State == Untried:
		return nil
	case o.State == Delivered:
		delivered = now
	case !n.last(o):
		next = now + pauseAfter(n.attempts+1).Milliseconds()
	}
	_, err := tx.ExecContext(ctx, `UPDATE notice SET attempts = attempts + 1, last = ?, delivered_at = ?, next_at = ? WHERE id = ? AND attempts = ?`,
		o.Result, delivered, next, n.ID, n.attempts)
	return err
}

// pauseAfter is the pause after so many failed attempts.
func pauseAfter(attempts int) time.Duration {
	pause := firstPause
	for i := 1; i < attempts && pause < longestPause; i++ {
		pause *= 4
	}
	return min(pause, longestPause)
}

// within returns the notices whose targets may get one more now. It puts off the others until they may.
func (s *Sender) within(ctx context.Context, w Way, r *round, due []Notice) (now []Notice, err error) {
	if w.PerDay == 0 {
		return due, nil
	}
	later := map[string]int64{} // by notice: when it may go
	for _, n := range due {
		const query = `SELECT count(*), coalesce(min(delivered_at), 0) FROM
			(SELECT delivered_at FROM notice WHERE target = ?1 AND delivered_at > ?2 AND delivered_at <= ?4 ORDER BY delivered_at DESC LIMIT ?3)`
		var count int
		var oldest int64
		at := s.config.Now()
		if err := s.config.Ledger.QueryRowContext(ctx, query, n.target, at.Add(-day).UnixMilli(), w.PerDay, at.UnixMilli()).Scan(&count, &oldest); err != nil {
			return nil, err
		}
		free := r.freeAt(n.Address, at.UnixMilli(), w.PerDay)
		if count >= w.PerDay {
			free = max(free, oldest+day.Milliseconds())
		}
		if free == 0 {
			now = append(now, n)
			continue
		}
		later[n.ID] = free
	}
	if len(later) == 0 {
		return now, nil
	}
	return now, s.commit(ctx, func(ctx context.Context, tx *sql.Tx, _ int64) error {
		for id, at := range later {
			if _, err := tx.ExecContext(ctx, `UPDATE notice SET next_at = ?, last = 'waits: enough were sent today' WHERE id = ?`, at, id); err != nil {
				return err
			}
		}
		return nil
	})
}
