package simulation

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"
	sqlite "github.com/ncruces/go-sqlite3/driver"
	"github.com/ncruces/go-sqlite3/vfs"
	"github.com/ncruces/go-sqlite3/vfs/memdb"

	"regedge/schema"
)

var (
	errDatabase   = errors.New("the database does not answer")
	errConstraint = errors.New("CHECK constraint failed")
)

// storage is a database that outlives its writers.
type storage struct {
	which   schema.Database
	name    string
	keep    *sqlite3.Conn // keeps the database in memory, and reads it without faults
	queries map[string]*sqlite3.Stmt
	entries entries
	// fills counts how often the content was replaced.
	fills uint32
	// idle are connections of writers that ended, with their prepared statements: preparing
	// them again would take most of a run's time.
	idle []*connection
}

var (
	lastStorage atomic.Int64
	// reusable has the databases of runs that ended, for the same reason as idle.
	reusable = struct {
		sync.Mutex
		of map[schema.Database][]*storage
	}{of: map[schema.Database][]*storage{}}
)

// smallPages makes databases of a quarter of the size: they have few rows, and are copied often.
const smallPages = "PRAGMA page_size = 1024"

// templates are migrated empty databases.
var templates = sync.OnceValues(func() (map[schema.Database][]byte, error) {
	made := map[schema.Database][]byte{}
	for _, which := range []schema.Database{schema.Ledger, schema.Access} {
		s := newStorage(which, nil)
		if err := s.keep.Exec(smallPages); err != nil {
			return nil, err
		}
		db := sql.OpenDB(s.connector())
		defer db.Close()
		if err := schema.Migrate(context.Background(), db, which); err != nil {
			return nil, err
		}
		content, err := s.content()
		if err != nil {
			return nil, err
		}
		made[which] = content
	}
	return made, nil
})

// takeStorage returns a database with the content, in memory.
func takeStorage(which schema.Database, content []byte) *storage {
	reusable.Lock()
	list := reusable.of[which]
	if len(list) == 0 {
		reusable.Unlock()
		return newStorage(which, content)
	}
	s := list[len(list)-1]
	reusable.of[which] = list[:len(list)-1]
	reusable.Unlock()
	if err := s.fill(content); err != nil {
		panic(err)
	}
	return s
}

// newStorage makes a database in memory, with content or empty.
func newStorage(which schema.Database, content []byte) *storage {
	s := &storage{which: which, name: fmt.Sprintf("simulation-%d", lastStorage.Add(1)), queries: map[string]*sqlite3.Stmt{}}
	memdb.Create(s.name, append([]byte(nil), content...))
	var err error
	if s.keep, err = sqlite3.Open(s.address()); err != nil {
		panic(err)
	}
	return s
}

const (
	// sector is what one access to a database in memory may not cross.
	sector = 1 << 16
	// changeCounter and versionValidFor are offsets in a database file's header: connections drop
	// the pages that they remember when the first has changed.
	changeCounter, versionValidFor = 24, 92
	// fillStep is by how much the change counter grows with each new content: more than the
	// transactions of a run.
	fillStep = 1 << 20
)

// fill replaces the database by another one with the same tables.
func (s *storage) fill(content []byte) (err error) {
	content = append([]byte(nil), content...)
	s.fills++
	s.entries = entries{}
	for _, at := range []int{changeCounter, versionValidFor} {
		binary.BigEndian.PutUint32(content[at:], s.fills*fillStep)
	}
	f, err := s.raw()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(int64(len(content))); err != nil {
		return err
	}
	for at := 0; at < len(content); at += sector {
		if _, err := f.WriteAt(content[at:min(at+sector, len(content))], int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// content is the whole database file, as in a backup.
func (s *storage) content() (content []byte, err error) {
	f, err := s.raw()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	content = make([]byte, size)
	for at := 0; at < len(content); at += sector {
		if _, err := f.ReadAt(content[at:min(at+sector, len(content))], int64(at)); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// raw opens the database's file. No transaction must be under way.
func (s *storage) raw() (vfs.File, error) {
	f, _, err := vfs.Find("memdb").Open("/"+s.name, vfs.OPEN_MAIN_DB|vfs.OPEN_READWRITE)
	return f, err
}

func (s *storage) address() string { return "file:/" + s.name + "?vfs=memdb" }

// ask runs a query without faults, and calls read for each row.
func (s *storage) ask(query string, read func(row *sqlite3.Stmt), args ...int64) error {
	asked := s.queries[query]
	if asked == nil {
		var err error
		if asked, _, err = s.keep.Prepare(query); err != nil {
			return err
		}
		s.queries[query] = asked
	}
	for i, value := range args {
		if err := asked.BindInt64(i+1, value); err != nil {
			return err
		}
	}
	for asked.Step() {
		read(asked)
	}
	return asked.Reset()
}

// close leaves the database to another run.
func (s *storage) close() {
	reusable.Lock()
	defer reusable.Unlock()
	reusable.of[s.which] = append(reusable.of[s.which], s)
}

// open opens the database for one writer.
func (s *storage) open(h *session) *sql.DB {
	db := sql.OpenDB(&connector{s.connector(), s, h})
	db.SetMaxOpenConns(4)
	return db
}

// session is one writer's use of a database, with its faults.
type session struct {
	sim    *sim
	random *rand.Rand // decides about faults: other goroutines than the simulation's use the database
	dead   bool
	// hangs is for how long the next statement does not return; hungUntil is when the last one did.
	hangs     time.Duration
	hungUntil time.Time
	// failed counts the faults so far.
	failed int
	// crashIn counts down to the process's last access; 0 for none.
	crashIn int
	// refuses is the key whose usage the database refuses, as it does a row that breaks a constraint; 0 for none.
	refuses int64
	// trouble is what is wrong with the access database, nil for the ledger.
	trouble *accessTrouble
}

// faulty decides whether a fault happens, on average once in oneIn calls.
func (h *session) faulty(oneIn int) bool { return !h.sim.calm && h.random.IntN(oneIn) == 0 }

// disturbed reports whether something failed in a call that began at a time, or a statement of one before still hung
// then. before is what failed counted at the beginning.
func (h *session) disturbed(before int, begun time.Time) bool {
	return h.failed > before || begun.Before(h.hungUntil)
}

// access counts a statement, which may fail or be the process's last.
func (h *session) access(ctx context.Context) error {
	h.sim.pass()
	defer h.sim.pass()
	if h.dead {
		return errDead
	}
	if h.trouble != nil {
		return h.trouble.await(ctx)
	}
	if h.crashIn > 0 && !h.sim.calm {
		if h.crashIn--; h.crashIn == 0 {
			h.sim.count(writerCrashAtWrite)
			h.dead, h.failed = true, h.failed+1
			return errDead
		}
	}
	if h.hangs > 0 {
		hangs := h.hangs
		h.hangs = 0
		h.failed++
		h.hungUntil = time.Now().Add(hangs)
		time.Sleep(hangs)
	}
	if h.faulty(400) {
		h.sim.count(statementFails)
		h.failed++
		return errDatabase
	}
	return nil
}

type connector struct {
	driver.Connector
	storage *storage
	session *session
}

func (s *storage) connector() driver.Connector {
	c, err := (&sqlite.SQLite{}).OpenConnector(s.address() + "&_txlock=immediate")
	if err != nil {
		panic(err)
	}
	return c
}

// Driver is SQLite's in every other run. In the others it is not, so that the writer takes
// the database for a remote one.
func (c *connector) Driver() driver.Driver {
	if c.session.sim.file {
		return c.Connector.Driver()
	}
	return remote{}
}

type remote struct{}

func (remote) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	c.session.sim.pass()
	defer c.session.sim.pass()
	if c.session.dead {
		return nil, errDead
	}
	if n := len(c.storage.idle); n > 0 {
		again := c.storage.idle[n-1]
		c.storage.idle = c.storage.idle[:n-1]
		again.session = c.session
		return again, nil
	}
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	// Else a statement is prepared again whenever a bound limit or range changes.
	if _, err := conn.(sqlite.Conn).Raw().Config(sqlite3.DBCONFIG_ENABLE_QPSG, true); err != nil {
		return nil, err
	}
	return &connection{Conn: conn, storage: c.storage, session: c.session, prepared: map[string]driver.Stmt{}, bounds: map[string]*sqlite3.Stmt{}}, nil
}

// connection keeps its prepared statements.
type connection struct {
	driver.Conn
	storage  *storage
	session  *session
	prepared map[string]driver.Stmt
	bounds   map[string]*sqlite3.Stmt
}

// Close rolls back and keeps the connection for the next writer.
func (c *connection) Close() error {
	c.session.sim.pass()
	defer c.session.sim.pass()
	if !c.raw().GetAutocommit() {
		if err := c.exec("ROLLBACK"); err != nil {
			return err
		}
	}
	c.storage.idle = append(c.storage.idle, c)
	return nil
}

func (c *connection) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s := c.prepared[query]
	if s == nil {
		var err error
		if s, err = c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query); err != nil {
			return nil, err
		}
		if len(c.prepared) < 1000 {
			c.prepared[query] = s
		} else {
			return &statement{Stmt: s, session: c.session, query: query, single: true}, nil
		}
	}
	return &statement{Stmt: s, session: c.session, query: query}, nil
}

func (c *connection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if err := c.session.access(ctx); err != nil {
		return nil, err
	}
	if options != (driver.TxOptions{}) {
		return nil, errors.ErrUnsupported
	}
	return &transaction{c, c.session}, c.exec("BEGIN IMMEDIATE")
}

// exec runs one of the few statements that begin and end transactions, without preparing it again.
func (c *connection) exec(statement string) (err error) {
	s := c.bounds[statement]
	if s == nil {
		if s, _, err = c.raw().Prepare(statement); err != nil {
			return err
		}
		c.bounds[statement] = s
	}
	return s.Exec()
}

func (c *connection) raw() *sqlite3.Conn { return c.Conn.(sqlite.Conn).Raw() }

type statement struct {
	driver.Stmt
	session *session
	query   string
	single  bool
}

func (s *statement) Close() error {
	if s.single {
		return s.Stmt.Close()
	}
	return nil
}

func (s *statement) CheckNamedValue(v *driver.NamedValue) error {
	return s.Stmt.(driver.NamedValueChecker).CheckNamedValue(v)
}

func (s *statement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	h := s.session
	h.sim.pass()
	defer h.sim.pass()
	err := h.access(ctx)
	switch {
	case err != nil:
	case h.trouble != nil:
		err = h.trouble.write(s.query, args, h.faulty(40))
	case h.refuses != 0 && strings.HasPrefix(s.query, "INSERT INTO usage ") && slices.ContainsFunc(args, func(v driver.NamedValue) bool { return v.Value == h.refuses }):
		err = errConstraint
	}
	if err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s *statement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.session.sim.pass()
	defer s.session.sim.pass()
	if s.session.dead {
		return nil, errDead
	}
	if trouble := s.session.trouble; trouble != nil {
		if err := trouble.await(ctx); err != nil {
			return nil, err
		}
	}
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

type transaction struct {
	connection *connection
	session    *session
}

// Commit may fail, or succeed and return an error.
func (t *transaction) Commit() error {
	h := t.session
	h.sim.pass()
	defer h.sim.pass()
	if h.trouble != nil {
		return t.connection.exec("COMMIT")
	}
	if err := h.access(context.Background()); err != nil {
		return errors.Join(err, t.Rollback())
	}
	if h.faulty(50) {
		h.failed++
		if h.random.IntN(2) == 0 {
			h.sim.count(commitLost)
			return errors.Join(errDatabase, t.Rollback())
		}
		h.sim.count(commitAnswerLost)
		h.sim.commits++
		err := t.connection.exec("COMMIT")
		h.dead = h.random.IntN(4) == 0
		return errors.Join(errDatabase, err)
	}
	h.sim.commits++
	return t.connection.exec("COMMIT")
}

func (t *transaction) Rollback() error { return t.connection.exec("ROLLBACK") }
