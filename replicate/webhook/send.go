package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
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

	"regedge/replicate/notice"
)

// Headers of a request, by Standard Webhooks.
const (
	IDHeader        = "Webhook-Id"
	TimestampHeader = "Webhook-Timestamp" // Unix seconds of the attempt
	SignatureHeader = "Webhook-Signature"
)

// Config configures a Carrier. The zero value is valid.
type Config struct {
	// Private allows HTTP and addresses that are not public, for development.
	Private bool
	// Trust are the TLS settings of calls; nil trusts the system's authorities.
	Trust *tls.Config
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Logger gets why no call is answered; nil discards it.
	Logger *slog.Logger
}

// Carrier calls owners' addresses. It is a notice.Carrier.
type Carrier struct {
	config Config
	client *http.Client

	mu   sync.Mutex
	said string // why no call was answered, as it was logged; "" once one was
}

// New makes a Carrier.
func New(config Config) *Carrier {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Carrier{config: config, client: newClient(config.Private, config.Trust)}
}

// Carry calls the addresses of all notices at once, so that a slow one delays no other.
func (c *Carrier) Carry(ctx context.Context, list []notice.Notice) []notice.Outcome {
	outcomes := make([]notice.Outcome, len(list))
	var all sync.WaitGroup
	for i, n := range list {
		all.Go(func() {
			outcomes[i].Result = c.attempt(ctx, n)
			if isSuccess(outcomes[i].Result) {
				outcomes[i].State = notice.Delivered
			}
		})
	}
	all.Wait()
	if ctx.Err() == nil { // else the calls were cut short
		c.report(outcomes)
	}
	return outcomes
}

// report logs that no call of a round was answered, once until one is or the reason changes. The cause may
// be one owner's server, or the writer's network.
func (c *Carrier) report(outcomes []notice.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reason := ""
	for _, o := range outcomes {
		if isStatus(o.Result) {
			c.said = ""
			return
		}
		reason = o.Result
	}
	if reason != c.said {
		c.said = reason
		c.config.Logger.Warn("no webhook is reached", "calls", len(outcomes), "reason", reason)
	}
}

// SecretPrefix begins a secret, as in Standard Webhooks; 24 random bytes in base64 follow.
const SecretPrefix = "whsec_"

// Secret writes 24 random bytes as a secret for signatures.
func Secret(random [24]byte) string {
	return SecretPrefix + base64.StdEncoding.EncodeToString(random[:])
}

func isSuccess(result string) bool { return isStatus(result) && result[0] == '2' }

// isStatus reports whether a result is the status of an answer. All others are words.
func isStatus(result string) bool { return len(result) == 3 }

// attempt sends a notice once and returns the status, or the reason why there is none.
func (c *Carrier) attempt(ctx context.Context, n notice.Notice) string {
	if err := CheckURL(n.URL, c.config.Private); err != nil {
		return err.Error()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL, strings.NewReader(n.Body))
	if err != nil {
		return "the address can't be read"
	}
	at := strconv.FormatInt(c.config.Now().Unix(), 10)
	signature, err := Sign(n.Secret, n.ID, at, []byte(n.Body))
	if err != nil {
		return "the secret can't be read: make a new one"
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "regedge-webhook")
	r.Header.Set(IDHeader, n.ID)
	r.Header.Set(TimestampHeader, at)
	r.Header.Set(SignatureHeader, signature)
	response, err := c.client.Do(r)
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

// inWords tells an owner why there was no answer, without details of the writer's network.
func inWords(err error) string {
	var unknown *net.DNSError // as for a name of the writer's own network
	var certificate *tls.CertificateVerificationError
	var connecting *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &unknown) && !unknown.IsNotFound: // which says nothing about the name
		return "no name server said where the host is"
	case errors.Is(err, errNotPublic), errors.As(err, &unknown):
		return errNotPublic.Error()
	case errors.As(err, &certificate):
		return "the certificate is not trusted"
	case errors.As(err, &connecting) && connecting.Op == "dial": // also after dialLimit
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no answer within %d s", int(attemptLimit/time.Second))
	}
	return "no connection"
}
