package regedge

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"time"
	"unicode"
)

const (
	// firstPause is the longest pause before the first retry; it doubles up to longestPause.
	firstPause   = 250 * time.Millisecond
	longestPause = 8 * time.Second
	// maxBody is four times the longest answer of the service.
	maxBody = 1 << 20
)

// call is one call of the service, with all its attempts.
type call struct {
	target         string
	idempotencyKey string
	attempts       int
}

// answer is a response that arrived whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func get[T any](ctx context.Context, c *Client, target string, options []CallOption) (*Result[T], error) {
	made := &call{target: target}
	for _, option := range options {
		option(made)
	}
	if made.idempotencyKey == "" {
		made.idempotencyKey = newIdempotencyKey()
	}
	if strings.ContainsFunc(made.idempotencyKey, unicode.IsControl) {
		return nil, fmt.Errorf("regedge: the Idempotency-Key %q has a control character: nothing was sent", made.idempotencyKey)
	}
	got, err := c.perform(ctx, made)
	if err != nil {
		return nil, err
	}
	return result[T](got, made)
}

// newIdempotencyKey has 128 random bits.
func newIdempotencyKey() string {
	var random [16]byte
	rand.Read(random[:]) // never fails since Go 1.24; before, only if the kernel has no random numbers
	return hex.EncodeToString(random[:])
}

// perform repeats the call until there is a success, an error that a retry can't mend, or no
// retry left.
func (c *Client) perform(ctx context.Context, made *call) (*answer, error) {
	for {
		made.attempts++
		got, err := c.attempt(ctx, made)
		if err == nil && got.status == http.StatusOK {
			return got, nil
		}
		failure, pause := c.failure(made, got, err)
		if pause < 0 || ctx.Err() != nil {
			return nil, failure
		}
		if err := c.sleep(ctx, pause); err != nil {
			return nil, errors.Join(failure, err)
		}
	}
}

// failure returns the error of an attempt, and the pause before the next one: negative when there
// must be none.
func (c *Client) failure(made *call, got *answer, err error) (failure error, pause time.Duration) {
	pause = min(randomPause(made.attempts), c.config.MaxWait)
	failure = &UnansweredError{Err: err, IdempotencyKey: made.idempotencyKey, Attempts: made.attempts}
	if err == nil {
		problem := problemOf(got, made)
		pause = max(pause, problem.RetryAfter)
		if !retryable(problem) || pause > c.config.MaxWait {
			pause = -1
		}
		failure = problem
	}
	if made.attempts > c.config.MaxRetries {
		pause = -1
	}
	return failure, pause
}

// attempt sends the call once. An error means that no whole answer arrived.
func (c *Client) attempt(ctx context.Context, made *call) (*answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.Timeout, fmt.Errorf("no answer within %s", c.config.Timeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+made.target, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range c.config.Header {
		name = http.CanonicalHeaderKey(name) // the map's names may be in any case; the headers below replace them
		request.Header[name] = append(request.Header[name], values...)
	}
	request.Header.Set("Authorization", "Bearer "+c.config.APIKey)
	request.Header.Set("Idempotency-Key", made.idempotencyKey)
	request.Header.Set("User-Agent", "regedge-go/"+Version)
	response, err := c.config.HTTPClient.Do(request)
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxBody)
	}
	return &answer{response.StatusCode, response.Header, body}, nil
}

// causeOf puts the cause, such as the timeout of the attempt, in place of "context deadline exceeded". Some versions of HTTP
// and Go say the one, some the other.
func causeOf(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause == nil || errors.Is(cause, ctx.Err()):
		return err
	case errors.Is(err, cause) || errors.Is(err, ctx.Err()):
		return &endedError{cause: cause, all: []error{cause, ctx.Err(), err}}
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// endedError is the end of an attempt's context. It wraps the cause, the context's own error and that of net/http, and says the cause alone.
type endedError struct {
	cause error
	all   []error
}

// Error says the cause.
func (e *endedError) Error() string { return e.cause.Error() }

// Unwrap returns all of them.
func (e *endedError) Unwrap() []error { return e.all }

// retryable reports whether the same call may succeed later. For a used-up month or day the wait is
// beyond MaxWait and left to the caller: RetryAfter says how long.
func retryable(problem *Error) bool {
	switch problem.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return problem.Status >= 500
}

// randomPause is exponential backoff with jitter: between half and all of the pause, so that clients
// that failed together don't retry together.
func randomPause(attempts int) time.Duration {
	pause := longestPause
	if attempts < 6 {
		pause = firstPause << (attempts - 1)
	}
	return pause/2 + mathrand.N(pause/2)
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func problemOf(got *answer, made *call) *Error {
	var document struct {
		Type, Title, Detail string
		Code                Code
	}
	if json.Unmarshal(got.body, &document) != nil {
		document.Code = codeOfNoProblemDocument
	}
	return &Error{
		Status: got.status, Code: document.Code, Type: document.Type, Title: document.Title, Detail: document.Detail,
		RequestID: got.header.Get("X-Request-Id"), RetryAfter: retryAfter(got.header, time.Now()),
		RateLimit: rateLimit(got.header), IdempotencyKey: made.idempotencyKey, Attempts: made.attempts,
	}
}

func result[T any](got *answer, made *call) (*Result[T], error) {
	var envelope struct {
		Data *T `json:"data"`
		Meta *struct {
			RequestID        string `json:"request_id"`
			CreditsRemaining *int64 `json:"credits_remaining"`
			Sandbox          bool   `json:"sandbox"`
		} `json:"meta"`
	}
	err := json.NewDecoder(bytes.NewReader(got.body)).Decode(&envelope)
	if err == nil && envelope.Meta == nil {
		err = errors.New("it has no meta")
	}
	if err == nil && envelope.Data == nil {
		err = errors.New("it has no data")
	}
	if err != nil {
		what := "an answer that is not of this service"
		if id := got.header.Get("X-Request-Id"); id != "" {
			what = "the answer of " + id
		}
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return &Result[T]{
		Data: *envelope.Data, RequestID: envelope.Meta.RequestID, CreditsRemaining: envelope.Meta.CreditsRemaining,
		Sandbox: envelope.Meta.Sandbox, RateLimit: rateLimit(got.header), Release: got.header.Get("X-Registry-Release"),
		Replayed: got.header.Get("Idempotent-Replayed") == "true", Suggestions: suggestions(got.header), Attempts: made.attempts,
	}, nil
}
