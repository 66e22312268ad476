package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"regedge/handler"
)

// record writes the log line of a request and counts it.
func (s *Server) record(e *exchange, took time.Duration) {
	code := s.metrics.observe(e.route, &e.response, took)
	s.noteServed(e, code)
	ctx := context.Background()
	if !s.config.Log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	line := append(make([]slog.Attr, 0, 14),
		slog.String("method", knownMethod(e.request.Method)),
		slog.String("route", e.route.String()),
		slog.Int("status", e.response.Status),
		slog.Int64("duration_us", took.Microseconds()),
		slog.String("request_id", e.id),
		slog.String("client", e.client))
	line = e.bill.appendTo(line)
	for _, known := range [...]slog.Attr{
		slog.String("code", code),
		slog.String("release", valueOf(e.response.Headers, handler.HeaderRegistryRelease)),
		slog.String("traceparent", traceparent(e.request.Values("Traceparent"))),
	} {
		if known.Value.String() != "" {
			line = append(line, known)
		}
	}
	if e.span != nil {
		line = append(line, slog.String("trace_id", e.span.SpanContext().TraceID().String()))
	}
	s.config.Log.LogAttrs(ctx, slog.LevelInfo, "request", line...)
}

// appendTo appends who paid for a request, if that is known, and how much.
func (b *Bill) appendTo(line []slog.Attr) []slog.Attr {
	switch {
	case b.Sandbox:
		return append(line, slog.Bool("sandbox", true))
	case b.Account != 0:
		return append(line, slog.Int64("account", b.Account), slog.Int64("key", b.Key), slog.Int64("cost", b.Cost))
	}
	return line
}

// knownMethod keeps invented methods, which may contain anything, out of the log.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	}
	return "other"
}

// traceparentLength is the length of version 00 of W3C Trace Context, section 3.2.
const traceparentLength = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

// traceparent returns the client's traceparent if it is well-formed: lower-case hex and hyphens.
func traceparent(values []string) string {
	if len(values) != 1 || len(values[0]) != traceparentLength {
		return ""
	}
	for i := range len(values[0]) {
		c := values[0][i]
		hyphen := i == 2 || i == 35 || i == 52
		if hyphen != (c == '-') || !hyphen && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return values[0]
}

// LogBuffer buffers log lines, so that a busy server does not make a system call for each. It is safe
// for concurrent use.
type LogBuffer struct {
	mu     sync.Mutex
	to     io.Writer
	buffer bytes.Buffer
}

// maxBufferedBytes is the size at which the buffer is flushed at once.
const maxBufferedBytes = 64 << 10

// NewLogBuffer returns a LogBuffer that writes to w.
func NewLogBuffer(w io.Writer) *LogBuffer { return &LogBuffer{to: w} }

// Write buffers p, which is one line. It fails if the buffer was full and could not be flushed; its
// lines are lost then.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buffer.Write(p)
	if b.buffer.Len() < maxBufferedBytes {
		return len(p), nil
	}
	return len(p), b.flush()
}

// Flush writes the buffered lines.
func (b *LogBuffer) Flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flush()
}

func (b *LogBuffer) flush() error {
	if b.buffer.Len() == 0 {
		return nil
	}
	_, err := b.to.Write(b.buffer.Bytes())
	b.buffer.Reset()
	return err
}

// Run flushes at every interval until ctx is done, and then once more.
func (b *LogBuffer) Run(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.Flush()
		case <-ctx.Done():
			b.Flush()
			return
		}
	}
}
