package libsql

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/tursodatabase/libsql-client-go/libsql"
)

// Token is a token that can be replaced while a database is open.
type Token struct{ text atomic.Pointer[string] }

// NewToken makes a Token.
func NewToken(text string) *Token {
	t := new(Token)
	t.Set(text)
	return t
}

// Set replaces the token. Connections with the one before are not used again.
func (t *Token) Set(text string) { t.text.Store(&text) }

// String returns the token.
func (t *Token) String() string { return *t.text.Load() }

// SignToken makes a JSON Web Token (RFC 7519), signed with Ed25519 as a libSQL server demands (RFC 8037, section 3.1). The
// server reads the claims "a", which is "rw" or "ro", and "exp".
func SignToken(key ed25519.PrivateKey, claims map[string]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"EdDSA","typ":"JWT"}`)) + "." + encode(payload)
	return signed + "." + encode(ed25519.Sign(key, []byte(signed))), nil
}

// OpenRenewed is Open with a token that can be replaced: a new connection uses the newest.
func OpenRenewed(address string, token *Token) (*sql.DB, error) {
	if _, err := newConnector(address, token.String()); err != nil {
		return nil, err
	}
	return sql.OpenDB(&renewed{address, token}), nil
}

func newConnector(address, token string) (driver.Connector, error) {
	var options []libsql.Option
	if token != "" {
		options = append(options, libsql.WithAuthToken(token))
	}
	connector, err := libsql.NewConnector(address, options...)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", address, err)
	}
	return checkedConnector{connector, callLimit}, nil
}

// renewed connects with the newest token.
type renewed struct {
	address string
	token   *Token
}

// Connect implements driver.Connector.
func (r *renewed) Connect(ctx context.Context) (driver.Conn, error) {
	token := r.token.String()
	connector, err := newConnector(r.address, token)
	if err != nil {
		return nil, err
	}
	conn, err := connector.Connect(ctx)
	if own, ok := conn.(*checked); ok {
		own.replaced = func() bool { return r.token.String() != token }
	}
	return conn, err
}

// Driver implements driver.Connector.
func (r *renewed) Driver() driver.Driver {
	connector, err := newConnector(r.address, r.token.String())
	if err != nil {
		return nil
	}
	return connector.Driver()
}
