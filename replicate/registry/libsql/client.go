package libsql

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// maxAnswer bounds an answer, in bytes; sqld itself stops at 10 MB.
	maxAnswer = 32 << 20
	// maxComplaint bounds how much of an error page is shown.
	maxComplaint = 300
	// idleConnections is how many connections to the server are kept for the next call.
	idleConnections = 16
)

// ErrUnauthorized is returned when the server refuses the token, or a write with a token
// that may only read.
var ErrUnauthorized = errors.New("the libSQL server refuses the token")

// Error is what the database says of a statement.
type Error struct {
	Code    string // such as SQLITE_CONSTRAINT, or empty
	Message string
}

func (e *Error) Error() string { return strings.TrimSpace(e.Code + " " + e.Message) }

// Busy reports whether the same may succeed a moment later: another transaction was
// under way, or the server was starting.
func (e *Error) Busy() bool {
	return strings.Contains(e.Code, "BUSY") || strings.Contains(e.Code, "PROXY")
}

// Client asks one server. It is safe for concurrent use.
type Client struct {
	url, token string
	http       *http.Client
	sent, read atomic.Int64
}

// New makes a client of the server at address, an http:, https: or libsql: URL (libsql:
// is https:), with a token or none.
func New(address, token string) *Client {
	base := strings.TrimSuffix(address, "/")
	if rest, ok := strings.CutPrefix(base, "libsql:"); ok {
		base = "https:" + rest
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = idleConnections
	transport.IdleConnTimeout = 30 * time.Second
	return &Client{url: base + "/v2/pipeline", token: token, http: &http.Client{Transport: transport}}
}

// Bytes is how much was sent and received so far, headers left out.
func (c *Client) Bytes() (sent, received int64) { return c.sent.Load(), c.read.Load() }

// Close closes the idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Query runs one statement. Its error is the transport's, ErrUnauthorized, or an *Error.
func (c *Client) Query(ctx context.Context, sql string, args ...any) (*Result, error) {
	statement, err := newStatement(Statement{sql, args})
	if err != nil {
		return nil, err
	}
	results, err := c.pipeline(ctx, request{Type: "execute", Statement: statement})
	if err != nil {
		return nil, err
	}
	var answer struct{ Result Result }
	if err := decode(results[0].Response, &answer); err != nil {
		return nil, err
	}
	return &answer.Result, nil
}

// Statement is one statement of a transaction, with its parameters: nil, bool, int,
// int64, string or []byte.
type Statement struct {
	SQL  string
	Args []any
}

// Commit runs statements as one transaction: all of them, or, after an error, none. When
// the error is not an *Error, the transaction may have been committed all the same.
func (c *Client) Commit(ctx context.Context, statements []Statement) error {
	batch, err := newTransaction(statements)
	if err != nil {
		return err
	}
	results, err := c.pipeline(ctx, request{Type: "batch", Batch: batch})
	if err != nil {
		return err
	}
	var answer struct {
		Result struct {
			Errors []*Error `json:"step_errors"`
		}
	}
	if err := decode(results[0].Response, &answer); err != nil {
		return err
	}
	for _, e := range answer.Result.Errors {
		if e != nil {
			return refused(e)
		}
	}
	return nil
}

func decode(raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read the libSQL server's answer: %w", err)
	}
	return nil
}

// outcome is the answer to one request of a pipeline.
type outcome struct {
	Type     string
	Response json.RawMessage
	Error    *Error
}

// pipeline sends one request and closes the stream that it opened.
func (c *Client) pipeline(ctx context.Context, r request) ([]outcome, error) {
	body, err := json.Marshal(map[string]any{"requests": []request{r, {Type: "close"}}})
	if err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	answer, err := c.post(ctx, body)
	if err != nil {
		return nil, err
	}
	var parsed struct{ Results []outcome }
	if err := decode(answer, &parsed); err != nil {
		return nil, err
	}
	if len(parsed.Results) == 0 {
		return nil, errors.New("the libSQL server's answer has no result")
	}
	if first := parsed.Results[0]; first.Type != "ok" {
		if first.Error == nil {
			return nil, fmt.Errorf("the libSQL server answers %q", first.Type)
		}
		return nil, refused(first.Error)
	}
	return parsed.Results, nil
}

// refusal is in the message when a token may not write, on a primary, and on a replica
// that passes on what its primary said.
const refusal = "Authorization forbidden"

// refused makes ErrUnauthorized of an error that is about the token.
func refused(e *Error) error {
	if strings.Contains(e.Message, refusal) {
		return fmt.Errorf("%w: %w", ErrUnauthorized, e)
	}
	return e
}

// forbids reports whether an answer is about the token.
func forbids(status int, answer []byte) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusBadRequest && bytes.Contains(answer, []byte(refusal))
}

func (c *Client) post(ctx context.Context, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	c.sent.Add(int64(len(body)))
	response, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the libSQL server: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	c.read.Add(int64(len(answer)))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the libSQL server's answer: %w", err)
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("the libSQL server's answer is over %d bytes", maxAnswer)
	case forbids(response.StatusCode, answer):
		return nil, fmt.Errorf("%w: %s", ErrUnauthorized, response.Status)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the libSQL server answers %s: %.*s", response.Status, maxComplaint, answer)
	}
	return answer, nil
}
