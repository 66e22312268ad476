package sqld

import (
	"context"
	"net/http"
	"os"
	"time"
)

// silence says when a server counts as hung: once it has left this many health checks in a row without an answer. Each waits
// for limit, and the next one begins after pause. A machine that was asleep counts one check, however long it slept.
type silence struct {
	checks       int
	limit, pause time.Duration
}

// hung is the silence after which a replica is started again: more than a minute, since a busy machine holds an answer up for
// seconds.
var hung = silence{checks: 6, limit: 10 * time.Second, pause: 5 * time.Second}

// silence returns when this server counts as hung.
func (s *Server) silence() silence {
	if s.hung.checks > 0 {
		return s.hung
	}
	return hung
}

// await reports whether the server at a base URL became silent before ctx was done. A server that refuses connections is not
// silent: it starts, or it has ended.
func (s silence) await(ctx context.Context, url string) bool {
	client := &http.Client{Timeout: s.limit}
	defer client.CloseIdleConnections()
	for row := 0; row < s.checks; {
		if row++; !timedOut(ctx, client, url+healthPath) {
			row = 0
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(s.pause):
		}
	}
	return true
}

// timedOut reports whether a server did not answer within the client's timeout.
func timedOut(ctx context.Context, client *http.Client, url string) bool {
	check, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := client.Do(check)
	if err == nil {
		answer.Body.Close()
	}
	return os.IsTimeout(err)
}
