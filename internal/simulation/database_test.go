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
	which schema.Database
	name  string
	keep  *sqlite3.Conn // keeps it in memory, and reads it past all faults
	asks  map[string]*sqlite3.Stmt
	// idle are connections of writers that ended, with their prepared statements: what a
	// new one prepares is most of the time of a run.
	idle []*connection
}

var (
	storages atomic.Int64
	// serializing guards what serdes has one of for all databases.
	serializing sync.Mutex
	// shelf has the databases of runs that ended, for the same reason.
	shelf = struct {
		sync.Mutex
		of map[schema.Database][]*storage
	}{of: map[schema.Database][]*storage{}}
)

// templates are databases that were migrated once.
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

// takeStorage is a database with content, in memory.
func takeStorage(which schema.Database, content []byte) *storage {
	shelf.Lock()
	list := shelf.of[which]
	if len(list) == 0 {
		shelf.Unlock()
		return newStorage(which, content)
	}
	s := list[len(list)-1]
	shelf.of[which] = list[:len(list)-1]
	shelf.Unlock()
	if err := s.fill(content); err != nil {
		panic(err)
	}
	return s
}

// newStorage makes a database in memory, with content or empty.
func newStorage(which schema.Database, content []byte) *storage {
	s := &storage{which: which, name: newName(), asks: map[string]*sqlite3.Stmt{}}
	memdb.Create(s.name, append([]byte(nil), content...))
	var err error
	if s.keep, err = sqlite3.Open(s.address()); err != nil {
		panic(err)
	}
	// What protects rows would keep them from fill, too.
	for _, protection := range []sqlite3.DBConfig{sqlite3.DBCONFIG_ENABLE_TRIGGER, sqlite3.DBCONFIG_ENABLE_FKEY} {
		if _, err := s.keep.Config(protection, false); err != nil {
			panic(err)
		}
	}
	return s
}

func newName() string { return fmt.Sprintf("simulation-%d", storages.Add(1)) }

// fill gives the database the rows of another with the same tables.
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

// ask runs a query past all faults, and calls read for each row.
func (s *storage) ask(query string, read func(row *sqlite3.Stmt)) error {
	asked := s.asks[query]
	if asked == nil {
		var err error
		if asked, _, err = s.keep.Prepare(query); err != nil {
			return err
		}
		s.asks[query] = asked
	}
	for asked.Step() {
		read(asked)
	}
	return asked.Reset()
}

// close puts the database away for the next run.
func (s *storage) close() {
	shelf.Lock()
	defer shelf.Unlock()
	shelf.of[s.which] = append(shelf.of[s.which], s)
}

// content is the whole database, as a backup has it.
func (s *storage) content() ([]byte, error) {
	serializing.Lock()
	defer serializing.Unlock()
	return serdes.Serialize(s.keep, "main")
}

// open is the database in the hands of one writer.
func (s *storage) open(h *hands) *sql.DB {
	db := sql.OpenDB(&connector{s.connector(), s, h})
	db.SetMaxOpenConns(4)
	return db
}

// hands is one writer's hold on its database, with the faults that it has.
type hands struct {
	world *world
	dead  bool
	// failed counts the faults that this writer met.
	failed int
	// crashIn counts down the accesses to the last one of the process.
	crashIn int
}

// access is one statement that may be the last one.
func (h *hands) access() error {
	if h.dead {
		return errDead
	}
	if h.crashIn > 0 && !h.world.calm {
		if h.crashIn--; h.crashIn == 0 {
			h.world.count(writerCrashAtWrite)
			h.dead, h.failed = true, h.failed+1
			return errDead
		}
	}
	if h.world.faulty(400) {
		h.world.count(statementFails)
		h.failed++
		return errDatabase
	}
	return nil
}

type connector struct {
	driver.Connector
	storage *storage
	hands   *hands
}

func (s *storage) connector() driver.Connector {
	c, err := (&sqlite.SQLite{}).OpenConnector(s.address() + "&_txlock=immediate")
	if err != nil {
		panic(err)
	}
	return c
}

// Driver is SQLite's in every other run; else it is not, so that the writer takes the
// database for a server's.
func (c *connector) Driver() driver.Driver {
	if c.hands.world.file {
		return c.Connector.Driver()
	}
	return remote{}
}

type remote struct{}

func (remote) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.hands.dead {
		return nil, errDead
	}
	if n := len(c.storage.idle); n > 0 {
		again := c.storage.idle[n-1]
		c.storage.idle = c.storage.idle[:n-1]
		again.hands = c.hands
		return again, nil
	}
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, storage: c.storage, hands: c.hands, prepared: map[string]driver.Stmt{}}, nil
}

// connection keeps its prepared statements.
type connection struct {
	driver.Conn
	storage  *storage
	hands    *hands
	prepared map[string]driver.Stmt
}

// Close ends a writer's use of the connection: what it did not commit did not happen.
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

// end closes the connection for good.
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
			return &statement{Stmt: s, hands: c.hands, single: true}, nil
		}
	}
	return &statement{Stmt: s, hands: c.hands}, nil
}

func (c *connection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if err := c.hands.access(); err != nil {
		return nil, err
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return &transaction{tx, c.hands}, nil
}

type statement struct {
	driver.Stmt
	hands  *hands
	single bool
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
	if err := s.hands.access(); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s *statement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.hands.dead {
		return nil, errDead
	}
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

type transaction struct {
	driver.Tx
	hands *hands
}

// Commit may fail, or succeed without saying so.
func (t *transaction) Commit() error {
	h := t.hands
	if err := h.access(); err != nil {
		return errors.Join(err, t.Rollback())
	}
	if h.world.faulty(50) {
		h.failed++
		if h.world.random.IntN(2) == 0 {
			h.world.count(commitLost)
			return errors.Join(errDatabase, t.Rollback())
		}
		h.world.count(commitAnswerLost)
		h.world.changed = true
		err := t.Tx.Commit()
		h.dead = h.world.random.IntN(4) == 0
		return errors.Join(errDatabase, err)
	}
	h.world.changed = true
	return t.Tx.Commit()
}
