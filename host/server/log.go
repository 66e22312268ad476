package server

import (
	"bytes"
	"context"
	"errors"
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

// LogBuffer buffers log lines, so that a busy server does not make a system call for each. The request whose line fills
// the buffer waits for the write, at most a second. While the destination hangs, such as a pipe that nobody reads, no other
// request waits: lines are kept in memory, and those beyond a few megabytes are dropped. It is safe for concurrent use.
type LogBuffer struct {
	// Lost, if set, is called with the number of lines that were dropped or could not be written, once a write succeeds again.
	Lost func(lines int64)

	to      io.Writer
	at      int // the size in bytes at which the lines are written at once
	mu      sync.Mutex
	waiting []byte    // lines to write next
	spare   []byte    // the buffer that waiting then gets
	writing *logWrite // the write under way, or nil
	lost    int64     // lines dropped since the last write that succeeded
	torn    bool      // the last line was written in part, as on a disk that became full
}

// logWrite is one write of lines.
type logWrite struct {
	done chan struct{}
	err  error // valid once done is closed
}

const (
	// maxBufferedBytes is the size at which the buffer is flushed at once.
	maxBufferedBytes = 64 << 10
	// maxWaitingBytes bounds the lines that wait while a write hangs: some 15,000 requests.
	maxWaitingBytes = 4 << 20
	// logPatience is how long a write is waited for; beyond it the log hangs.
	logPatience = time.Second
)

// ErrLogHangs is returned when a write takes too long. The write goes on.
var ErrLogHangs = errors.New("the log takes no lines")

// NewLogBuffer returns a LogBuffer that writes to w.
func NewLogBuffer(w io.Writer) *LogBuffer { return &LogBuffer{to: w, at: maxBufferedBytes} }

// NewLogLines returns a LogBuffer that writes each line to w at once, for a log of few lines. It needs no Run.
func NewLogLines(w io.Writer) *LogBuffer { return &LogBuffer{to: w} }

// Write buffers p, which is one line. It fails if the buffer is full and could not be flushed; the buffered lines
// are then lost, unless the write merely hangs.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	if b.writing != nil && len(b.waiting)+len(p) > maxWaitingBytes {
		b.lost++
		b.mu.Unlock()
		return len(p), nil
	}
	b.waiting = append(b.waiting, p...)
	if b.writing != nil || len(b.waiting) < b.at {
		b.mu.Unlock()
		return len(p), nil
	}
	w := b.begin()
	b.mu.Unlock()
	return len(p), w.wait()
}

// Flush writes the buffered lines.
func (b *LogBuffer) Flush() error {
	for {
		b.mu.Lock()
		w, others := b.writing, b.writing != nil
		if !others {
			if len(b.waiting) == 0 {
				b.mu.Unlock()
				return nil
			}
			w = b.begin()
		}
		b.mu.Unlock()
		if err := w.wait(); !others || err == ErrLogHangs {
			return err
		}
	}
}

// begin starts to write the waiting lines, in a goroutine that ends when they are written. b.mu is held.
func (b *LogBuffer) begin() *logWrite {
	lines, w := b.waiting, &logWrite{done: make(chan struct{})}
	b.waiting, b.spare, b.writing = b.spare[:0], nil, w
	torn := b.torn
	go func() {
		written := 0
		if torn {
			_, w.err = b.to.Write([]byte{'\n'}) // so that the next line is whole
		}
		if w.err == nil {
			written, w.err = b.to.Write(lines)
			torn = written > 0 && lines[written-1] != '\n'
		}
		b.mu.Lock()
		b.torn, b.writing = torn, nil
		b.lost += int64(bytes.Count(lines[written:], []byte{'\n'}))
		var lost int64
		if w.err == nil {
			lost, b.lost = b.lost, 0
		}
		if cap(lines) <= 2*maxBufferedBytes {
			b.spare = lines[:0]
		}
		if len(b.waiting) > b.at { // they came meanwhile
			b.begin()
		}
		b.mu.Unlock()
		close(w.done)
		if lost > 0 && b.Lost != nil {
			b.Lost(lost)
		}
	}()
	return w
}

// wait returns the result of a write, ErrLogHangs if it takes long.
func (w *logWrite) wait() error {
	late := time.NewTimer(logPatience)
	defer late.Stop()
	select {
	case <-w.done:
		return w.err
	case <-late.C:
		return ErrLogHangs
	}
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
