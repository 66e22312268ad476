package writer

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"
)

// ErrUncertain is returned, beside the cause, for a change that may have been made: it was sent, and no
// answer, or no clear one, came. A retry under the same Idempotency-Key is the same change.
var ErrUncertain = errors.New("the change may have been made, or not")

// NewIdempotencyKey makes the name of a change.
func NewIdempotencyKey() string { return rand.Text() }

type idempotencyKeyName struct{}

// WithIdempotencyKey returns a context for the calls that make one change, under this Idempotency-Key.
// Without it each call has a new one.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, idempotencyKeyName{}, key)
}

// Retrying returns a client that repeats a change, under the same Idempotency-Key, while it is uncertain
// whether it was made, for about limit. notice is called with each failed attempt and the pause after it.
func (c *Client) Retrying(limit time.Duration, notice func(err error, pause time.Duration)) *Client {
	retrying := *c
	retrying.retryFor, retrying.notice = limit, notice
	return &retrying
}

// The pause between attempts doubles from the least to the most.
const (
	leastRetryPause = 500 * time.Millisecond
	mostRetryPause  = 4 * time.Second
)

// changeOnce makes a call that changes something, under an Idempotency-Key.
func changeOnce[T any](ctx context.Context, c *Client, act, method, path string, body any) (T, error) {
	key, ok := ctx.Value(idempotencyKeyName{}).(string)
	if !ok {
		key = NewIdempotencyKey()
	}
	begun := time.Now()
	uncertain := false
	for pause := leastRetryPause; ; pause = min(2*pause, mostRetryPause) {
		answer, err := exchange[T](ctx, c, act, method, path, key, body)
		uncertain = uncertain || errors.Is(err, ErrUncertain)
		if err == nil || !uncertain || certain(err) {
			return answer, err
		}
		if !errors.Is(err, ErrUncertain) { // uncertain before, not now
			err = fmt.Errorf("%w: %w", ErrUncertain, err)
		}
		if time.Since(begun)+pause > c.retryFor || ctx.Err() != nil {
			return answer, err
		}
		c.notice(err, pause)
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(pause):
		}
	}
}

// unasked are the errors of an attempt that say nothing about earlier attempts. The writer looks up whether a
// change was made only after it has checked the caller, and another writer may know other tokens.
var unasked = []error{ErrUncertain, ErrFenced, ErrUnauthorized, ErrTokenEnded, ErrForbidden, ErrTooMany, ErrInternal}

// certain reports whether the writer itself said that it never made the change.
func certain(err error) bool {
	is := func(target error) bool { return errors.Is(err, target) }
	return !slices.ContainsFunc(unasked, is) && slices.ContainsFunc(apiErrors, func(e apiError) bool { return is(e.err) })
}

// call makes a call that changes nothing, or is idempotent.
func call[T any](ctx context.Context, c *Client, act, method, path string, body any) (T, error) {
	return exchange[T](ctx, c, act, method, path, "", body)
}

// exchange does one request in JSON, and turns a problem document into its error. With an
// Idempotency-Key, the error says whether the outcome is uncertain.
func exchange[T any](ctx context.Context, c *Client, act, method, path, key string, body any) (T, error) {
	var answer T
	status, content, sent, err := c.send(ctx, method, path, key, body)
	switch {
	case err == nil && status >= 300:
		err = readProblem(content)
		sent = errors.Is(err, ErrUnavailable) || errors.Is(err, ErrStranger) && status >= 502
	case err == nil:
		if err = json.Unmarshal(content, &answer); err != nil { // such as a network's sign-in page
			err = fmt.Errorf("%w: %w", ErrStranger, err)
		}
	}
	switch {
	case err == nil:
		return answer, nil
	case key != "" && sent:
		return answer, fmt.Errorf("%s: %w: %w", act, ErrUncertain, err)
	}
	return answer, fmt.Errorf("%s: %w", act, err)
}

// send sends a request and reads the response. sent says whether the writer may have seen it.
func (c *Client) send(ctx context.Context, method, path, key string, body any) (status int, content []byte, sent bool, err error) {
	encoded := []byte{}
	if body != nil {
		if encoded, err = json.Marshal(body); err != nil {
			return 0, nil, false, err
		}
	}
	var wrote atomic.Bool
	_, inProcess := c.http.Transport.(inProcess)
	wrote.Store(inProcess)
	trace := &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), method, c.url+path, bytes.NewReader(encoded))
	if err != nil {
		return 0, nil, false, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set(IdempotencyHeader, key)
	}
	if c.waiting != nil {
		defer c.waiting()()
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, wrote.Load(), err
	}
	defer response.Body.Close()
	if at, err := http.ParseTime(response.Header.Get("Date")); err == nil && c.clock != nil {
		c.clock(at)
	}
	switch status = response.StatusCode; {
	case response.Header.Get(RequestIDHeader) != "":
	case status < 300: // another service's success is none
		return status, nil, true, ErrStranger
	case status < 400:
		return status, nil, false, fmt.Errorf("%w: it redirects to %s", ErrStranger, response.Header.Get("Location"))
	}
	content, err = io.ReadAll(io.LimitReader(response.Body, c.most+1))
	if int64(len(content)) > c.most {
		return status, nil, true, fmt.Errorf("%w: it has more than %d bytes", ErrTooLong, c.most)
	}
	return status, content, true, err
}

// readProblem returns the error of a problem document.
func readProblem(content []byte) error {
	var p problem
	if json.Unmarshal(content, &p) != nil {
		return ErrStranger
	}
	err := errorOf(p.Code)
	if p.Detail == "" || errors.Is(err, ErrStranger) {
		return err
	}
	if p.Status >= 500 && p.RequestID != "" { // by which the writer's log has the cause
		p.Detail += " (request " + p.RequestID + ")"
	}
	return &detailed{err, p.Detail}
}
