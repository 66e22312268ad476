package meter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"regedge/handler/charge"
	"regedge/replicate/metering/bearer"
	"regedge/replicate/metering/syncproto"
)

// Handler serves the meter over HTTP, with a bearer token, to a component in another process:
// docs/design.md, "The meter's contract".
func (m *Meter) Handler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+charge.ChargePath, m.serveCharge)
	mux.HandleFunc("POST "+charge.VoidPath, m.serveVoid)
	wanted := bearer.New(token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !wanted.In(r) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (m *Meter) serveCharge(w http.ResponseWriter, r *http.Request) {
	request, err := charge.ParseRequest(r.URL.RawQuery)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	v, repeated := m.answer(r.Context(), &request)
	v.Headers(w.Header().Set)
	w.WriteHeader(charge.Status(v.Code))
	switch {
	case http.NewResponseController(w).Flush() != nil || r.Context().Err() != nil:
		m.Doubt(&request, v)
	case repeated:
		m.delivered(&request, v)
	}
}

func (m *Meter) serveVoid(w http.ResponseWriter, r *http.Request) {
	id, err := charge.ParseVoid(r.URL.RawQuery)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if err := m.Void(r.Context(), id); err != nil {
		m.config.Logger.Error("void failed", "request_id", id, "error", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// syncPath is the writer's path for sync messages.
const syncPath = "/v1/sync"

// maxRefusal bounds how much of the writer's error response goes into the error, in bytes.
const maxRefusal = 500

// OverHTTP sends messages to the writer at url with the edge's token. It follows no redirect: token and
// messages are for the writer alone. The client needs no timeout, since every message has a deadline of its
// own. A client whose transport is writer.InProcess talks to a writer in the same process.
func OverHTTP(url, token string, client *http.Client) Transport {
	if client == nil {
		client = &http.Client{}
	}
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &overHTTP{url: strings.TrimRight(url, "/") + syncPath, token: token, client: &direct}
}

type overHTTP struct {
	url, token string
	client     *http.Client
}

func (t *overHTTP) Sync(ctx context.Context, message []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(message))
	if err != nil {
		return nil, fmt.Errorf("sync with writer: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+t.token)
	request.Header.Set("Content-Type", "application/octet-stream")
	propagate(ctx, request.Header)
	response, err := t.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("sync with writer: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		cause := errNoReply
		if response.StatusCode == http.StatusUnauthorized {
			cause = errToken
		}
		return nil, fmt.Errorf("sync with writer: %w: answered %s: %s", cause, response.Status, strings.TrimSpace(string(said)))
	}
	reply, err := io.ReadAll(io.LimitReader(response.Body, syncproto.MaxMessage+1))
	if err != nil {
		return nil, fmt.Errorf("sync with writer: %w", err)
	}
	return reply, nil
}
