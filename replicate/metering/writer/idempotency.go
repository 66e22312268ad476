package writer

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// IdempotencyHeader identifies a change: a repeated call makes it only once, and gets the first answer
// again (draft-ietf-httpapi-idempotency-key-header-07). Every changing call takes it: 16 to 128
// printable characters of ASCII, best a random UUID.
const IdempotencyHeader = "Idempotency-Key"

// ReplayedHeader is "true" in a repeated answer.
const ReplayedHeader = "Idempotent-Replayed"

const (
	// answerKept is how long the answer to a change is kept for its Idempotency-Key.
	answerKept = 7 * 24 * time.Hour
	// maxAnswersDropped bounds how many old answers one change deletes.
	maxAnswersDropped = 100
)

// errRepeated ends the transaction of a change that was made before.
var errRepeated = errors.New("the change was made before")

// idempotency is the identity of a change that its client may retry. It is nil without an
// Idempotency-Key.
type idempotency struct {
	id       [sha256.Size]byte // of the caller and the Idempotency-Key
	request  [sha256.Size]byte // of method, path and body
	seal     cipher.AEAD       // encrypts the answer, under a key that derives from the Idempotency-Key
	replayed bool
}

type idempotencyKey struct{}

// idempotencyOf returns nil for a request without an Idempotency-Key.
func idempotencyOf(ctx context.Context) *idempotency {
	i, _ := ctx.Value(idempotencyKey{}).(*idempotency)
	return i
}

// withIdempotency reads the Idempotency-Key of a request that changes something.
func withIdempotency(r *http.Request, actor string, body []byte) (*http.Request, error) {
	keys := r.Header.Values(IdempotencyHeader)
	if r.Method == http.MethodGet || len(keys) == 0 {
		return r, nil
	}
	if len(keys) > 1 || !validIdempotencyKey(keys[0]) {
		return r, fmt.Errorf("%w: %s is 16 to 128 printable characters of ASCII, without spaces", ErrMalformed, IdempotencyHeader)
	}
	named := []byte(actor + "\x00" + keys[0])
	secret, err := hkdf.Key(sha256.New, named, nil, "regedge: answer to a change", 32)
	if err != nil {
		return r, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return r, err
	}
	i := &idempotency{id: sha256.Sum256(named)}
	i.request = sha256.Sum256(append([]byte(r.Method+" "+r.URL.RequestURI()+"\n"), body...))
	if i.seal, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return r, err
	}
	return r.WithContext(context.WithValue(r.Context(), idempotencyKey{}, i)), nil
}

func validIdempotencyKey(key string) bool {
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(key) >= 16 && len(key) <= 128
}

// recall reads the stored answer of the same change into answer and returns errRepeated, or
// ErrKeyReused when the Idempotency-Key belongs to another change. It returns nil for a new change.
func (i *idempotency) recall(ctx context.Context, tx *sql.Tx, now int64, answer any) error {
	if i == nil {
		return nil
	}
	var request, sealed []byte
	const query = `SELECT request, answer FROM idempotent_change WHERE id = ? AND at > ?`
	err := tx.QueryRowContext(ctx, query, i.id[:], now-answerKept.Milliseconds()).Scan(&request, &sealed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	//mutant:key-of-another-change-answered
	case !bytes.Equal(request, i.request[:]):
		return ErrKeyReused
	}
	text, err := i.seal.Open(nil, nil, sealed, request)
	if err != nil {
		return fmt.Errorf("read the answer to a repeated change: %w", err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("read the answer to a repeated change: %w", err)
	}
	return errRepeated
}

// keep stores the answer in the transaction of its change, and drops some expired ones. The answer is dated by the
// steady clock or the clock, whichever is later: the next writer's steady clock begins at what the clock shows then.
func (i *idempotency) keep(ctx context.Context, tx *sql.Tx, steady, now int64, answer any) error {
	if i == nil {
		return nil
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	const drop = `DELETE FROM idempotent_change WHERE id IN (SELECT id FROM idempotent_change WHERE at <= ? ORDER BY at LIMIT ?)`
	if _, err := tx.ExecContext(ctx, drop, steady-answerKept.Milliseconds(), maxAnswersDropped); err != nil {
		return err
	}
	const put = `INSERT OR REPLACE INTO idempotent_change (id, request, at, answer) VALUES (?, ?, ?, ?)`
	_, err = tx.ExecContext(ctx, put, i.id[:], i.request[:], max(steady, now), i.seal.Seal(nil, nil, text, i.request[:]))
	return err
}

// readChange reads the body of a request that changes something, and leaves it to be read again.
func readChange(r *http.Request) ([]byte, error) {
	if r.Method == http.MethodGet {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}
