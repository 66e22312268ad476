package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"regedge/host/hint"
	"regedge/replicate/metering/writer"
)

// removing are the flags of a change that needs a confirmation, since it takes something away.
type removing struct {
	changing
	Yes bool `env:"-" help:"Do not ask. Needed where there is no terminal to ask at."`
}

// replacing are the flags of a change that asks for confirmation only at a terminal. Elsewhere it is made at once:
// scripts ran it before there was a question.
type replacing struct {
	changing
	Yes bool `env:"-" help:"Do not ask at a terminal."`
}

// confirm asks as removing does, but only at a terminal.
func (c *replacing) confirm(ctx context.Context, m *Main, question func(context.Context, *writer.Client) (string, error)) error {
	if !m.asksAtTerminal() {
		return nil
	}
	asks := removing{c.changing, c.Yes}
	return asks.confirm(ctx, m, question)
}

// confirm asks for confirmation at a terminal. question reads from the writer what the change will do; it fails if the
// change cannot be made because its object is unknown or gone (errGone). But a command that is run again under its
// --idempotency-key then goes on: its first run may have removed the object, and the writer repeats that answer. An
// empty question means that nothing is taken away.
func (c *removing) confirm(ctx context.Context, m *Main, question func(context.Context, *writer.Client) (string, error)) error {
	if c.IdempotencyKey != "" && c.Yes {
		return nil
	}
	client, err := c.client(m)
	if err != nil {
		return err
	}
	asked, err := question(ctx, client)
	switch {
	case c.IdempotencyKey != "" && errors.Is(err, errGone):
		return nil
	case err != nil:
		return c.explain(err)
	case asked == "":
		return nil
	}
	return m.confirm(ctx, c.Yes, asked)
}

// confirm asks at a terminal, unless yes is set, and returns an error unless the answer is yes.
func (m *Main) confirm(ctx context.Context, yes bool, asked string) error {
	switch {
	case yes:
		return nil
	case !m.asksAtTerminal():
		return hint.With(errors.New("nothing was changed, since there is no terminal to ask at: "+asked), "give --yes if it is meant")
	}
	typed, err := m.ask(ctx, asked+" Type yes: ")
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if !strings.EqualFold(typed, "yes") {
		return errors.New("nothing was changed")
	}
	return nil
}

// errGone means that what the change is about is gone already.
var errGone = errors.New("it is gone already")

// gone makes an error match errGone and keeps its text.
type gone struct{ error }

func (gone) Is(target error) bool { return target == errGone }

func (g gone) Unwrap() error { return g.error }

// revokeQuestion says what revoking a key does.
func revokeQuestion(id int64) func(context.Context, *writer.Client) (string, error) {
	return func(ctx context.Context, w *writer.Client) (string, error) {
		k, err := w.Key(ctx, id)
		if err != nil {
			return "", err
		}
		if k.Revoked != nil {
			return "", gone{fmt.Errorf("key %d was revoked on %s", id, day(*k.Revoked))}
		}
		a, err := w.Account(ctx, k.Account)
		does, keeps := "Calls with it get 401 within seconds", a.Keys-1
		if k.Expired { // an expired key does not count as active
			does, keeps = "It has expired", a.Keys
		}
		return fmt.Sprintf("Revoke key %d%s of account %d (%s) for ever? %s; the account keeps %s.",
			id, named(k.Name), a.ID, shown(a.Name), does, count(int64(keeps), "active key")), err
	}
}

// suspendQuestion says what suspending an account does.
func suspendQuestion(id int64) func(context.Context, *writer.Client) (string, error) {
	return func(ctx context.Context, w *writer.Client) (string, error) {
		a, err := w.Account(ctx, id)
		return fmt.Sprintf("Suspend account %d (%s)? Calls with its %s get 403 within seconds; its %s stay.",
			id, shown(a.Name), count(int64(a.Keys), "active key"), count(a.Balance, "credit")), err
	}
}

// takeQuestion says how many credits would be taken, and how many would be left.
func takeQuestion(id, amount int64, atMost bool) func(context.Context, *writer.Client) (string, error) {
	return func(ctx context.Context, w *writer.Client) (string, error) {
		a, err := w.Account(ctx, id)
		has := a.Balance - a.Deducting
		taken := min(amount, has)
		if err == nil && taken < amount && !atMost {
			return "", gone{fmt.Errorf("%w: account %d has %d, which is less than %d", writer.ErrBeyondBalance, id, has, amount)}
		}
		if taken <= 0 {
			return "", err // nothing is taken
		}
		return fmt.Sprintf("Take %s from account %d (%s)? It has %d, and keeps %d.",
			count(taken, "credit"), id, shown(a.Name), has, has-taken), err
	}
}

// retireQuestion says what retiring a node, or its old epochs, writes off.
func retireQuestion(name string, oldEpochs bool) func(context.Context, *writer.Client) (string, error) {
	return func(ctx context.Context, w *writer.Client) (string, error) {
		n, err := findNode(ctx, w, name)
		if err != nil {
			return "", err
		}
		switch {
		case n.Retired && !oldEpochs:
			return "", gone{fmt.Errorf("node %s is retired already", name)}
		case oldEpochs:
			return fmt.Sprintf("Write off %s that node %s holds under its earlier epochs? The service compensates them.", count(n.Stale, "credit"), name), nil
		}
		return fmt.Sprintf("Retire node %s for ever? It is %s (last seen: %s), and answers no live key afterwards. The service compensates the %s that it holds.",
			name, nodeState(n), seen(n), count(n.Leased, "credit")), nil
	}
}

// tokenQuestion says what replacing the token of a node does. It asks nothing about a token that was never used.
func tokenQuestion(name string) func(context.Context, *writer.Client) (string, error) {
	return func(ctx context.Context, w *writer.Client) (string, error) {
		n, err := findNode(ctx, w, name)
		if err != nil || n.Retired || n.Epoch == 0 && n.Seen.IsZero() {
			return "", err // the writer refuses a retired node
		}
		return fmt.Sprintf("Replace the token of node %s? It is %s (last seen: %s). The writer refuses the old token at once: until its edge has the new one, it serves on what it was leased, and then answers no live key.",
			name, nodeState(n), seen(n)), nil
	}
}

// endQuestion says what ending an operators' token does.
func endQuestion(name string) func(context.Context, *writer.Client) (string, error) {
	return func(ctx context.Context, w *writer.Client) (string, error) {
		tokens, err := w.Tokens(ctx)
		if err != nil {
			return "", err
		}
		at := slices.IndexFunc(tokens, func(t writer.OperatorToken) bool { return t.Name == name && !t.Ended })
		if at < 0 {
			return "", nil // it has ended, or the writer says that there is none
		}
		return fmt.Sprintf("End the token %s (%s) for ever? Who uses it gets 401 at once.", name, tokens[at].Role), nil
	}
}

func findNode(ctx context.Context, w *writer.Client, name string) (writer.Node, error) {
	nodes, err := w.Nodes(ctx)
	if err != nil {
		return writer.Node{}, err
	}
	at := slices.IndexFunc(nodes, func(n writer.Node) bool { return n.Name == name })
	if at < 0 {
		return writer.Node{}, unknown(fmt.Errorf("there is no node %s", shown(name)))
	}
	return nodes[at], nil
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return " (" + shown(name) + ")"
}

// count writes a number and what is counted.
func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}
