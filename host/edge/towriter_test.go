package edge

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/metering/writer"
)

// dialSlowly is a transport whose name server answers after a pause: 127.0.0.1, whatever the name.
func dialSlowly(t *testing.T, pause time.Duration) *http.Transport {
	transport := writer.DialWithin(time.Minute)
	transport.DialContext = (&net.Dialer{Resolver: testkit.Names(t, pause, 1), Timeout: time.Minute}).DialContext
	return transport
}

// TestTheWriterIsReachedByASecondNameServer: the first costs 5 s, longer than a request waits. A meter beside Spin never reached
// the writer, and an edge only because it sends reports, too, whose lookups overlap.
func TestTheWriterIsReachedByASecondNameServer(t *testing.T) {
	require.Greater(t, connectLimit, 5*time.Second, "after which Go asks the next one")
	const limit = 500 * time.Millisecond
	centre := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			time.Sleep(3 * limit)
		}
	}))
	defer centre.Close()
	at, err := url.Parse(centre.URL)
	require.NoError(t, err)
	to := &toWriter{dialSlowly(t, 2*time.Second), limit}
	defer to.CloseIdleConnections()
	client := &http.Client{Transport: to, Timeout: time.Minute}
	name := "http://writer.example.org.:" + at.Port()
	_, err = client.Get(name)
	var unnamed *net.DNSError
	require.ErrorAs(t, err, &unnamed)
	require.Equal(t, "writer.example.org.", unnamed.Name)
	require.Eventually(t, func() bool {
		answer, err := client.Get(name)
		return err == nil && answer.Body.Close() == nil
	}, time.Minute, 30*time.Millisecond)
	answer, err := client.Get(name + "/held")
	require.NoError(t, err, "with a connection it waits on")
	require.NoError(t, answer.Body.Close())
}

// TestAWriterThatDoesNotAnswerIsNamed, be it its name server or its machine.
func TestAWriterThatDoesNotAnswerIsNamed(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // TLS is not begun
	require.NoError(t, err)
	defer silent.Close()
	client := &http.Client{Transport: &toWriter{dialSlowly(t, time.Hour), 500 * time.Millisecond}, Timeout: time.Minute}
	_, err = client.Get("https://" + silent.Addr().String())
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorContains(t, err, "connect to "+silent.Addr().String())
	_, err = client.Get("https://writer.example.org")
	require.ErrorContains(t, err, "lookup writer.example.org: i/o timeout")
}
