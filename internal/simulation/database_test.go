package simulation

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"
	sqlite "github.com/ncruces/go-sqlite3/driver"
	"github.com/ncruces/go-sqlite3/ext/serdes"
	"github.com/ncruces/go-sqlite3/vfs/memdb"

	"regedge/schema"
)

var errDatabase = errors.New("the database does not answer")

// storage is a database that outlives its writers.
type storage struct {
	which   schema.Database
	name    string
	keep    *sqlite3.Conn // keeps the database in memory, and reads it without faults
	queries map[string]*sqlite3.Stmt
	// idle are connections of writers that ended, with their prepared statements: preparing
	// them again would take most of a run's time.
	idle []*connection
}

var (
	lastStorage atomic.Int64
	// serialize guards the state that package serdes shares between databases.
	serialize sync.Mutex
	// reusable has the databases of runs that ended, for the same reason as idle.
	reusable = struct {
		sync.Mutex
		of map[schema.Database][]*storage
	}{of: map[schema.Database][]*storage{}}
)

// templates are migrated empty databases.
var templates = sync.OnceValues(func() (map[schema.Database][]byte, error) {
	made := map[schema.Database][]byte{}
	for _, which := range []schema.Database{schema.Ledger, schema.Access} {
		s := newStorage(which, nil)
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
	s := &storage{which: which, name: newName(), queries: map[string]*sqlite3.Stmt{}}
	memdb.Create(s.name, append([]byte(nil), content...))
	var err error
	if s.keep, err = sqlite3.Open(s.address()); err != nil {
		panic(err)
	}
	// Triggers and foreign keys would refuse what fill does.
	for _, protection := range []sqlite3.DBConfig{sqlite3.DBCONFIG_ENABLE_TRIGGER, sqlite3.DBCONFIG_ENABLE_FKEY} {
		if _, err := s.keep.Config(protection, false); err != nil {
			panic(err)
		}
	}
	return s
}

func newName() string { return fmt.Sprintf("simulation-%d", lastStorage.Add(1)) }

// fill replaces the rows of the database by those of another with the same tables.
func (s *storage) fill(content []byte) error {
	from := newName()
	memdb.Create(from, append([]byte(nil), content...))
	defer memdb.Delete(from)
	statements := []string{"ATTACH '" + address(from) + "' AS source", "BEGIN IMMEDIATE"}
	err := s.ask(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name = 'sqlite_sequence'`, func(row *sqlite3.Stmt) {
		table := row.ColumnText(0)
		statements = append(statements, "DELETE FROM main."+table, "INSERT INTO main."+table+" SELECT * FROM source."+table)
	})
	statements = append(statements, "COMMIT", "DETACH source")
	for _, statement := range statements {
		err = errors.Join(err, s.keep.Exec(statement))
	}
	return err
}

func (s *storage) address() string { return address(s.name) }

func address(name string) string { return "file:/" + name + "?vfs=memdb" }

// ask runs a query without faults, and calls read for each row.
func (s *storage) ask(query string, read func(row *sqlite3.Stmt)) error {
	asked := s.queries[query]
	if asked == nil {
		var err error
		if asked, _, err = s.keep.Prepare(query); err != nil {
			return err
		}
		s.queries[query] = asked
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

// content is the whole database file, as in a backup.
func (s *storage) content() ([]byte, error) {
	serialize.Lock()
	defer serialize.Unlock()
	return serdes.Serialize(s.keep, "main")
}

// open opens the database for one writer.
func (s *storage) open(h *session) *sql.DB {
	db := sql.OpenDB(&connector{s.connector(), s, h})
	db.SetMaxOpenConns(4)
	return db
}

// session is one writer's use of a database, with its faults.
type session struct {
	sim  *sim
	dead bool
	// failed counts the faults so far.
	failed int
	// crashIn counts down to the process's last access; 0 for none.
	crashIn int
	// quiet has no faults. So is the access database: the projector uses it beside the commit loop, and
	// faults there would make a run depend on the scheduler.
	quiet bool
}

// access counts a statement, which may fail or be the process's last.
func (h *session) access() error {
	if h.dead {
		return errDead
	}
	if h.quiet {
		return nil
	}
	if h.crashIn > 0 && !h.sim.calm {
		if h.crashIn--; h.crashIn == 0 {
			h.sim.count(writerCrashAtWrite)
			h.dead, h.failed = true, h.failed+1
			return errDead
		}
	}
	if h.sim.faulty(400) {
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
	return &connection{Conn: conn, storage: c.storage, session: c.session, prepared: map[string]driver.Stmt{}}, nil
}

// connection keeps its prepared statements.
type connection struct {
	driver.Conn
	storage  *storage
	session  *session
	prepared map[string]driver.Stmt
}

// Close rolls back and keeps the connection for the next writer.
func (c *connection) Close() error {
	raw := c.Conn.(sqlite.Conn).Raw()
	if !raw.GetAutocommit() {
		if err := raw.Exec("ROLLBACK"); err != nil {
			return errors.Join(err, c.end())
		}
	}
	c.storage.idle = append(c.storage.idle, c)
	return nil
}

// end closes the connection.
func (c *connection) end() error {
	for _, s := range c.prepared {
		s.Close()
	}
	return c.Conn.Close()
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
			return &statement{Stmt: s, session: c.session, single: true}, nil
		}
	}
	return &statement{Stmt: s, session: c.session}, nil
}

func (c *connection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if err := c.session.access(); err != nil {
		return nil, err
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return &transaction{tx, c.session}, nil
}

type statement struct {
	driver.Stmt
	session *session
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
	if err := s.session.access(); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s *statement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.session.dead {
		return nil, errDead
	}
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

type transaction struct {
	driver.Tx
	session *session
}

// Commit may fail, or succeed and return an error.
func (t *transaction) Commit() error {
	h := t.session
	if err := h.access(); err != nil {
		return errors.Join(err, t.Rollback())
	}
	if !h.quiet && h.sim.faulty(50) {
		h.failed++
		if h.sim.random.IntN(2) == 0 {
			h.sim.count(commitLost)
			return errors.Join(errDatabase, t.Rollback())
		}
		h.sim.count(commitAnswerLost)
		h.sim.changed = true
		err := t.Tx.Commit()
		h.dead = h.sim.random.IntN(4) == 0
		return errors.Join(errDatabase, err)
	}
	if !h.quiet {
		h.sim.changed = true
	}
	return t.Tx.Commit()
}
