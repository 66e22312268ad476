package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/ledger"
	"regedge/replicate/metering/syncproto"
)

// SyncPath is where edges sync.
const SyncPath = "/v1/sync"

const (
	// maxHold bounds how long a message is held open, whatever the edge asks for.
	maxHold = 30 * time.Second
	// syncLimit bounds the commit of a message that is answered at once.
	syncLimit = 10 * time.Second
	// changeLimit bounds the commit of an operator's or owner's call. It is less than their client waits, so that
	// the writer itself says why there is no answer.
	changeLimit = 8 * time.Second
)

// serveSync answers one message of an edge.
func (w *Writer) serveSync(rw http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	name, ok := w.edgeOf(r)
	if !ok {
		w.fail(rw, r, ErrUnauthorized)
		return
	}
	if w.offenders.fenced(name) {
		w.fail(rw, r, ErrNodeFenced)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, syncproto.MaxMessage+1))
	if err != nil {
		return // the edge went away
	}
	message, err := syncproto.DecodeMessage(body)
	if errors.Is(err, syncproto.ErrVersion) {
		w.fail(rw, r, fmt.Errorf("%w: %w", ErrVersion, err))
		return
	}
	if err != nil {
		//mutant:nonsense-not-fenced
		w.offenders.note(name, err)
		w.fail(rw, r, ErrMalformed)
		return
	}
	if !w.isRetired(name) {
		w.clocks.note(name, message)
	}
	r, span := w.traceSync(r, name, message)
	reply, err := w.exchange(r.Context(), name, message)
	endSync(span, err)
	if err != nil {
		w.fail(rw, r, err)
		return
	}
	w.refusals.end(func(count int) { w.config.Logger.Info("messages of edges are taken again", "refused", count) })
	reply.Answers = message.Number
	rw.Header().Set("Content-Type", "application/octet-stream")
	rw.Write(reply.Encode())
}

// exchange applies a message of an edge and returns the reply, once its changes are committed.
func (w *Writer) exchange(ctx context.Context, name string, m syncproto.Message) (*syncproto.Reply, error) {
	if m.Sync != nil && m.Sync.HoldMillis > 0 {
		reply, err := w.hold(ctx, name, m.Sync)
		if reply != nil || err != nil {
			return reply, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	op := &operation{edge: name, step: step(m)}
	if err := w.submit(ctx, op); err != nil {
		return nil, err
	}
	if op.reply == nil {
		return nil, w.unanswered(name)
	}
	return op.reply, nil
}

// hold waits for news. Both results are nil when there was none in time.
func (w *Writer) hold(ctx context.Context, name string, s *syncproto.Sync) (*syncproto.Reply, error) {
	limit := min(time.Duration(s.HoldMillis)*time.Millisecond, maxHold)
	held, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	op := &operation{edge: name, step: step(syncproto.Message{Sync: s}), hold: s}
	if err := w.submit(held, op); err != nil {
		if held.Err() != nil && ctx.Err() == nil {
			return nil, nil
		}
		return nil, err
	}
	if op.reply == nil {
		return nil, w.unanswered(name)
	}
	return op.reply, nil
}

// unanswered is the error of a message that the ledger did not take: the node is fenced, or not there any more.
func (w *Writer) unanswered(node string) error {
	if w.offenders.fenced(node) {
		return ErrNodeFenced
	}
	return ErrUnauthorized
}

func step(m syncproto.Message) func(int64, *ledger.Ledger, *ledger.Edge) *syncproto.Reply {
	return func(now int64, l *ledger.Ledger, e *ledger.Edge) *syncproto.Reply {
		if m.Hello != nil {
			return l.Hello(now, e, m.Hello)
		}
		return l.Sync(now, e, m.Sync)
	}
}

// edgeOf finds the edge by the token of a request.
func (w *Writer) edgeOf(r *http.Request) (string, bool) {
	hash, ok := tokenHash(r)
	if !ok {
		return "", false
	}
	// The map is keyed by hash, so the time of the lookup says nothing about the token.
	w.mu.Lock()
	defer w.mu.Unlock()
	name, ok := w.tokens[hash]
	return name, ok
}
