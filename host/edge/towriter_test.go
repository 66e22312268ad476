package edge

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// dialSlowly is a transport whose name server answers after a pause: 127.0.0.1, whatever the name.
func dialSlowly(t *testing.T, pause time.Duration) *http.Transport {
	transport := writer.DialWithin(time.Minute)
	transport.DialContext = dialAny(&net.Dialer{Resolver: namesOf(t, pause, 1), Timeout: time.Minute}, attemptPause)
	return transport
}

// namesOf is a resolver whose name server answers after a pause, whatever the name: 127.0.0.N for each of the hosts. It is one of
// its own, since connections are made when their request, and perhaps the test, has ended.
func namesOf(t *testing.T, pause time.Duration, hosts ...byte) *net.Resolver {
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
				answer[7] = byte(len(hosts))
				for _, host := range hosts {
					answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, host)
				}
			}
			time.AfterFunc(pause, func() { _, _ = server.WriteTo(answer, from) })
		}
	}()
	t.Cleanup(func() { server.Close() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Resolver: new(net.Resolver)}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// TestTheWriterIsReachedBehindAddressesThatDoNotAnswer, such as those of machines that were its own before.
func TestTheWriterIsReachedBehindAddressesThatDoNotAnswer(t *testing.T) {
	centre := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer centre.Close()
	at, err := url.Parse(centre.URL)
	require.NoError(t, err)
	dialer := &net.Dialer{Resolver: namesOf(t, 0, 2, 3, 4, 5, 6, 1), Timeout: connectLimit}
	dialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		if address == at.Host {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	conn, err := dialAny(dialer, 20*time.Millisecond)(t.Context(), "tcp", "writer.example.org.:"+at.Port())
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	dialer.Timeout = 100 * time.Millisecond
	centre.Close()
	_, err = dialAny(dialer, time.Millisecond)(t.Context(), "tcp", "writer.example.org.:"+at.Port())
	require.Error(t, err, "and once none answers, it ends")
	require.Greater(t, connectLimit-5*time.Second, 8*attemptPause, "also behind a first name server that costs 5 s")
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
