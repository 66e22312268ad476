package simulation

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

var errRefused = errors.New("the access database refuses the row")

// accessTrouble is what is wrong with the access database, which the projectors of writers use beside their
// commit loops.
type accessTrouble struct {
	mu      sync.Mutex
	hangs   chan struct{} // closed when the database answers again; nil while it does
	waiting int           // statements that wait for that
	refused int64         // the account whose row can't be put, 0 for none
	failed  int           // statements that failed by themselves
	// writes are the statements that wrote keys since the database answers again.
	writes []string
}

// await returns when the database answers, or when the caller's time is over.
func (a *accessTrouble) await(ctx context.Context) error {
	a.mu.Lock()
	hangs := a.hangs
	if hangs != nil {
		a.waiting++
	}
	a.mu.Unlock()
	if hangs == nil {
		return nil
	}
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.waiting--
	}()
	select {
	case <-hangs:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write takes a statement that writes, and may refuse it.
func (a *accessTrouble) write(query string, args []driver.NamedValue, fails bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if fails {
		a.failed++
		return errDatabase
	}
	if strings.Contains(query, "api_key") {
		a.writes = append(a.writes, query[:6])
	}
	if a.refused == 0 || !strings.HasPrefix(query, "INSERT INTO account ") {
		return nil
	}
	for i := 0; i < len(args); i += accountColumns {
		if args[i].Value == a.refused {
			return errRefused
		}
	}
	return nil
}

// accountColumns is how many columns of an account the access database has; the first is the id.
const accountColumns = 3

// troubled says what is wrong now: whether the database hangs, the row it refuses, and how many statements
// have failed.
func (a *accessTrouble) troubled() (hangs bool, refused int64, failed int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hangs != nil, a.refused, a.failed
}

// troubleAccess has the access database hang, or refuse a row, or ends that.
func (c *centre) troubleAccess() {
	a, s := &c.trouble, c.sim
	switch hangs, refused, _ := a.troubled(); {
	case hangs:
		if s.depth == 0 && s.random.IntN(2) == 0 {
			s.addKey(1 + s.random.Int64N(accounts))
			s.revokeKey()
		}
		s.accessAnswers()
	case refused != 0:
		a.refuse(0)
	case c.former != nil: // whose calls would not end in time, since time stands still between steps
	case s.random.IntN(3) > 0 && !s.file: // a writer does not start when a file can't be written
		s.count(rowRefused)
		a.refuse(1 + s.random.Int64N(accounts))
	default:
		s.count(accessHangs)
		s.note("the access database hangs")
		a.mu.Lock()
		a.hangs = make(chan struct{})
		a.mu.Unlock()
	}
}

// busy reports whether statements wait for the database.
func (a *accessTrouble) busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting > 0
}

func (a *accessTrouble) refuse(account int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused = account
}

const (
	// statementLimit is how long a writer waits for a statement about one row.
	statementLimit = 5 * time.Second
	// catchUp is longer than a writer's pause before it tries again.
	catchUp = 9 * time.Second
)

// accessAnswers ends a hang, and checks that the access database then becomes what the ledger is: first what
// takes access away.
func (s *sim) accessAnswers() {
	a, begun := &s.centre.trouble, time.Now()
	s.note("the access database answers again")
	for waited := time.Duration(0); waited < 2*statementLimit && a.busy(); waited += statementLimit / 30 {
		s.pass()
		time.Sleep(statementLimit / 30)
		s.pass()
	}
	s.settleTime(begun)
	begun = time.Now()
	revoked := s.toDrop()
	a.mu.Lock()
	underWay, failed := a.waiting > 0, a.failed // goes on, in its own order
	close(a.hangs)
	a.hangs, a.writes = nil, nil
	a.mu.Unlock()
	s.pass()
	time.Sleep(catchUp)
	s.pass()
	s.settleTime(begun)
	if s.centre.current == nil || s.centre.current.session.dead {
		return
	}
	if !underWay && revoked > 0 && a.failed == failed && len(a.writes) > 0 && a.writes[0] != "DELETE" {
		s.fail("%d keys are to be revoked, and the access database gets others before", revoked)
	}
	if a.failed == failed && !underWay {
		s.checkProjected()
	}
}

// told is what an operator was told of a row of the access database.
type told struct {
	table   byte
	id      int64
	pending bool // edges do not know of the change yet
}

const (
	accountRow = iota
	keyRow
	limitRow // of a key, too
)

func (s *sim) told(t told, err error) {
	if err == nil {
		s.heard = append(s.heard, t)
	}
}

// projectedRows read the rows of ledger and access database that must agree.
var projectedRows = [...][2]string{
	accountRow: {`SELECT id, plan, suspended FROM account`, `SELECT id, plan, suspended FROM account`},
	keyRow:     {`SELECT id, account, hex(hash) FROM api_key WHERE revoked_at IS NULL`, `SELECT id, account, hex(hash) FROM api_key`},
	limitRow:   {`SELECT id, limited_until, per_minute FROM api_key WHERE revoked_at IS NULL`, `SELECT id, limited_until, per_minute FROM api_key`},
}

const selectKeyIDs = `SELECT id FROM api_key`

// readRows reads rows of three columns as text, by id.
func (s *sim) readRows(from *storage, query string) map[int64]string {
	all := map[int64]string{}
	s.must(from.ask(query, func(row *sqlite3.Stmt) {
		all[row.ColumnInt64(0)] = row.ColumnText(1) + " " + row.ColumnText(2)
	}), "read rows of the projection")
	return all
}

// checkTold compares what operators were told of the access database with it: a change is done there, or
// pending, and that only when the database is in trouble.
func (s *sim) checkTold(w *writerProcess, failedBefore int) {
	heard := s.heard
	s.heard = nil
	hangs, refused, failed := s.centre.trouble.troubled()
	for _, t := range heard {
		want := s.readRows(s.centre.ledger, projectedRows[t.table][0])[t.id]
		have := s.readRows(s.centre.access, projectedRows[t.table][1])[t.id]
		switch {
		case !t.pending && want != have:
			s.fail("row %d is said to be projected: the ledger has %q, the access database %q", t.id, want, have)
		case t.pending && !hangs && failed == failedBefore && !(t.table == accountRow && t.id == refused) && w == s.centre.current && !w.session.dead:
			s.fail("row %d is pending, and nothing is wrong with the access database", t.id)
		case t.pending:
			s.count(changePending)
			if t.table == keyRow && want == "" {
				s.revoking[t.id] = w
			}
		case t.table == keyRow && want == "":
			s.gone[t.id] = true
		}
	}
	if len(heard) > 0 {
		s.checkGone()
	}
}

// checkGone checks that keys stay away from edges that operators were told to be revoked.
func (s *sim) checkGone() {
	s.must(s.centre.access.ask(selectKeyIDs, func(row *sqlite3.Stmt) {
		if id := row.ColumnInt64(0); s.gone[id] {
			s.fail("key %d was revoked, and works", id)
		}
	}), "read keys")
}

// checkProjected checks that the access database is what the ledger is. Accounts that a restored ledger made
// for usage it did not know are suspended and have no keys: edges need not know of them.
func (s *sim) checkProjected() {
	for table, queries := range projectedRows {
		want, have := s.readRows(s.centre.ledger, queries[0]), s.readRows(s.centre.access, queries[1])
		for id, row := range want {
			if have[id] != row && !(table == accountRow && have[id] == "" && row == "free 1") {
				s.fail("row %d: the ledger has %q, the access database %q", id, row, have[id])
			}
		}
		for id, row := range have {
			if want[id] == "" {
				s.fail("row %d of the access database, %q, is not in the ledger", id, row)
			}
		}
	}
}

// toDrop is how many keys the access database has that the writer is known to have revoked. Of those that a
// writer before it revoked, and of those of which the outcome is unknown, it learns by comparing.
func (s *sim) toDrop() (n int) {
	s.must(s.centre.access.ask(selectKeyIDs, func(row *sqlite3.Stmt) {
		if w := s.revoking[row.ColumnInt64(0)]; w != nil && w == s.centre.current {
			n++
		}
	}), "read keys")
	return n
}
