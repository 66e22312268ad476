package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"
)

const (
	// heartbeatInterval is how often the centre writes into each database that is
	// replicated. Each time costs a page of the replication log.
	heartbeatInterval = time.Second
	// heartbeatLimit bounds one heartbeat.
	heartbeatLimit = 5 * time.Second
)

// beating are the flags of the writer for the database that it does not own.
type beating struct {
	Registry          string `placeholder:"URL" help:"The registry's primary, to write a heartbeat there, by which edges tell how old their copy is, and to show its releases."`
	RegistryToken     string `placeholder:"TOKEN" help:"Token of the registry's primary, that may write."`
	RegistryTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the token of the registry; it wins over the token itself."`
}

// check refuses a file, which has no replicas.
func (f *beating) check() error {
	if f.Registry != "" && !isRemote(f.Registry) {
		return errors.New("--registry is the URL of the primary here: a file needs no heartbeat")
	}
	return nil
}

// beats are the heartbeats of the databases that are replicated. A file has no replica.
func (f *beating) beats(access *accessFlags, db *sql.DB, m *Main, log *slog.Logger, closers *closing) (list []service, err error) {
	if isRemote(access.Access) {
		list = append(list, heartbeat("access", db, m.Now, log))
	}
	if f.Registry == "" {
		return list, nil
	}
	token, err := fileToken(f.RegistryToken, f.RegistryTokenFile)
	if err != nil {
		return nil, err
	}
	registry, err := openRemote(f.Registry, token)
	if err != nil {
		return nil, err
	}
	closers.add(registry.Close)
	return append(list, heartbeat("registry", registry, m.Now, log)), nil
}

// putHeartbeat never goes back, whatever the clock does.
const putHeartbeat = `INSERT INTO heartbeat (id, beat) VALUES (1, ?)
ON CONFLICT (id) DO UPDATE SET beat = max(beat + 1, excluded.beat)`

// heartbeat is the service that lets the readers of a database's replicas know how old
// their copy is.
func heartbeat(name string, db *sql.DB, now func() time.Time, log *slog.Logger) service {
	return service{name + " heartbeat", func(ctx context.Context) error {
		tick := time.NewTicker(heartbeatInterval)
		defer tick.Stop()
		failing := false
		for {
			limited, cancel := context.WithTimeout(ctx, heartbeatLimit)
			_, err := db.ExecContext(limited, putHeartbeat, now().UnixMilli())
			cancel()
			if ctx.Err() != nil {
				return nil
			}
			if err != nil && !failing {
				log.Error("heartbeat", "database", name, "error", err)
			} else if err == nil && failing {
				log.Info("heartbeat again", "database", name)
			}
			failing = err != nil
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}}
}
