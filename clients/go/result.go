package regedge

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Result is a success: data, and what the service said beside it.
type Result[T any] struct {
	Data T
	// RequestID identifies the call to support.
	RequestID string
	// CreditsRemaining is the balance after this call; nil with the sandbox key.
	CreditsRemaining *int64
	// Sandbox is true when the sandbox key was used.
	Sandbox   bool
	RateLimit RateLimit
	// Release is the state of the registry that was read.
	Release string
	// Replayed is true when an earlier attempt had been charged already, so that this one was not.
	Replayed bool
	// Suggestions are registered names that were perhaps meant: at most three, and only beside an
	// empty search.
	Suggestions []string
	// Attempts is how often the call was made.
	Attempts int
}

// RateLimit is the rest of the current minute's limit. While an edge can't know it, it sends the limit
// alone, and the other fields are nil.
type RateLimit struct {
	Limit     *int
	Remaining *int
	// Reset is how long it takes until the minute ends.
	Reset *time.Duration
}

func rateLimit(header http.Header) RateLimit {
	limit := RateLimit{Limit: number(header, "RateLimit-Limit"), Remaining: number(header, "RateLimit-Remaining")}
	if seconds := number(header, "RateLimit-Reset"); seconds != nil {
		reset := time.Duration(*seconds) * time.Second
		limit.Reset = &reset
	}
	return limit
}

func number(header http.Header, name string) *int {
	n, err := strconv.Atoi(header.Get(name))
	if err != nil {
		return nil
	}
	return &n
}

// longestRetryAfter caps the seconds that are read: more would overflow a Duration.
const longestRetryAfter = 10 * 365 * 24 * time.Hour

// retryAfter reads seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(max(0, seconds), int(longestRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// suggestions reads a list of strings (RFC 9651, section 3.1) whose characters beyond ASCII are
// percent-encoded. Anything else reads as none.
func suggestions(header http.Header) []string {
	var names []string
	rest := strings.TrimSpace(strings.Join(header.Values("Search-Suggestion"), ", "))
	for rest != "" {
		name, after, ok := quoted(rest)
		if !ok {
			return nil
		}
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
		names = append(names, name)
		rest = strings.TrimSpace(after)
		if rest != "" && rest[0] != ',' {
			return nil
		}
		rest = strings.TrimLeft(rest, ", \t")
	}
	return names
}

// quoted reads a quoted string at the beginning of text.
func quoted(text string) (value, rest string, ok bool) {
	if text == "" || text[0] != '"' {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			i++
			if i == len(text) {
				return "", "", false
			}
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}
