package conformance

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Account is an account that was made for a vector.
type Account struct{ Key, Second, Revoked, Expired string }

// Kit is a host under test.
type Kit struct {
	// Address is host:port of the host.
	Address string
	// ClientHeader is the request header from which the host takes the client's address.
	ClientHeader string
	// NewAccount makes an account with two live keys and a revoked one.
	NewAccount func(*testing.T, Given) Account
	// Advance moves the meter's clock, and returns once the meter's verdicts are complete
	// again. It is called only on a kit that Fresh returned.
	Advance func(*testing.T, time.Duration)
	// Release is the registry's release id.
	Release string
	// Fresh returns a kit of a host of its own. A vector that moves the clock runs on one, so that
	// every vector starts at the same time, whichever ran before it.
	Fresh func(*testing.T) *Kit
	// Outage returns a kit of the same host with a failed part; the package comment has the
	// names of the parts.
	Outage func(t *testing.T, part string) *Kit
}

// everyAnswer are the headers of every answer but a preflight's.
var everyAnswer = map[string]string{
	"Cache-Control":               "private, no-store",
	"X-Content-Type-Options":      "nosniff",
	"Access-Control-Allow-Origin": "*",
	"Access-Control-Expose-Headers": "X-Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, " +
		"X-Credits-Remaining, X-Registry-Release, Retry-After, Idempotent-Replayed, Search-Suggestion",
}

// framing are the headers that depend on the connection.
var framing = []string{"Date", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive"}

// Run sends the requests of a file and returns a file with the answers; vectors that -run leaves
// out keep theirs. Each difference fails t, unless compare is false.
func (k *Kit) Run(t *testing.T, f *File, compare bool) *File {
	got := &File{Path: f.Path, Head: f.Head, Vectors: slices.Clone(f.Vectors)}
	for i, v := range f.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			client := v.Client
			if client == "" {
				client = clients.next()
			}
			kit := k
			if v.advances() {
				kit = kit.Fresh(t)
			}
			if v.Outage != "" {
				kit = kit.Outage(t, v.Outage)
			}
			got.Vectors[i] = kit.runVector(t, v, client)
			if compare {
				compareVectors(t, f.Path, v, got.Vectors[i])
			}
		})
	}
	return got
}

// clients makes a client address for each vector.
var clients addresses

type addresses struct{ n int }

func (a *addresses) next() string {
	a.n++
	return fmt.Sprintf("198.18.%d.%d", a.n/250, a.n%250+1)
}

func (k *Kit) runVector(t *testing.T, v *Vector, client string) *Vector {
	var account Account
	if v.Given != nil {
		account = k.NewAccount(t, *v.Given)
	}
	expand := strings.NewReplacer("{key}", account.Key, "{second}", account.Second, "{revoked}", account.Revoked, "{expired}", account.Expired).Replace

	got := *v
	got.Exchanges = nil
	for _, e := range v.Exchanges {
		if e.Advance != 0 {
			k.Advance(t, e.Advance)
		}
		var answer *Exchange
		for n := range e.Times {
			answer = k.send(t, e, expand, client)
			if answer.Status != e.Status {
				t.Logf("status of %s, time %d of %d: got %d, want %d", e.Request[0], n+1, e.Times, answer.Status, e.Status)
				break
			}
		}
		got.Exchanges = append(got.Exchanges, answer)
	}
	return &got
}

// send sends one request on a connection of its own, byte by byte: an http.Client would refuse
// or correct the invalid requests among the vectors.
func (k *Kit) send(t *testing.T, e *Exchange, expand func(string) string, client string) *Exchange {
	conn, err := net.DialTimeout("tcp", k.Address, 5*time.Second)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))

	var raw bytes.Buffer
	fmt.Fprintf(&raw, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s: %s\r\n", expand(e.Request[0]), k.Address, k.ClientHeader, client)
	for _, header := range e.Request[1:] {
		fmt.Fprintf(&raw, "%s\r\n", expand(header))
	}
	raw.WriteString("\r\n")
	_, err = conn.Write(raw.Bytes())
	require.NoError(t, err)

	method, _, _ := strings.Cut(e.Request[0], " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return k.normal(t, e, res, body)
}

// normal returns the answer in the form of a vector.
func (k *Kit) normal(t *testing.T, e *Exchange, res *http.Response, body []byte) *Exchange {
	got := *e
	got.Status = res.StatusCode
	for _, name := range framing {
		res.Header.Del(name)
	}
	if !strings.HasPrefix(e.Request[0], "OPTIONS ") || res.StatusCode != http.StatusNoContent {
		for name, want := range everyAnswer {
			require.Equal(t, []string{want}, res.Header.Values(name), "%s of %s", name, e.Request[0])
			res.Header.Del(name)
		}
	}
	id := res.Header.Get("X-Request-Id")
	require.Len(t, res.Header.Values("X-Request-Id"), 1)
	require.Len(t, id, 26, "request id of %s", e.Request[0])

	normal := func(s string) string {
		s = strings.ReplaceAll(s, id, "{id}")
		return strings.ReplaceAll(s, k.Release, "{release}")
	}
	got.Headers = nil
	for name, values := range res.Header {
		for _, value := range values {
			got.Headers = append(got.Headers, spelling(name)+": "+normal(value))
		}
	}
	sort.Strings(got.Headers)
	got.Body = []byte(normal(string(body)))
	return &got
}

// spelling returns a header's name as its specification writes it; net/http changes the case of
// names.
func spelling(name string) string {
	for _, known := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "WWW-Authenticate"} {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	return name
}
