package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"regedge/handler"
	"regedge/schema"
)

// Beside reads a registry's file on behalf of clients of the libSQL replica that keeps it. The replica's own
// endpoint shows each transaction of a push as it comes. Beside answers only while a push is under way and
// it holds the release before it. It is safe for concurrent use.
type Beside struct {
	replica *Replica
	other   bool // the file is no registry, and so never pushed to; used by Refresh
}

// besideTx is how long a transaction lasts while no push is under way. Only a hold needs one.
const besideTx = time.Millisecond

// OpenBeside prepares to read a file, which may not exist yet.
func OpenBeside(file string) *Beside {
	r := &Replica{config: ReplicaConfig{
		Database: schema.Registry, File: file, Connections: DefaultConnections, ReadTx: besideTx, Keep: DefaultKeep,
		Now: time.Now, Log: slog.New(slog.DiscardHandler), // an edge logs the same
	}}
	r.view.Store(&view{remote: true, why: errStarting, endpoint: errStarting})
	return &Beside{replica: r}
}

// Refresh checks whether a push is under way. Call it every second, from one goroutine.
func (b *Beside) Refresh() {
	var other *schema.OtherError
	if !b.other && errors.As(b.replica.Refresh(), &other) {
		b.other = true
	}
}

// Read runs one statement with the parameters ?1, ?2, …, and returns its column names and the values row by
// row: nil, int64, string or []byte, like the parameters. It reports false while no release is held, and for
// a statement that fails.
func (b *Beside) Read(ctx context.Context, statement string, args []any) (columns []string, values []any, ok bool) {
	v := b.replica.view.Load()
	if v.file == nil || v.remote || v.unreleased || !v.file.held.Load() {
		return nil, nil, false
	}
	parameters := make([]handler.Value, len(args))
	for i, arg := range args {
		var err error
		if parameters[i], err = fromDriver(arg); err != nil {
			return nil, nil, false
		}
	}
	var result handler.Result
	columns, err := v.file.queryNamed(ctx, statement, parameters, &result)
	if err != nil {
		return nil, nil, false
	}
	for _, value := range result.Values {
		values = append(values, toDriver(value))
	}
	return columns, values, true
}

// Close ends all reading.
func (b *Beside) Close() error { return b.replica.Close() }
