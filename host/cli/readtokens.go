package cli

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/host/pki"
	"regedge/replicate/registry/libsql"
)

// readTokens are an edge's tokens for its replicas, by database. The writer hands out new ones.
type readTokens struct {
	byDatabase map[string]*libsql.Token
	now        func() time.Time
	log        *slog.Logger
}

// loadReadTokens takes them from flags or files.
func (c *edgeCommand) loadReadTokens(now func() time.Time, log *slog.Logger) (*readTokens, error) {
	registry, err := readToken(c.RegistryToken, c.RegistryTokenFile)
	if err != nil {
		return nil, err
	}
	access, err := readToken(c.AccessToken, c.AccessTokenFile)
	return &readTokens{map[string]*libsql.Token{"registry": libsql.NewToken(registry), "access": libsql.NewToken(access)}, now, log}, err
}

// renew switches to a token if it expires later than the one in use.
func (t *readTokens) renew(database, token string) {
	current, known := t.byDatabase[database]
	if !known || current.String() == token {
		return
	}
	ends, has := pki.Ends(current.String())
	if next, ok := pki.Ends(token); ok && has && next.After(ends) {
		current.Set(token)
		t.log.Info("the token of a replica was renewed", "database", database, "ends", next)
	}
}

var readTokenDesc = prometheus.NewDesc("regedge_read_token_ends_seconds", "Until the edge's token for a replica ends; left out for one without an end.", []string{"database"}, nil)

// ends shows when the tokens in use expire.
func (t *readTokens) ends() prometheus.Collector {
	return &ends{readTokenDesc, t.now, func() map[string]time.Time {
		at := map[string]time.Time{}
		for database, token := range t.byDatabase {
			if end, ok := pki.Ends(token.String()); ok {
				at[database] = end
			}
		}
		return at
	}}
}
