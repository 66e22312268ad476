package edge

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/handler"
	"regedge/host/engine"
	"regedge/host/hint"
	"regedge/host/sqlite"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// Database is a database that a node reads while it serves.
type Database interface {
	engine.Database
	// Refresh notices that the database was replaced. A node calls it every second.
	Refresh() error
	Close() error
}

// maxStatements is how many statements run at once: they are bound by the processor, with
// some more for those that wait for the disk.
func maxStatements() int { return 2 * runtime.GOMAXPROCS(0) }

// readTxTime is how long a read transaction is kept open and shared by later lookups, to save
// its locks: a hundred lookups of a busy node, and far less than the 2 s within which a
// revoked key must be refused (guarantee G8).
const readTxTime = 10 * time.Millisecond

// cachesResults says whether results are cached until the database changes. Requests repeat
// their key's query of the access database, but query the registry for different things.
func cachesResults(kind schema.Database) bool { return kind == schema.Access }

// OpenFile opens a database file for lookups after it has checked the schema's version.
func OpenFile(ctx context.Context, kind schema.Database, path string) (Database, error) {
	if err := CheckFile(ctx, kind, path); err != nil {
		return nil, err
	}
	return sqlite.Open(sqlite.Config{
		Path: path, Connections: maxStatements(), ReadTx: readTxTime, CacheResults: cachesResults(kind),
	})
}

// CheckFile checks that there is a database file which OpenFile can open.
func CheckFile(ctx context.Context, kind schema.Database, path string) error {
	db, err := schema.OpenReadOnly(path)
	if errors.Is(err, fs.ErrNotExist) {
		return hint.With(err, "regedge %s makes the %s database; or try regedge dev without one, which makes its own", makes[kind], kind)
	}
	if errors.Is(err, schema.ErrNoDatabase) {
		return hint.With(err, "regedge %s makes the %s database", makes[kind], kind)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(schema.CheckReadable(ctx, db, kind), db.Close()); err != nil {
		err = fmt.Errorf("open database %s: %w", path, err)
		if errors.Is(err, schema.ErrEmpty) {
			return hint.With(err, "regedge %s fills the %s database", makes[kind], kind)
		}
		return err
	}
	return nil
}

// makes names the command that makes a database.
var makes = map[schema.Database]string{schema.Registry: "import", schema.Access: "writer"}

const (
	// idleStreams is the size of the connection pool of an endpoint: opening a connection
	// costs the server as much as a statement.
	idleStreams = 32
	// streamIdle is how long an idle connection is kept. The server drops it after some
	// seconds, and a lookup on it would fail.
	streamIdle = 2 * time.Second
)

// ReplicaConfig says how a node reads a database of a libSQL server.
type ReplicaConfig struct {
	Database schema.Database
	// Endpoint is the server, which Close closes.
	Endpoint *sql.DB
	// Dir is the directory of the sqld replica on this machine, whose file is read. Without
	// it, only the endpoint is read.
	Dir string
	// MaxAge refuses statements while the copy is older; 0 never does.
	MaxAge time.Duration
	// MaxLag fails the node's readiness while the copy is older.
	MaxLag time.Duration
	Now    func() time.Time
	Log    *slog.Logger
}

// replicaDatabase is a database of a libSQL server.
type replicaDatabase struct {
	*sqlite.Replica
	name   schema.Database
	maxLag time.Duration
}

// OpenReplica opens a database of a libSQL server for lookups.
func OpenReplica(config ReplicaConfig) (Database, error) {
	config.Endpoint.SetMaxIdleConns(idleStreams)
	config.Endpoint.SetConnMaxIdleTime(streamIdle)
	reader := sqlite.ReplicaConfig{
		Database: config.Database, Endpoint: endpoint{sqlite.NewRemote(config.Endpoint, sqlite.Config{})},
		Connections: maxStatements(), ReadTx: readTxTime, CacheResults: cachesResults(config.Database),
		MaxAge: config.MaxAge, Keep: keep(config), Now: config.Now, Log: config.Log,
	}
	if config.Dir != "" {
		reader.File = sqld.File(config.Dir)
	}
	opened, err := sqlite.OpenReplica(reader)
	if err != nil {
		return nil, err
	}
	return &replicaDatabase{opened, config.Database, config.MaxLag}, nil
}

// errNoCopy replaces sqld's long error about the statement that its primary refused.
var errNoCopy = errors.New("the replica has no copy of the database yet")

// endpoint is a libSQL server that says when it refuses the token, and when it has no copy yet.
type endpoint struct{ *sqlite.Remote }

// Query implements sqlite.Endpoint.
func (e endpoint) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	err := e.Remote.Query(ctx, statement, args, dst)
	switch explained := libsql.Explain(err); {
	case errors.Is(explained, libsql.ErrForwarded): // an edge only reads
		return errNoCopy
	case errors.Is(explained, libsql.ErrUnauthorized):
		return fmt.Errorf("%w: %w", sqlite.ErrToken, err)
	}
	return err
}

// keep is how far the replica's file may lag before the endpoint is read instead. For the registry that is
// as far as the node stays ready. For the access database, where revoked keys would go on working, it is
// only as long as a replica takes to copy it anew.
func keep(config ReplicaConfig) time.Duration {
	if config.Database == schema.Registry {
		return config.MaxLag
	}
	return sqlite.DefaultKeep
}

// Refresh implements Database. The replica logs every change of its state itself.
func (r *replicaDatabase) Refresh() error {
	_ = r.Replica.Refresh()
	return nil
}

// replicas lists the databases of a node that are replicas.
func (n *Node) replicas() (list []*replicaDatabase) {
	for _, database := range []Database{n.config.Registry, n.config.Access} {
		if r, ok := database.(*replicaDatabase); ok {
			list = append(list, r)
		}
	}
	return list
}

// replicasReady is nil when every replica can be read and is younger than its maximal lag.
func (n *Node) replicasReady() error {
	for _, r := range n.replicas() {
		if err := r.Ready(r.maxLag); err != nil {
			return fmt.Errorf("%s replica: %w", r.name, err)
		}
	}
	return nil
}

// remark names the replicas whose endpoint refuses the token, while their files are read.
func (n *Node) remark() string {
	var refused []string
	for _, r := range n.replicas() {
		if r.Refused() {
			refused = append(refused, fmt.Sprintf("%s replica: %v, so there is no fallback for its file", r.name, sqlite.ErrToken))
		}
	}
	return strings.Join(refused, "; ")
}

// registerReplicas registers the metrics of the replicas: their age, and how they are read.
func (n *Node) registerReplicas() error {
	for _, r := range n.replicas() {
		labels := prometheus.Labels{"database": string(r.name)}
		for _, collector := range []prometheus.Collector{
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "regedge_replica_age_seconds", ConstLabels: labels,
				Help: "Time since the newest heartbeat in this replica; -1 while there is none, or one ahead of the clock.",
			}, func() float64 {
				if age, known := r.Age(); known {
					return age.Seconds()
				}
				return -1
			}),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "regedge_replica_heartbeat_ahead", ConstLabels: labels,
				Help: "1 while the heartbeat in this replica is over 5 s ahead of this edge's clock, so that its age is unknown.",
			}, func() float64 { return boolToFloat(r.Ahead()) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "regedge_replica_fallback", ConstLabels: labels,
				Help: "1 while the replica's endpoint is read in place of its file.",
			}, func() float64 { return boolToFloat(r.Remote()) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "regedge_replica_switches_total", ConstLabels: labels,
				Help: "Changes between file and endpoint, or to another file.",
			}, func() float64 { return float64(r.Switches()) }),
		} {
			if err := n.config.Metrics.Register(collector); err != nil {
				return err
			}
		}
	}
	return nil
}

func boolToFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
