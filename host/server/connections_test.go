package server

import (
	"bufio"
	"crypto/tls"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"regedge/handler"
)

// exhausted is a listener that at first fails for want of file descriptors.
type exhausted struct {
	net.Listener
	times int
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.times--; l.times >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestAcceptContinuesAfterRunningOutOfDescriptors(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := newConnections(&exhausted{listener, 3}, slog.New(slog.DiscardHandler))
	client, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	c, err := l.Accept()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", c.(*connection).peer.text)
	require.Len(t, l.open, 1)
	require.NoError(t, c.Close())
	require.Empty(t, l.open)
	require.NoError(t, listener.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestAConnectionThatAStopHasEndedIsNotReadOn, though it has just got the deadline of its next request: the stop would
// take as long as that.
func TestAConnectionThatAStopHasEndedIsNotReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conn := net.Pipe()
		c := &connection{Conn: conn, peer: &peer{}}
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Hour)))
		c.end()
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestReadAheadLosesNothing reads a stream in pieces of every size around that of the buffer.
func TestReadAheadLosesNothing(t *testing.T) {
	sent := make([]byte, 4*readAhead)
	for i := range sent {
		sent[i] = byte(i % 251)
	}
	for _, size := range []int{1, 2, readAhead - 1, readAhead, readAhead + 1, len(sent)} {
		client, server := net.Pipe()
		go func() {
			client.Write(sent[:readAhead/2])
			client.Write(sent[readAhead/2:])
			client.Close()
		}()
		c := &connection{peer: &peer{}, Conn: server}
		var got []byte
		for first := true; ; first = false {
			piece := make([]byte, size)
			if first {
				piece = piece[:1] // as the server starts a request
			}
			n, err := c.Read(piece)
			got = append(got, piece[:n]...)
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				require.Zero(t, n)
				break
			}
			require.Positive(t, n)
		}
		require.Equal(t, sent, got, "pieces of %d bytes", size)
	}
}

// deadlines records the deadlines that are set on a connection.
type deadlines struct {
	net.Conn
	read, write []time.Time
}

func (c *deadlines) SetReadDeadline(t time.Time) error {
	c.read = append(c.read, t)
	return c.Conn.SetReadDeadline(t)
}

func (c *deadlines) SetWriteDeadline(t time.Time) error {
	c.write = append(c.write, t)
	return c.Conn.SetWriteDeadline(t)
}

func TestDeadlinesAreSetOnlyWhenTheyMatter(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	under := &deadlines{Conn: server}
	c := &connection{peer: &peer{}, Conn: under}
	now := time.Now()
	receive := func(want string) {
		t.Helper()
		piece := make([]byte, 1)
		_, err := c.Read(piece)
		require.NoError(t, err)
		require.Equal(t, want, string(piece))
	}
	require.NoError(t, c.SetReadDeadline(now.Add(time.Minute)))
	require.Empty(t, under.read, "nothing is read yet")
	go client.Write([]byte("ab"))
	receive("a")
	require.Equal(t, []time.Time{now.Add(time.Minute)}, under.read)
	require.NoError(t, c.SetReadDeadline(now.Add(time.Second)))
	receive("b") // read ahead, together with a
	require.Len(t, under.read, 1)
	require.NoError(t, c.SetReadDeadline(now.Add(time.Minute+deadlineSlack)))
	go client.Write([]byte("c"))
	receive("c")
	require.Len(t, under.read, 1, "within the slack")
	require.NoError(t, c.SetReadDeadline(now.Add(10*time.Millisecond)))
	_, err := c.Read(make([]byte, readAhead))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	go client.Write([]byte("d"))
	receive("d")
	require.Equal(t, []time.Time{now.Add(time.Minute), now.Add(10 * time.Millisecond), {}}, under.read)

	for _, after := range []time.Duration{time.Second, time.Second + deadlineSlack, time.Second + 2*deadlineSlack, time.Second} {
		require.NoError(t, c.SetWriteDeadline(now.Add(after)))
	}
	require.Equal(t, []time.Time{now.Add(time.Second), now.Add(time.Second + 2*deadlineSlack), now.Add(time.Second)}, under.write)
	require.NoError(t, c.SetDeadline(now))
	_, err = c.Write([]byte("late"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// TestWhatArrivesAtAnEndedConnectionIsNoRequest: it is read to the end, since a reset would take
// the last answer from the client.
func TestWhatArrivesAtAnEndedConnectionIsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		c := &connection{peer: &peer{}, Conn: server}
		result := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			result <- err
		}()
		synctest.Wait()
		c.end()
		_, err := client.Write([]byte("GET"))
		require.NoError(t, err)
		require.ErrorIs(t, <-result, net.ErrClosed)
		require.True(t, c.lingers.Load())
		require.NoError(t, client.Close())
	})
}

// TestAConnectionThatIsHandedOverTooLateIsClosed: else it would leak.
func TestAConnectionThatIsHandedOverTooLateIsClosed(t *testing.T) {
	client, server := net.Pipe()
	h := newHandOver(nil)
	require.NoError(t, h.Close())
	h.give(server)
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = h.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestWhoConnectsDuringTheEndIsToldSo: else the connection would wait for a request that nobody answers.
func TestWhoConnectsDuringTheEndIsToldSo(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	l := newConnections(listener, slog.New(slog.DiscardHandler))
	l.draining.Store(true)
	client, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	c, err := l.Accept()
	require.NoError(t, err)
	require.Equal(t, ended, c.(*connection).state.Load())
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.False(t, c.(*connection).begin())

	l.draining.Store(false)
	other, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer other.Close()
	c, err = l.Accept()
	require.NoError(t, err)
	require.NoError(t, l.closeAll())
	require.NoError(t, other.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = other.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, l.wait(t.Context()))
	runtime.KeepAlive(c) // a collected connection is closed too
}

// TestAServerWithoutDescriptorsWaits between its attempts, longer each time up to a second.
func TestAServerWithoutDescriptorsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := accept(&exhausted{newHandOverClosed(), 10}, slog.New(slog.DiscardHandler))
		require.ErrorIs(t, err, net.ErrClosed)
		require.Equal(t, (5+10+20+40+80+160+320+640+1000+1000)*time.Millisecond, time.Since(began))
	})
}

// newHandOverClosed is a listener that is closed.
func newHandOverClosed() net.Listener {
	h := newHandOver(nil)
	h.Close()
	return h
}

// TestAConnectionThatBeginsToWaitDuringTheEndIsEnded: the drain saw it while it was still busy.
func TestAConnectionThatBeginsToWaitDuringTheEndIsEnded(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	c := &connection{Conn: server, peer: &peer{}, of: newConnections(nil, slog.New(slog.DiscardHandler))}
	require.True(t, c.begin())
	c.await()
	require.Equal(t, waiting, c.state.Load())
	require.True(t, c.begin())
	c.of.draining.Store(true)
	c.await()
	require.Equal(t, ended, c.state.Load())
	require.False(t, c.begin())
	require.True(t, c.lingers.Load())
}

// lateClosing is a connection whose sending side closes late, as when the processor is busy.
type lateClosing struct {
	net.Conn
	asked, may chan struct{}
}

func (l *lateClosing) CloseWrite() error {
	l.asked <- struct{}{}
	<-l.may
	return l.Conn.(halfCloser).CloseWrite()
}

// TestARequestThatAStopLeavesOutHasNoAnswer: an empty 200, the library's own, is worse than none. It came in one piece with
// the one before it, and its connection is held up when the stop ends that.
func TestARequestThatAStopLeavesOutHasNoAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	accepted, err := listener.Accept()
	require.NoError(t, err)
	var held *counted
	s, _ := without(t, Config{Answerer: answerWith(func(a *handler.Response) error {
		a.Status, a.Headers = http.StatusOK, append(a.Headers, handler.Header{Name: "X-From", Value: "the service"})
		held.hold(longestHolds)
		return nil
	})})
	late := &lateClosing{accepted, make(chan struct{}, 2), make(chan struct{})}
	held = &counted{Conn: late, address: "192.0.2.1", closed: make(chan struct{}), of: &bounded{server: s, admission: newAdmission(1, 1)}}
	given := newHandOver(listener.Addr())
	web := s.newPlain(given).(plain)
	go web.serve()
	given.give(held)
	_, err = io.WriteString(client, strings.Repeat("GET /v1/llps/AAA-0001 HTTP/1.1\r\nHost: h\r\n\r\n", 2))
	require.NoError(t, err)
	from := bufio.NewReader(client)
	first, err := http.ReadResponse(from, nil)
	require.NoError(t, err)
	require.NotEmpty(t, first.Header["X-From"], "it is the service's")
	web.connections.mu.Lock()
	c := slices.Collect(maps.Keys(web.connections.open))[0]
	web.connections.mu.Unlock()
	require.Eventually(t, func() bool { return c.state.Load() == waiting }, 5*time.Second, time.Millisecond)
	go c.end()
	<-late.asked
	close(s.stopping)
	<-late.asked // as the connection is closed
	close(late.may)
	rest, err := io.ReadAll(from)
	require.NoError(t, err)
	require.Empty(t, string(rest))
}

// TestClientsThatReadNothingHoldUpNoStop: to take leave of such a client, TLS waits for 5 s, and there may be hundreds.
func TestClientsThatReadNothingHoldUpNoStop(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	synctest.Test(t, func(t *testing.T) {
		l := newConnections(newHandOverClosed(), slog.New(slog.DiscardHandler))
		bounded := &bounded{admission: newAdmission(5, 5), unread: prometheus.NewCounter(prometheus.CounterOpts{})}
		for _, state := range []int32{waiting, waiting, waiting, busy, busy} {
			client, server := net.Pipe() // which takes only what is read
			secured := tls.Server(&counted{Conn: server, of: bounded, closed: make(chan struct{})}, web.TLS)
			go tls.Client(client, &tls.Config{InsecureSkipVerify: true}).Handshake()
			require.NoError(t, secured.Handshake())
			c := &connection{Conn: secured, peer: &peer{}, of: l}
			c.state.Store(state)
			l.open[c] = struct{}{}
		}
		began := time.Now()
		l.drain()
		require.Zero(t, time.Since(began))
		require.NoError(t, l.closeAll())
		require.Zero(t, time.Since(began))
	})
}

// TestAConnectionThatWasHeldUpHasItsTimeAfterwards: a client can't send a request that is not read.
func TestAConnectionThatWasHeldUpHasItsTimeAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := without(t, Config{})
		client, server := net.Pipe()
		defer client.Close()
		held := &counted{Conn: server, of: &bounded{server: s}, address: "192.0.2.1", closed: make(chan struct{})}
		c := &connection{Conn: held, peer: &peer{conn: held}, of: newConnections(nil, slog.New(slog.DiscardHandler))}
		held.hold(7 * time.Second)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(5*time.Second)))
		go func() {
			time.Sleep(8 * time.Second)
			client.Write([]byte("GET"))
		}()
		n, err := c.Read(make([]byte, 1))
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

// halfPipe is a pipe whose sending side can be closed alone.
type halfPipe struct{ net.Conn }

func (halfPipe) CloseWrite() error { return nil }

// TestAClientThatGoesOnSendingIsLeft: its data is read for a while, so that it can read the last answer, and no longer.
func TestAClientThatGoesOnSendingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		c := &connection{Conn: halfPipe{server}, peer: &peer{}, of: newConnections(nil, slog.New(slog.DiscardHandler))}
		c.lingers.Store(true)
		var sending sync.WaitGroup
		sending.Go(func() {
			defer client.Close()
			for range 100 {
				if _, err := client.Write([]byte("more")); err != nil {
					return
				}
				time.Sleep(lingerTime / 10)
			}
		})
		began := time.Now()
		require.NoError(t, c.Close())
		require.Equal(t, lingerTime, time.Since(began))
		sending.Wait()
	})
}
