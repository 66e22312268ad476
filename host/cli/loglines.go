package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// maxErrorBytes is the longest error that is logged whole. One may quote what another program answered: 5 KB of binary data
// became a line of 25 KB, each time that it was logged.
const maxErrorBytes = 2000

// newLog makes a logger of JSON lines, or of text for people, with nothing below level.
func newLog(to io.Writer, level slog.Level, text bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if text {
		return slog.New(shortErrors{slog.NewTextHandler(to, options)})
	}
	return slog.New(shortErrors{slog.NewJSONHandler(to, options)})
}

// shortErrors is a handler that shortens errors. It leaves the lines of requests alone, which have none.
type shortErrors struct{ slog.Handler }

// Handle implements slog.Handler.
func (h shortErrors) Handle(ctx context.Context, line slog.Record) error {
	if line.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, line)
	}
	short := slog.NewRecord(line.Time, line.Level, line.Message, line.PC)
	line.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.AnyValue(shortError{err})
		}
		short.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, short)
}

// WithAttrs implements slog.Handler.
func (h shortErrors) WithAttrs(attrs []slog.Attr) slog.Handler {
	return shortErrors{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h shortErrors) WithGroup(name string) slog.Handler {
	return shortErrors{h.Handler.WithGroup(name)}
}

// shortError is an error whose text is cut when it is too long. The handler asks for the text, since it survives an error that
// can't tell its own.
type shortError struct{ error }

// Error implements error.
func (e shortError) Error() string {
	text := e.error.Error()
	if len(text) <= maxErrorBytes {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(text[:maxErrorBytes], ""), len(text))
}
