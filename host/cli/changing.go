package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"regedge/host/hint"
	"regedge/replicate/metering/writer"
)

// retryFor is how long a change is repeated while it is uncertain whether it was made.
const retryFor = 30 * time.Second

// changing are the flags of the commands that change something through the writer's API.
type changing struct {
	operator
	IdempotencyKey string `env:"-" placeholder:"KEY" help:"Name of this change, 16 to 128 characters, to run the command again: under one name the writer makes it once and gives the same answer for 7 days. By default each run is a new change."`
	again          string // flags to add when the command is run again
}

// change makes one change through the writer's API and prints the result, as show does. It retries the
// call, with one idempotency key, until an answer says whether the change was made. look is the command
// that shows the result, for the hint when it stays uncertain.
func change[T any](ctx context.Context, m *Main, c *changing, look string,
	call func(context.Context, *writer.Client) (T, error), text func(*tabwriter.Writer, T)) error {
	key := c.IdempotencyKey
	if key == "" {
		key = writer.NewIdempotencyKey()
	}
	ctx = writer.WithIdempotencyKey(ctx, key)
	made := false
	err := show(m, &c.operator, func(w *writer.Client) (T, error) {
		answer, err := call(ctx, retrying(m, w))
		made = err == nil
		return answer, err
	}, text)
	if made && err != nil { // on a full disk, say
		return hint.With(fmt.Errorf("the change was made, but what came of it can't be printed: %w", err),
			"to see it without another change, run the command again with --idempotency-key %s%s", key, c.again)
	}
	if errors.Is(err, writer.ErrUncertain) {
		return hint.With(err, "regedge %s shows whether it was made; to make it once whatever happened, run the command again with --idempotency-key %s%s", look, key, c.again)
	}
	return err
}

// retrying returns a client that repeats a change while it is uncertain whether it was made, and says so.
func retrying(m *Main, w *writer.Client) *writer.Client {
	return w.Retrying(retryFor, func(err error, pause time.Duration) {
		fmt.Fprintf(m.Stderr, "regedge: %s; trying again in %v, which makes the change once at most\n", shownLines(err.Error()), pause)
	})
}
