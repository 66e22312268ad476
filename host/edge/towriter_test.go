package edge

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// dialSlowly is a transport whose name server answers after a pause: 127.0.0.1, whatever the name. It has a resolver of its own,
// since its connections are made when their request, and perhaps the test, has ended.
func dialSlowly(t *testing.T, pause time.Duration) *http.Transport {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for question := make([]byte, 512); ; {
			n, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			answer := append([]byte(nil), question[:n]...)
			answer[2], answer[3], answer[11] = 0x81, 0x80, 0 // an answer, without the question's additional record
			end := 12
			for ; answer[end] != 0; end += int(answer[end]) + 1 {
			}
			answer = answer[:end+5]
			if answer[end+2] == 1 { // A
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
			}
			time.AfterFunc(pause, func() { _, _ = server.WriteTo(answer, from) })
		}
	}()
	t.Cleanup(func() { server.Close() })
	names := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Resolver: new(net.Resolver)}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	transport := writer.DialWithin(time.Minute)
	transport.DialContext = (&net.Dialer{Resolver: names, Timeout: time.Minute}).DialContext
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
