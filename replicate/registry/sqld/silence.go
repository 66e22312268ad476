package sqld

import (
	"context"
	"net/http"
	"os"
	"time"
)

// silence says when a server counts as hung: after this many checks in a row without an answer. Each check waits for
// limit, and the next one begins after pause. A machine that was asleep counts one check, however long it slept.
type silence struct {
	checks       int
	limit, pause time.Duration
}

var (
	// hung is the silence after which a server is restarted: more than a minute, since on a busy machine an answer may
	// take seconds.
	hung = silence{checks: 6, limit: 10 * time.Second, pause: 5 * time.Second}
	// writeless is how long a primary may accept no writes before it is restarted: minutes, since a large transaction
	// or VACUUM may take that long.
	writeless = silence{checks: 20, limit: 10 * time.Second, pause: 5 * time.Second}
)

// hangs reports whether a process became silent to health checks before ctx was done. A check does not count while the
// disk hangs: the process could not even be killed, and the next one would hang as well.
func (s *Server) hangs(ctx context.Context, r *run) bool {
	disk, limits := diskCheck{dir: s.Dir}, s.hung.or(hung)
	client := direct(limits.limit)
	defer client.CloseIdleConnections()
	return limits.await(ctx, func() bool { return timedOut(ctx, client, r.asked+healthPath) && disk.answers(limits.limit) })
}

// direct returns a client for a server of this machine: it asks through no proxy, whatever the environment names.
func direct(limit time.Duration) *http.Client {
	return &http.Client{Timeout: limit, Transport: &http.Transport{}}
}

// or returns s if it is set, else the usual silence.
func (s silence) or(usual silence) silence {
	if s.checks > 0 {
		return s
	}
	return usual
}

// await reports whether a server became silent before ctx was done. A server that refuses connections is not silent: it
// starts, or it has ended.
func (s silence) await(ctx context.Context, silent func() bool) bool {
	for row := 0; row < s.checks; {
		if row++; !silent() {
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
