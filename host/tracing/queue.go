package tracing

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// maxQueued is about 300 traces of a lookup, more than a busy edge makes in a second when it traces 1%
	// of them. A span takes 1 to 2 KB.
	maxQueued = 2048
	// maxBatch is about 100 KB on the wire.
	maxBatch = 512
	// batchTime is the longest that a span waits for others.
	batchTime = time.Second
	// sendLimit bounds one batch. While a collector hangs, each batch is dropped after that time.
	sendLimit = 5 * time.Second
	// flushLimit bounds the sending at the end.
	flushLimit = 2 * time.Second
)

// queue holds ended spans until they are sent. The SDK's own batch processor does not tell how many
// spans it dropped.
type queue struct {
	spans    chan sdk.ReadOnlySpan
	full     chan struct{} // a batch is there
	exporter *otlptrace.Exporter
	metrics  *Metrics
	log      *slog.Logger
	failing  bool // the last batch was not taken, or not all of it; owned by Run
}

func newQueue(config Config) (*queue, error) {
	to, err := newCollector(config)
	if err != nil {
		return nil, err
	}
	return &queue{
		spans: make(chan sdk.ReadOnlySpan, maxQueued), full: make(chan struct{}, 1),
		exporter: otlptrace.NewUnstarted(to), metrics: config.Metrics, log: config.Log,
	}, nil
}

// OnStart implements sdk.SpanProcessor.
func (q *queue) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor. It never waits, and wakes Run for whole batches only: to wake it for
// each span would cost more than the span.
func (q *queue) OnEnd(span sdk.ReadOnlySpan) {
	select {
	case q.spans <- span:
	default:
		q.metrics.crowded.Inc()
	}
	q.noteFull()
}

// noteFull wakes Run if there is a full batch.
func (q *queue) noteFull() {
	if len(q.spans) < maxBatch {
		return
	}
	select {
	case q.full <- struct{}{}:
	default:
	}
}

// Shutdown implements sdk.SpanProcessor. Run flushes.
func (q *queue) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdk.SpanProcessor. Run flushes.
func (q *queue) ForceFlush(context.Context) error { return nil }

// Run sends spans until ctx is done, and then, for at most 2 s, those that are left.
func (t *Tracer) Run(ctx context.Context) error {
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(flushLimit, cancel) })()
	tick := time.NewTicker(batchTime)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-t.queue.full:
			if len(t.queue.spans) < maxBatch {
				continue // woken twice for the batch before
			}
		case <-ctx.Done():
		}
		t.queue.send(last, t.queue.take())
	}
	for batch := t.queue.take(); len(batch) > 0; batch = t.queue.take() {
		t.queue.send(last, batch)
	}
	return nil
}

// take returns the next batch, which may be empty, and signals full if another full batch remains.
func (q *queue) take() (batch []sdk.ReadOnlySpan) {
	for len(batch) < maxBatch && len(q.spans) > 0 {
		batch = append(batch, <-q.spans)
	}
	q.noteFull()
	return batch
}

// send sends a batch once, and logs when that begins to fail and when it works again.
func (q *queue) send(ctx context.Context, batch []sdk.ReadOnlySpan) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	err := q.exporter.ExportSpans(ctx, batch)
	lost := int64(0)
	var partial *partialError
	switch {
	case errors.As(err, &partial):
		lost = min(partial.rejected, int64(len(batch)))
	case err != nil:
		lost = int64(len(batch))
	}
	switch {
	case err != nil && !q.failing && partial != nil:
		q.log.Warn("the collector takes a part of the traces: the others are dropped", "error", err)
	case err != nil && !q.failing:
		q.log.Warn("the collector takes no traces: they are dropped", "error", err)
	case err == nil && q.failing:
		q.log.Info("the collector takes traces again")
	}
	q.failing = err != nil
	q.metrics.lost.Add(float64(lost))
	q.metrics.sent.Add(float64(int64(len(batch)) - lost))
}
