package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// record writes the log line of a request and counts it.
func (s *Server) record(e *exchange, took time.Duration) {
	s.metrics.observe(e.route, e.response.Status, took)
	ctx := context.Background()
	if !s.config.Log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	line := [...]slog.Attr{
		slog.String("method", knownMethod(e.request.Method)),
		slog.String("route", e.route.String()),
		slog.Int("status", e.response.Status),
		slog.Int64("duration_us", took.Microseconds()),
		slog.String("request_id", e.id),
		slog.String("client", e.client),
		slog.String("traceparent", traceparent(e.request.Values("Traceparent"))),
	}
	known := line[:]
	if line[len(line)-1].Value.String() == "" {
		known = line[:len(line)-1]
	}
	s.config.Log.LogAttrs(ctx, slog.LevelInfo, "request", known...)
}

// knownMethod keeps a made-up method, which may hold anything, out of the log.
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

// traceparent is the client's, when it has the form of one: lower-case hex and hyphens.
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

// LogBuffer gathers log lines and writes them in one go, so that a busy server does not
// spend a system call on each. It is safe for concurrent use.
type LogBuffer struct {
	mu   sync.Mutex
	to   io.Writer
	held bytes.Buffer
}

// maxHeldBytes is when held lines are written without waiting for the next turn.
const maxHeldBytes = 64 << 10

// NewLogBuffer returns a LogBuffer that writes to w.
func NewLogBuffer(w io.Writer) *LogBuffer { return &LogBuffer{to: w} }

// Write holds p, which is one line. It fails when lines had to be written and that
// failed; they are dropped.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held.Write(p)
	if b.held.Len() < maxHeldBytes {
		return len(p), nil
	}
	return len(p), b.flush()
}

// Flush writes what is held.
func (b *LogBuffer) Flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flush()
}

func (b *LogBuffer) flush() error {
	if b.held.Len() == 0 {
		return nil
	}
	_, err := b.to.Write(b.held.Bytes())
	b.held.Reset()
	return err
}

// Run flushes every interval until ctx is done, and then once more.
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
