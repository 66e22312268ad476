package writer

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
)

// Role is the set of calls that an operators' token may make.
type Role string

// The roles. RoleAccounts and RoleNodes may read as well. Plans, tokens and the invitation of
// operators are for RoleAll alone.
const (
	RoleRead     Role = "read"     // read and scrape
	RoleAccounts Role = "accounts" // accounts, keys, credits, invitations of owners
	RoleNodes    Role = "nodes"    // nodes and their tokens
	RoleAll      Role = "all"
)

// Routes that no operators' token opens: anyone may ask them, or edges or owners with their own tokens.
const (
	anyone Role = "anyone"
	edges  Role = "edges"
	owners Role = "owner"
)

// Roles lists the roles that a token can have.
func Roles() []Role { return []Role{RoleRead, RoleAccounts, RoleNodes, RoleAll} }

// includes reports whether role r covers the needed one.
func (r Role) includes(needed Role) bool {
	return needed != "" && needed != owners && (r == RoleAll || needed == RoleRead || needed == r)
}

// operatorToken is a token of operators, as it is checked. The first one, which configures the
// writer, has no name.
type operatorToken struct {
	name string
	hash [sha256.Size]byte
	role Role
	ends int64 // Unix milliseconds; negative when it was ended, see endNow
}

// firstToken is the token that the writer was configured with. It may do everything, for ever.
func firstToken(token string) operatorToken {
	return operatorToken{hash: sha256.Sum256([]byte(token)), role: RoleAll, ends: math.MaxInt64}
}

// check returns ErrForbidden unless the token may do what needs a role.
func (t operatorToken) check(needed Role) error {
	if t.role.includes(needed) {
		return nil
	}
	return &detailed{ErrForbidden, fmt.Sprintf("the token %s has the role %s, and this needs %s", t.name, t.role, needed)}
}

// actor names the caller for the audit log.
func (t operatorToken) actor() string {
	if t.name == "" {
		return operatorActor
	}
	return "token " + t.name
}

// operatorOf returns the operators' token that a request carries. It compares with all of them, in
// constant time.
func (w *Writer) operatorOf(r *http.Request) (found operatorToken, err error) {
	hash, ok := tokenHash(r)
	if !ok {
		return found, ErrUnauthorized
	}
	err = ErrUnauthorized
	if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "+ownerPrefix) {
		err = &detailed{ErrUnauthorized, "this call takes an operators' token; an owner's token opens " + ownPath + " and what is below it"}
	}
	w.mu.Lock()
	for _, t := range w.operators {
		if subtle.ConstantTimeCompare(hash[:], t.hash[:]) == 1 {
			found, err = t, nil
		}
	}
	w.mu.Unlock()
	if err == nil && found.ends <= w.now() {
		at := endOfToken(found.ends).Format(time.RFC3339)
		return found, &detailed{ErrTokenEnded, fmt.Sprintf("the token %s ended at %s", found.name, at)}
	}
	return found, err
}

// tokenHash returns the hash of the bearer token of a request.
func tokenHash(r *http.Request) (hash [sha256.Size]byte, ok bool) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return sha256.Sum256([]byte(token)), ok
}

type operatorKey struct{}

// withOperator keeps the token of a request for its handler.
func withOperator(r *http.Request, t operatorToken) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), operatorKey{}, t))
}

// checkRole returns ErrForbidden unless the token of a request may do what needs a role.
func checkRole(r *http.Request, needed Role) error {
	t, _ := r.Context().Value(operatorKey{}).(operatorToken)
	return t.check(needed)
}

// readTokens reads the tokens of edges and operators from the ledger.
func (w *Writer) readTokens(ctx context.Context) error {
	nodes, retired, err := loadTokens(ctx, w.config.Ledger)
	if err != nil {
		return err
	}
	const query = `SELECT name, hash, role, ends_at FROM operator_token`
	operators, err := collect(ctx, w.config.Ledger, query, nil, scanOperator)
	if err != nil {
		return fmt.Errorf("load operators' tokens: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens, w.retired, w.operators = nodes, retired, append(operators, firstToken(w.config.OperatorToken))
	return nil
}

func scanOperator(rows *sql.Rows) (t operatorToken, err error) {
	var hash []byte
	err = rows.Scan(&t.name, &hash, &t.role, &t.ends)
	copy(t.hash[:], hash)
	return t, err
}

// refreshTokens reads the tokens again after a change of which the outcome may be unknown.
func (w *Writer) refreshTokens(ctx context.Context) {
	if !w.tokensChanged.Swap(false) {
		return
	}
	if err := w.readTokens(ctx); err != nil {
		w.tokensChanged.Store(true)
		w.config.Logger.Error("the tokens can't be read again", "error", err)
	}
}
