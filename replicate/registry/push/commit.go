package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regedge/replicate/registry/libsql"
)

const (
	// attempts is how often a transaction is tried while the primary can't be reached, with
	// pauses that double from firstPause: about half a minute.
	attempts   = 8
	firstPause = 250 * time.Millisecond
	// callLimit bounds one call.
	callLimit = time.Minute
)

// claim fails the transaction when the push is no longer ours.
const claim = `UPDATE pushing SET claimed = ?1, batch = ?2 WHERE id = 1`

// commit runs one transaction of the push, once, however often it has to be tried.
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
		return p.config.Primary.Commit(ctx, list)
	})
	var refused *libsql.Error
	if errors.As(err, &refused) {
		if _, lost := p.committed(ctx); errors.Is(lost, ErrTakenOver) {
			return lost
		}
	}
	if err != nil {
		return fmt.Errorf("write transaction %d: %w", p.sequence, err)
	}
	return nil
}

// committed reports whether the last transaction is in the database.
func (p *pusher) committed(ctx context.Context) (bool, error) {
	result, err := p.config.Primary.Query(ctx, `SELECT token, batch FROM pushing`)
	if err != nil {
		return false, err
	}
	if len(result.Rows) != 1 || result.Text(0, 0) != p.token {
		return false, ErrTakenOver
	}
	return result.Int(0, 1) == p.sequence, nil
}

// call tries something again while the primary can't be reached. What the database or
// the token refuses is not tried again.
func (p *pusher) call(ctx context.Context, try func(context.Context) error) (err error) {
	wait := firstPause
	for attempt := range attempts {
		limited, cancel := context.WithTimeout(ctx, callLimit)
		err = try(limited)
		cancel()
		var refused *libsql.Error
		if err == nil || ctx.Err() != nil || errors.As(err, &refused) && !refused.Busy() ||
			errors.Is(err, libsql.ErrUnauthorized) || errors.Is(err, ErrTakenOver) {
			return err
		}
		if attempt < attempts-1 {
			p.config.Pause(ctx, wait)
			wait *= 2
		}
	}
	return err
}
