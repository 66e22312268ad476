package meter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"regedge/replicate/metering/syncproto"
)

// syncPath is where the writer takes sync messages.
const syncPath = "/v1/sync"

// maxRefusal bounds how much of the writer's refusal is told, in bytes.
const maxRefusal = 500

// OverHTTP reaches the writer at url with the edge's token. The client needs no
// time-out: every message has a deadline of its own. A client whose transport is
// writer.InProcess reaches a writer in the same process.
func OverHTTP(url, token string, client *http.Client) Transport {
	if client == nil {
		client = &http.Client{}
	}
	return &overHTTP{url: strings.TrimRight(url, "/") + syncPath, token: token, client: client}
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
	response, err := t.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("sync with writer: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		return nil, fmt.Errorf("sync with writer: answered %s: %s", response.Status, strings.TrimSpace(string(said)))
	}
	reply, err := io.ReadAll(io.LimitReader(response.Body, syncproto.MaxMessage+1))
	if err != nil {
		return nil, fmt.Errorf("sync with writer: %w", err)
	}
	return reply, nil
}
