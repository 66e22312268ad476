package regedge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// SandboxKey is the public key for trying the API. It costs nothing.
	SandboxKey = "reg_sandbox_public"
	// DefaultBaseURL is where `regedge dev` listens.
	DefaultBaseURL = "http://127.0.0.1:8080"
	// Version is sent in the User-Agent.
	Version = "1.0.0"

	defaultTimeout = 10 * time.Second
	defaultRetries = 3
	defaultMaxWait = 30 * time.Second
)

// Config configures a client. The zero value calls `regedge dev` with the sandbox key.
type Config struct {
	// BaseURL is the address of the service, without /v1. The default is DefaultBaseURL.
	BaseURL string
	// APIKey is a live key or SandboxKey, the default.
	APIKey string
	// Timeout bounds one attempt, from connecting to the last byte. The default is 10 s. The
	// context of a call bounds all its attempts and pauses.
	Timeout time.Duration
	// MaxRetries is how often a call is repeated at most. 0 means 3, a negative number none.
	MaxRetries int
	// MaxWait is the longest pause before a retry; the default is 30 s. When the service asks for a
	// longer one (a monthly volume that is used up), its error is returned at once.
	MaxWait time.Duration
	// Header is sent with each request, for example a traceparent.
	Header http.Header
	// HTTPClient sends the requests. The default is a client of its own, which does not follow
	// redirects, and speaks HTTP/1.1.
	HTTPClient *http.Client
}

// Client calls the API. It may be used by any number of goroutines.
type Client struct {
	config Config
	base   string
	sleep  func(context.Context, time.Duration) error // replaced by tests
}

// New returns a client. An error says which value of the configuration is not usable.
func New(config Config) (*Client, error) {
	if config.BaseURL == "" {
		config.BaseURL = DefaultBaseURL
	}
	if config.APIKey == "" {
		config.APIKey = SandboxKey
	}
	base, err := url.Parse(config.BaseURL)
	if err == nil && base.Port() != "" {
		_, err = strconv.ParseUint(base.Port(), 10, 16)
	}
	switch {
	case err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return nil, fmt.Errorf("BaseURL: want an address such as %s, got %q", DefaultBaseURL, config.BaseURL)
	case strings.ContainsAny(config.BaseURL, "?#"):
		return nil, fmt.Errorf("BaseURL: want the address without ? and #; got %q", config.BaseURL)
	case strings.HasSuffix(strings.TrimRight(config.BaseURL, "/"), "/v1"):
		return nil, fmt.Errorf("BaseURL: want the address without /v1, which each call adds; got %q", config.BaseURL)
	case strings.ContainsFunc(config.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("APIKey: it has a character that no key has, such as a space or a line end")
	}
	for name, values := range config.Header {
		if !isToken(name) || slices.ContainsFunc(values, hasControl) {
			return nil, fmt.Errorf("Header: the field %q can't be sent", name)
		}
	}
	if config.Timeout <= 0 {
		config.Timeout = defaultTimeout
	}
	if config.MaxRetries == 0 {
		config.MaxRetries = defaultRetries
	}
	if config.MaxWait <= 0 {
		config.MaxWait = defaultMaxWait
	}
	if config.HTTPClient == nil {
		config.HTTPClient = newHTTPClient()
	}
	return &Client{config: config, base: strings.TrimRight(config.BaseURL, "/"), sleep: sleep}, nil
}

// isToken reports whether name is a valid name of a header field (RFC 9110, section 5.6.2). With an invalid one each
// attempt would fail as if there were no connection.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) })
}

// hasControl reports whether value has a control character that no header field may hold (RFC 9110, section 5.5).
func hasControl(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// newHTTPClient keeps far fewer idle connections than an edge allows one address. It follows no redirect: the API has
// none, and a key must not go to another host. It speaks only HTTP/1.1, where an attempt that times out closes its
// connection; a silent HTTP/2 connection would be reused for all retries and later calls.
func newHTTPClient() *http.Client {
	transport := http.DefaultTransport
	if own, ok := transport.(*http.Transport); ok { // libraries that trace put another type in its place
		own = own.Clone()
		own.MaxIdleConnsPerHost = 64
		own.ForceAttemptHTTP2, own.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
		if own.TLSClientConfig != nil {
			own.TLSClientConfig.NextProtos = nil
		}
		transport = own
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// CallOption changes one call.
type CallOption func(*call)

// WithIdempotencyKey sets the Idempotency-Key of a call: 1 to 64 printable ASCII characters. Without it
// each call has a random one. Give one to repeat a call of another process, or one that
// returned an [*UnansweredError], without being charged twice (for 10 minutes, at the same edge).
func WithIdempotencyKey(key string) CallOption {
	return func(c *call) { c.idempotencyKey = key }
}

// Company returns a company by its CIN (21 characters, any case).
func (c *Client) Company(ctx context.Context, cin string, options ...CallOption) (*Result[Company], error) {
	return get[Company](ctx, c, "/v1/companies/"+url.PathEscape(cin), options)
}

// Director returns a director by DIN (1 to 8 digits).
func (c *Client) Director(ctx context.Context, din string, options ...CallOption) (*Result[Director], error) {
	return get[Director](ctx, c, "/v1/directors/"+url.PathEscape(din), options)
}

// LLP returns a limited liability partnership by its LLPIN (three letters, four digits, with or
// without a hyphen between them).
func (c *Client) LLP(ctx context.Context, llpin string, options ...CallOption) (*Result[LLP], error) {
	return get[LLP](ctx, c, "/v1/llps/"+url.PathEscape(llpin), options)
}

// Search returns companies and LLPs whose names match, best first: at most limit, 1 to 10, or 5
// when limit is 0. When nothing matches, Data is empty, the call is free, and
// Result.Suggestions may have names that were perhaps meant.
func (c *Client) Search(ctx context.Context, name string, limit int, options ...CallOption) (*Result[[]Match], error) {
	query := url.Values{"name": {name}}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return get[[]Match](ctx, c, "/v1/search/companies?"+query.Encode(), options)
}

// FindLLP returns the LLP with exactly this LLPIN, or an empty list.
func (c *Client) FindLLP(ctx context.Context, llpin string, options ...CallOption) (*Result[[]Match], error) {
	return get[[]Match](ctx, c, "/v1/search/llps?"+url.Values{"llpin": {llpin}}.Encode(), options)
}
