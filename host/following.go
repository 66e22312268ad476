package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/host/replica"
	"regedge/host/sqlite"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

const (
	// idleStreams is how many connections to an endpoint are kept for the next lookups: to
	// begin one costs the server as much as a statement.
	idleStreams = 32
	// streamIdle is how long one is kept unused. The server forgets it after some seconds,
	// and a lookup on it would fail.
	streamIdle = 2 * time.Second
)

// following are the flags of an edge whose databases are libSQL replicas.
type following struct {
	RegistryReplica string        `type:"path" placeholder:"DIR" help:"With a URL as --registry: the directory of that sqld replica on this machine, whose file is then read."`
	AccessReplica   string        `type:"path" placeholder:"DIR" help:"With a URL as --access: the directory of that sqld replica on this machine, whose file is then read."`
	AccessMaxAge    time.Duration `default:"10m" help:"Live keys get 503 while the access replica is older (${default})."`
	MaxLag          time.Duration `default:"10m" help:"This node is not ready while a replica is older (${default})."`
}

// check finds a replica without the URL that keeps it awake.
func (f *following) check(registry, access string) error {
	if f.RegistryReplica != "" && !isRemote(registry) {
		return errors.New("--registry-replica needs the URL of that replica as --registry")
	}
	if f.AccessReplica != "" && !isRemote(access) {
		return errors.New("--access-replica needs the URL of that replica as --access")
	}
	if f.AccessMaxAge <= 0 || f.MaxLag <= 0 {
		return errors.New("--access-max-age and --max-lag are more than nothing")
	}
	return nil
}

// followed is a database of a libSQL server that is read as it changes.
type followed struct {
	*replica.Replica
	name   schema.Database
	maxLag time.Duration
}

// Refresh looks at the replica, which logs what changes by itself.
func (f *followed) Refresh() error {
	_ = f.Replica.Refresh()
	return nil
}

// follow opens a database of a libSQL server for lookups. dir is that of a replica on
// this machine, or empty.
func follow(kind schema.Database, address, token, dir string, maxAge, maxLag time.Duration, now func() time.Time, log *slog.Logger) (*followed, error) {
	db, err := openRemote(address, token)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(idleStreams)
	db.SetConnMaxIdleTime(streamIdle)
	config := replica.Config{
		Database: kind, Endpoint: sqlite.NewRemote(db, sqlite.Config{}), Connections: connections(), Hold: holdReads,
		Remember: remembers(kind),
		MaxAge:   maxAge, Now: now, Log: log,
	}
	if dir != "" {
		config.File = sqld.File(dir)
	}
	opened, err := replica.Open(config)
	if err != nil {
		return nil, err
	}
	return &followed{opened, kind, maxLag}, nil
}

// open opens the registry of an edge.
func (f *following) openRegistry(ctx context.Context, m *Main, flags *registryFlags, log *slog.Logger) (reading, error) {
	if !isRemote(flags.Registry) {
		return flags.open(ctx)
	}
	token, err := fileToken(flags.RegistryToken, flags.RegistryTokenFile)
	if err != nil {
		return nil, err
	}
	return follow(schema.Registry, flags.Registry, token, f.RegistryReplica, 0, f.MaxLag, m.Now, log)
}

func (f *following) openAccess(ctx context.Context, m *Main, flags *accessFlags, log *slog.Logger) (reading, error) {
	if !isRemote(flags.Access) {
		return flags.open(ctx)
	}
	token, err := fileToken(flags.AccessToken, flags.AccessTokenFile)
	if err != nil {
		return nil, err
	}
	return follow(schema.Access, flags.Access, token, f.AccessReplica, f.AccessMaxAge, f.MaxLag, m.Now, log)
}

// follows lists the databases of a node that are replicas.
func (l *lookups) follows() (list []*followed) {
	for _, database := range []reading{l.registry, l.access} {
		if f, ok := database.(*followed); ok {
			list = append(list, f)
		}
	}
	return list
}

// following is nil when every replica is well and new enough.
func (l *lookups) following() error {
	for _, f := range l.follows() {
		if err := f.Ready(f.maxLag); err != nil {
			return fmt.Errorf("%s replica: %w", f.name, err)
		}
	}
	return nil
}

// registerReplicas registers how old the replicas are, and how they are read.
func (l *lookups) registerReplicas() error {
	for _, f := range l.follows() {
		labels := prometheus.Labels{"database": string(f.name)}
		for _, collector := range []prometheus.Collector{
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "regedge_replica_age_seconds", ConstLabels: labels,
				Help: "Time since the heartbeat that this replica has; -1 while there is none.",
			}, func() float64 {
				if age, known := f.Age(); known {
					return age.Seconds()
				}
				return -1
			}),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "regedge_replica_fallback", ConstLabels: labels,
				Help: "1 while the replica's endpoint is read in place of its file.",
			}, func() float64 {
				if f.Remote() {
					return 1
				}
				return 0
			}),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "regedge_replica_switches_total", ConstLabels: labels,
				Help: "Changes between file and endpoint, or to another file.",
			}, func() float64 { return float64(f.Switches()) }),
		} {
			if err := l.metrics.Register(collector); err != nil {
				return err
			}
		}
	}
	return nil
}
