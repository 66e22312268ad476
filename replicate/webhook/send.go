package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Headers of a request, by Standard Webhooks.
const (
	IDHeader        = "Webhook-Id"
	TimestampHeader = "Webhook-Timestamp" // Unix seconds of the attempt
	SignatureHeader = "Webhook-Signature"
)

const (
	lookEvery = 30 * time.Second
	sendEvery = 2 * time.Second
	// atOnce is how many accounts are called at the same time, each with one event.
	atOnce = 16
	// MaxAttempts and the pauses between them, from firstPause on four times as long each time up to
	// longestPause, make about two days.
	MaxAttempts  = 14
	firstPause   = 30 * time.Second
	longestPause = 6 * time.Hour
)

// Config is what a Sender needs. Ledger and Commit must be set.
type Config struct {
	// Ledger is the writer's database, for reading.
	Ledger *sql.DB
	// Commit changes it in a transaction of the writer.
	Commit func(ctx context.Context, change func(ctx context.Context, tx *sql.Tx, nowMillis int64) error) error
	// Private allows HTTP and addresses that are not public, for development.
	Private bool
	// Trust are the TLS settings of calls; nil trusts the system's authorities.
	Trust *tls.Config
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Logger gets what an operator should see; nil discards it.
	Logger *slog.Logger
}

// Sender finds events and delivers them.
type Sender struct {
	config Config
	client *http.Client
}

// New makes a Sender, which does nothing before Run.
func New(config Config) *Sender {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sender{config, newClient(config.Private, config.Trust)}
}

// Run finds and delivers events until ctx ends. It goes on after errors of the ledger.
func (s *Sender) Run(ctx context.Context) error {
	look, send := time.NewTicker(lookEvery), time.NewTicker(sendEvery)
	defer look.Stop()
	defer send.Stop()
	for said := ""; ; {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			err = s.Look(ctx)
		case <-send.C:
			_, err = s.Send(ctx)
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			s.config.Logger.Warn("webhooks wait", "error", err)
		}
	}
}

// Look finds what is to be told, and stores it.
func (s *Sender) Look(ctx context.Context) error {
	f, err := find(ctx, s.config.Ledger, s.config.Now().UnixMilli())
	if err == nil {
		err = f.news(ctx, s.config.Ledger)
	}
	if err != nil || len(f.events)+len(f.again) == 0 {
		return err
	}
	return s.config.Commit(ctx, f.store)
}

// waiting is an event that is due, with where to send it.
type waiting struct {
	id, body    string
	attempts    int
	url, secret string
}

// selectDue finds of each account the event that is due for longest.
const selectDue = `SELECT e.id, e.body, e.attempts, h.url, h.secret, min(e.next_at) FROM webhook h
	CROSS JOIN webhook_event e ON e.account = h.account WHERE e.next_at <= ? GROUP BY h.account ORDER BY min(e.next_at) LIMIT ?`

// Send makes one attempt for each account that has an event due, and returns how many.
func (s *Sender) Send(ctx context.Context) (attempts int, err error) {
	var due []waiting
	err = each(ctx, s.config.Ledger, selectDue, []any{s.config.Now().UnixMilli(), atOnce}, func(rows *sql.Rows) error {
		var e waiting
		var next int64
		err := rows.Scan(&e.id, &e.body, &e.attempts, &e.url, &e.secret, &next)
		due = append(due, e)
		return err
	})
	if err != nil || len(due) == 0 {
		return 0, err
	}
	results := make([]string, len(due))
	var all sync.WaitGroup
	for i, e := range due {
		all.Go(func() { results[i] = s.attempt(ctx, e) })
	}
	all.Wait()
	if ctx.Err() != nil { // an attempt that was cut short is no failure
		return 0, ctx.Err()
	}
	return len(due), s.config.Commit(ctx, func(ctx context.Context, tx *sql.Tx, now int64) error {
		for i, e := range due {
			if err := e.note(ctx, tx, now, results[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// note stores the result of an attempt.
func (e waiting) note(ctx context.Context, tx *sql.Tx, now int64, result string) error {
	var next, delivered any
	switch {
	case isSuccess(result):
		delivered = now
	case e.attempts+1 < MaxAttempts:
		next = now + pauseAfter(e.attempts+1).Milliseconds()
	}
	_, err := tx.ExecContext(ctx, `UPDATE webhook_event SET attempts = attempts + 1, last = ?, delivered_at = ?, next_at = ? WHERE id = ?`,
		result, delivered, next, e.id)
	return err
}

func isSuccess(result string) bool { return len(result) == 3 && result[0] == '2' }

// pauseAfter is the pause after so many failed attempts.
func pauseAfter(attempts int) time.Duration {
	pause := firstPause
	for i := 1; i < attempts && pause < longestPause; i++ {
		pause *= 4
	}
	return min(pause, longestPause)
}

// attempt sends an event once and returns the status, or in words why there is none.
func (s *Sender) attempt(ctx context.Context, e waiting) string {
	if err := CheckURL(e.url, s.config.Private); err != nil {
		return err.Error()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, strings.NewReader(e.body))
	if err != nil {
		return "the address can't be read"
	}
	at := strconv.FormatInt(s.config.Now().Unix(), 10)
	signature, err := Sign(e.secret, e.id, at, []byte(e.body))
	if err != nil {
		return "the secret can't be read: make a new one"
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "regedge-webhook")
	r.Header.Set(IDHeader, e.id)
	r.Header.Set(TimestampHeader, at)
	r.Header.Set(SignatureHeader, signature)
	response, err := s.client.Do(r)
	if err != nil {
		return inWords(err)
	}
	defer response.Body.Close()
	io.CopyN(io.Discard, response.Body, 4<<10)
	return strconv.Itoa(response.StatusCode)
}

// Sign returns the signature of a request: "v1," and the HMAC-SHA256 of id, time and body, joined by points,
// in base64. The secret is what follows its prefix, decoded.
func Sign(secret, id, timestamp string, body []byte) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, SecretPrefix))
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(bytes.Join([][]byte{[]byte(id), []byte(timestamp), body}, []byte(".")))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// inWords tells an owner why there was no answer, without what they need not know of the writer's network.
func inWords(err error) string {
	var unknown *net.DNSError // as for a name of the writer's own network
	var certificate *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errNotPublic), errors.As(err, &unknown):
		return errNotPublic.Error()
	case errors.As(err, &certificate):
		return "the certificate is not trusted"
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no answer within %d s", int(attemptLimit/time.Second))
	}
	return "no connection"
}
