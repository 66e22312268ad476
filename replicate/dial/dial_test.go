package dial

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// TestAServerIsReachedBehindAddressesThatDoNotAnswer, such as those of machines that were its own before.
func TestAServerIsReachedBehindAddressesThatDoNotAnswer(t *testing.T) {
	centre := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer centre.Close()
	at, err := url.Parse(centre.URL)
	require.NoError(t, err)
	dialer := &net.Dialer{Resolver: testkit.Names(t, 0, 2, 3, 4, 5, 6, 1), Timeout: time.Minute}
	dialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		if address == at.Host {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	conn, err := anyAfter(dialer, 20*time.Millisecond)(t.Context(), "tcp", "writer.example.org.:"+at.Port())
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	dialer.Timeout = 100 * time.Millisecond
	centre.Close()
	_, err = anyAfter(dialer, time.Millisecond)(t.Context(), "tcp", "writer.example.org.:"+at.Port())
	var dialed *net.OpError
	require.ErrorAs(t, err, &dialed, "and once none answers, it ends")
	require.True(t, dialed.Timeout())
	require.ErrorContains(t, err, "dial tcp writer.example.org.:"+at.Port()+": i/o timeout")
}

// TestAServerIsReachedBehindMachinesThatAreGone: what they are sent is lost, as by a firewall.
func TestAServerIsReachedBehindMachinesThatAreGone(t *testing.T) {
	centre, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer centre.Close()
	at := netip.MustParseAddrPort(centre.Addr().String())
	gone := []byte{2, 3, 4, 5}
	for _, host := range gone {
		swallow(t, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, host}), at.Port()))
	}
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = testkit.Names(t, 0, append(gone, 1)...)
	conn, err := Any(&net.Dialer{Timeout: 8 * time.Second})(t.Context(), "tcp", "writer.example.org.:"+fmt.Sprint(at.Port()))
	require.NoError(t, err)
	require.Equal(t, centre.Addr().String(), conn.RemoteAddr().String())
	require.NoError(t, conn.Close())
}

// TestTheConnectionThatComesSecondIsClosed: nobody else would.
func TestTheConnectionThatComesSecondIsClosed(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	defer first.Close()
	port := fmt.Sprint(netip.MustParseAddrPort(first.Addr().String()).Port())
	second, err := net.Listen("tcp", "127.0.0.3:"+port)
	require.NoError(t, err)
	defer second.Close()
	taken := make(chan net.Conn)
	for _, l := range []net.Listener{first, second} {
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				taken <- conn
			}
		}()
	}
	for range 100 {
		var ready sync.WaitGroup
		ready.Add(2)
		dialer := &net.Dialer{Resolver: testkit.Names(t, 0, 2, 3), Timeout: time.Minute}
		dialer.ControlContext = func(context.Context, string, string, syscall.RawConn) error {
			ready.Done()
			ready.Wait() // both connect at the same time
			return nil
		}
		conn, err := anyAfter(dialer, time.Millisecond)(t.Context(), "tcp", "server.example.org.:"+port)
		require.NoError(t, err)
		for left := 2; left > 0; left-- {
			select {
			case other := <-taken:
				if other.RemoteAddr().String() != conn.LocalAddr().String() {
					require.NoError(t, other.SetReadDeadline(time.Now().Add(10*time.Second)))
					_, err = other.Read(make([]byte, 1))
					require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
				}
				require.NoError(t, other.Close())
			case <-time.After(50 * time.Millisecond): // the other was given up before it was made
			}
		}
		require.NoError(t, conn.Close())
	}
}

// swallow listens at an address until the test ends, and takes no connection: there is room for none.
func swallow(t *testing.T, at netip.AddrPort) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}))
	require.NoError(t, syscall.Listen(fd, 0))
	for range 3 { // the first fill it
		conn, err := net.DialTimeout("tcp", at.String(), 200*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("connections are taken beyond the backlog")
}
