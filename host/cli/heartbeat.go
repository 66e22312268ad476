package cli

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"time"

	"regedge/host/service"
	"regedge/replicate/registry/libsql"
)

const (
	// heartbeatInterval is how often the writer writes into each replicated database. Each
	// heartbeat costs a page of the replication log.
	heartbeatInterval = time.Second
	// heartbeatTimeout bounds one heartbeat.
	heartbeatTimeout = 5 * time.Second
	// lockedPatience is how long a heartbeat may find the database locked until that is an error: a
	// push holds the lock for as long as one of its transactions takes, and sqld ends those of 5 s.
	lockedPatience = 15 * time.Second
)

// putHeartbeat never goes back, whatever the clock does.
const putHeartbeat = `INSERT INTO heartbeat (id, beat) VALUES (1, ?)
ON CONFLICT (id) DO UPDATE SET beat = max(beat + 1, excluded.beat)`

// heartbeat is the service that writes the time into a database, so that readers of its
// replicas know how old their copy is.
func heartbeat(name string, db *sql.DB, now func() time.Time, log *slog.Logger) service.Service {
	return service.Service{Name: name + " heartbeat", Run: func(ctx context.Context) error {
		tick := time.NewTicker(heartbeatInterval)
		defer tick.Stop()
		noted := heartbeatLog{log: log.With("database", name)}
		for {
			limited, cancel := context.WithTimeout(ctx, heartbeatTimeout)
			_, err := db.ExecContext(limited, putHeartbeat, now().UnixMilli())
			cancel()
			if ctx.Err() != nil {
				return nil
			}
			noted.note(err, time.Now())
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}}
}

// heartbeatLog logs when heartbeats begin to fail and when they no longer do. A registry that nothing
// was pushed to yet, and a lock that a push holds for a moment, are no errors.
type heartbeatLog struct {
	log         *slog.Logger
	said        bool      // that they fail, or wait for the tables
	beaten      bool      // a heartbeat was written before
	lockedSince time.Time // zero while it is not locked
}

func (h *heartbeatLog) note(err error, at time.Time) {
	if err == nil {
		if h.said {
			h.log.Info("heartbeats are written")
		}
		*h = heartbeatLog{log: h.log, beaten: true}
		return
	}
	locked := strings.Contains(err.Error(), "database is locked")
	switch {
	case !locked:
		h.lockedSince = time.Time{}
	case h.lockedSince.IsZero():
		h.lockedSince = at
	}
	switch {
	case h.said || locked && at.Sub(h.lockedSince) < lockedPatience:
		return
	case strings.Contains(err.Error(), "no such table: heartbeat") && !h.beaten:
		h.log.Info("no heartbeat yet: the database is empty")
	case errors.Is(libsql.Explain(err), libsql.ErrUnauthorized):
		h.log.Error("the primary refuses the writer's token: no heartbeat", "error", err)
	default:
		h.log.Error("no heartbeat", "error", err)
	}
	h.said = true
}
