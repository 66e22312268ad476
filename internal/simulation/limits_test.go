package simulation

import (
	"context"

	"github.com/ncruces/go-sqlite3"

	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
)

// limitedAccounts is how many of the accounts have a key with monthly credits: the one that
// the first edge's clients use.
const limitedAccounts = 2

func limitedKey(account int64) int64 { return account*keysOfAccount + 1 }

const insertKey = `INSERT INTO api_key (id, account, name, hash, shown, created_at) VALUES (?1, ?2, 'limited', unhex(printf('%064d', ?1)), '', 0)`

// limitKeys has operators limit keys. These have the ids by which clients are told apart.
func (s *sim) limitKeys() {
	for account := int64(1); account <= limitedAccounts; account++ {
		s.must(s.centre.ledger.ask(insertKey, nil, limitedKey(account), account), "add a key")
		s.limitKey(account)
	}
}

// limitKey has an operator change what a key may spend in a month. The writer adds up what it has spent;
// while its clock is ahead it may miss some.
func (s *sim) limitKey(account int64) {
	if account > limitedAccounts || s.centre.skew.Load() > 0 {
		return
	}
	s.count(keyLimited)
	key, credits := limitedKey(account), s.random.Int64N(60)
	s.note("key %d may spend %d credits a month", key, credits)
	c := s.newChange()
	c.ask = func(ctx context.Context, o *writer.Client, other bool) (any, error) {
		s.limitsUnclear = s.limitsUnclear || s.centre.skew.Load() > 0
		wanted := writer.KeyChange{MonthlyCredits: &credits}
		if other {
			wanted.Name = &c.name
		}
		k, err := o.ChangeKey(ctx, key, wanted)
		s.told(told{keyRow, k.ID, k.Pending}, err)
		k.Pending = false
		return k, err
	}
	s.request(c)
}

// selectLimits has the month and its first and last hour.
const selectLimits = `SELECT k.id, k.monthly_credits, k.limited_until,
	coalesce((SELECT spent FROM key_month WHERE key = k.id AND month = ?1), 0),
	coalesce((SELECT sum(count) FROM usage WHERE account = k.account AND key = k.id AND outcome = 1 AND hour BETWEEN ?2 AND ?3), 0)
	FROM api_key k WHERE k.name = 'limited'`

// limit is a key with monthly credits, in one month.
type limit struct{ key, credits, until, spent, used int64 }

func (s *sim) limitsIn(month int32) (all []limit) {
	first, last := syncproto.Hour(syncproto.EndOfMonth(month-1)), syncproto.Hour(syncproto.EndOfMonth(month)-1)
	s.must(s.centre.ledger.ask(selectLimits, func(row *sqlite3.Stmt) {
		all = append(all, limit{row.ColumnInt64(0), row.ColumnInt64(1), row.ColumnInt64(2), row.ColumnInt64(3), row.ColumnInt64(4)})
	}, int64(month), int64(first), int64(last)), "read limits of keys")
	return all
}

// checkLimits checks that what keys spent is the sum of their usage, and that none is refused before
// its month's credits are spent.
func (s *sim) checkLimits() {
	for _, k := range s.limitsIn(syncproto.Month(s.clock.Load())) {
		switch {
		case k.credits == 0 && k.until != 0:
			s.fail("key %d has no limit, and is refused until %d", k.key, k.until)
		case k.credits > 0 && k.spent != k.used && !s.limitsUnclear:
			s.fail("key %d: %d counted this month, the usage is %d", k.key, k.spent, k.used)
		case k.until != 0:
			s.checkSpent(k)
		}
	}
}

func (s *sim) checkSpent(refused limit) {
	month := syncproto.Month(refused.until - 1)
	if refused.until != syncproto.EndOfMonth(month) {
		s.fail("key %d is refused until %d, no month's end", refused.key, refused.until)
	}
	for _, k := range s.limitsIn(month) {
		if k.key == refused.key && k.spent < k.credits {
			s.fail("key %d is refused until %d, with %d of %d spent", k.key, k.until, k.spent, k.credits)
		}
	}
}

// settledLimits checks that keys whose credits are spent are refused, once an edge has reported a charge.
func (s *sim) settledLimits() {
	if s.edges[0].retired || s.restoredSilently {
		return
	}
	for account := int64(1); account <= limitedAccounts; account++ {
		s.must(s.addCredits(account), "add credits")
	}
	s.quiet(5)
	for account := int64(1); account <= limitedAccounts; account++ {
		month := syncproto.Month(s.clock.Load())
		if s.spendAt(s.edges[0], account) != "" {
			continue
		}
		s.quiet(3)
		if month != syncproto.Month(s.clock.Load()) {
			continue
		}
		for _, k := range s.limitsIn(month) {
			full := k.credits > 0 && k.spent >= k.credits
			if k.key == limitedKey(account) && full != (k.until == syncproto.EndOfMonth(month)) {
				s.fail("key %d spent %d of %d this month, and is refused until %d", k.key, k.spent, k.credits, k.until)
			}
		}
	}
	s.count(limitsSettled)
}

func (s *sim) addCredits(account int64) (err error) {
	s.bought[account] += 3
	s.centre.operate(func(ctx context.Context, o *writer.Client) error {
		_, err = o.ChangeCredits(ctx, account, writer.CreditChange{Amount: 3})
		return err
	})
	return err
}
