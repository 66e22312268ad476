package libsql

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// maxAnswer bounds an answer, in bytes. sqld gives at most 10 MB of rows.
	maxAnswer = 64 << 20
	// maxRefusal is how much is read of an answer that is an error: it gets into the log.
	maxRefusal = 4 << 10
)

// The driver reads an answer whole, however long it is, with http.DefaultClient, and takes no other client.
func init() { http.DefaultClient.Transport = boundedAnswers{} }

// boundedAnswers is http.DefaultTransport, which ends answers to the driver that are too long. Its
// connections are given up before the calls for which they are wanted, so that an error says what is
// missing: a name server that answers, or a machine.
type boundedAnswers struct{}

// dialLimit has room for a first name server that does not answer, which costs 5 s.
const dialLimit = 8 * time.Second

var transport = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: dialLimit, KeepAlive: 30 * time.Second}).DialContext
	return t
}()

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
