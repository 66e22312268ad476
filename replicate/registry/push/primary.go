package push

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"regedge/replicate/registry/libsql"
)

const (
	// attempts bounds the attempts at a transaction while the primary is unreachable, with pauses that
	// double from firstPause: half a minute in all.
	attempts   = 8
	firstPause = 250 * time.Millisecond
	// callLimit is the timeout of one call.
	callLimit = time.Minute
)

// claim fails, by a CHECK of the table, if another push has taken over or the transaction was committed before. Its
// whole transaction then fails.
const claim = `UPDATE pushing SET claimed = iif(batch < ?2, ?1, ''), batch = ?2, dirty = 1 WHERE id = 1`

// commit runs one transaction of the push exactly once: before a retry, committed finds out whether only the answer was
// lost. An attempt that was given up may still arrive; claim then refuses the later one of the two.
func (p *pusher) commit(ctx context.Context, list []libsql.Statement) error {
	p.sequence++
	list = append([]libsql.Statement{{SQL: claim, Args: []any{p.token, p.sequence}}}, list...)
	tried := false
	err := p.call(ctx, func(ctx context.Context) error {
		if tried {
			if done, err := p.committed(ctx); err != nil || done {
				return err
			}
		}
		tried = true
		return p.there.commit(ctx, list)
	})
	if errors.Is(err, libsql.ErrRefused) {
		done := false // the primary may be unreachable since; asking it is retried like the transaction itself
		lost := p.call(ctx, func(ctx context.Context) (err error) {
			done, err = p.committed(ctx)
			return err
		})
		if errors.Is(lost, ErrTakenOver) || done && lost == nil {
			return lost
		}
	}
	if err != nil {
		return fmt.Errorf("write transaction %d: %w", p.sequence, err)
	}
	return nil
}

// committed reports whether the last transaction was committed.
func (p *pusher) committed(ctx context.Context) (bool, error) {
	var token string
	var batch int64
	err := p.config.Primary.QueryRowContext(ctx, `SELECT token, batch FROM pushing`).Scan(&token, &batch)
	if errors.Is(err, sql.ErrNoRows) || err == nil && token != p.token {
		return false, ErrTakenOver
	}
	return batch == p.sequence, libsql.Explain(err)
}

// call retries try with pauses while the primary is unreachable. After ErrRefused, ErrUnauthorized and
// ErrTakenOver it does not retry.
func (p *pusher) call(ctx context.Context, try func(context.Context) error) (err error) {
	wait := firstPause
	for attempt := range attempts {
		limited, cancel := context.WithTimeout(ctx, callLimit)
		err = try(limited)
		cancel()
		if err == nil || ctx.Err() != nil || errors.Is(err, libsql.ErrRefused) ||
			errors.Is(err, libsql.ErrUnauthorized) || errors.Is(err, ErrTakenOver) {
			return err
		}
		if attempt < attempts-1 {
			if p.config.Failed != nil {
				p.config.Failed(err, attempt+1, attempts, wait)
			}
			p.config.Pause(ctx, wait)
			wait *= 2
		}
	}
	return err
}

// side is one of the two databases that a push compares: the snapshot or the primary. Without a
// database, every query returns an empty text.
type side struct {
	db             *sql.DB
	sent, received int64 // bytes of statements with their parameters, and of results
}

// text runs a query that returns one text.
func (s *side) text(ctx context.Context, query string, args ...any) (text string, err error) {
	if s.db == nil {
		return "", nil
	}
	s.sent += size(libsql.Statement{SQL: query, Args: args})
	err = s.db.QueryRowContext(ctx, query, args...).Scan(&text)
	s.received += int64(len(text))
	return text, libsql.Explain(err)
}

// commit runs statements as one transaction.
func (s *side) commit(ctx context.Context, list []libsql.Statement) error {
	for _, statement := range list {
		s.sent += size(statement)
	}
	return libsql.Commit(ctx, s.db, list)
}

// size is how many bytes a statement has with its texts.
func size(s libsql.Statement) int64 {
	n := len(s.SQL)
	for _, arg := range s.Args {
		if text, ok := arg.(string); ok {
			n += len(text)
		}
	}
	return int64(n)
}
