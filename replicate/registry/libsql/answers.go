package libsql

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"regedge/replicate/dial"
)

const (
	// maxAnswer bounds an answer, in bytes. sqld gives at most 10 MB of rows.
	maxAnswer = 64 << 20
	// maxRefusal bounds how much of an error response is read: it is logged.
	maxRefusal = 4 << 10
)

// The driver reads an answer whole, however long it is, with http.DefaultClient, and takes no other client.
func init() { http.DefaultClient.Transport = boundedAnswers{} }

// boundedAnswers is http.DefaultTransport with a limit on answers to the driver. Its connect timeout is
// shorter than the calls', so that an error says which did not answer: the name server or the machine.
type boundedAnswers struct{}

// dialLimit has room for a first name server that does not answer, which costs 5 s.
const dialLimit = 8 * time.Second

// idleConns is how many idle connections without HTTP/2 are kept to a server: two for each of an edge's 32 streams, as
// the driver ends a stream in a call of its own beside the next statement. Go's default is two in all. With it 32
// callers opened 4,900 connections for 3,200 statements, where they open 90 now, and an edge runs out of ports at some
// 470 new connections a second.
const idleConns = 64

var transport = newTransport()

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = dial.Any(&net.Dialer{Timeout: dialLimit, KeepAlive: 30 * time.Second})
	t.HTTP2 = PingLost()
	t.Proxy = toOthers(t.Proxy)
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, idleConns
	return t
}

// toOthers uses a proxy only to other machines: where it did not answer, a primary that listens on all addresses would seem to
// accept no writes.
func toOthers(proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		by, err := proxy(r)
		if by != nil && isOwn(r.URL.Hostname()) {
			return nil, nil
		}
		return by, err
	}
}

// isOwn reports whether host is an address of this machine, or stands for all of them. It knows no names.
func isOwn(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	own, _ := net.InterfaceAddrs()
	return ip.IsUnspecified() || slices.ContainsFunc(own, func(a net.Addr) bool {
		of, ok := a.(*net.IPNet)
		return ok && of.IP.Equal(ip.AsSlice())
	})
}

// pingLimit is how long an HTTP/2 connection may be silent before a ping, and how long the answer to the ping may
// take.
const pingLimit = 3 * time.Second

// PingLost makes an HTTP/2 connection be given up when it was lost silently, as behind a firewall that has forgotten
// it. Otherwise all requests to its server would wait for it until TCP gives it up, after a quarter of an hour.
func PingLost() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: pingLimit, PingTimeout: pingLimit}
}

// RoundTrip implements http.RoundTripper.
func (boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := transport.RoundTrip(r)
	switch {
	case err != nil || !strings.HasSuffix(r.URL.Path, "/v2/pipeline"):
	case answer.StatusCode == http.StatusOK:
		answer.Body = &boundedAnswer{answer.Body, maxAnswer}
	default:
		answer.Body = cutAnswer{io.LimitReader(answer.Body, maxRefusal), answer.Body}
	}
	return answer, err
}

// cutAnswer is the beginning of an answer.
type cutAnswer struct {
	io.Reader
	io.Closer
}

type boundedAnswer struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *boundedAnswer) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: it has more than %d bytes", ErrAnswer, maxAnswer)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
