package doctor

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// TestASecondAddressIsAsked where the first one of the name does not answer: regedge reaches the writer there, too.
func TestASecondAddressIsAsked(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	require.NoError(t, err)
	silent := [4]byte{127, 0, 0, 2}
	takesNothing(t, silent, web.Listener.Addr().(*net.TCPAddr).Port)
	resolveTo(t, silent, [4]byte{127, 0, 0, 1})
	e := exam()
	e.Timeout = 3 * time.Second // the first address gets two, which is Go's least
	a, err := e.ask(t.Context(), http.MethodGet, "http://centre.example.org:"+port, "", false)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, a.status)
}

// takesNothing listens at an address with a queue that is full: packets to it are dropped.
func takesNothing(t *testing.T, address [4]byte, port int) {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Close(socket)) })
	at := &unix.SockaddrInet4{Addr: address, Port: port}
	require.NoError(t, unix.Bind(socket, at))
	require.NoError(t, unix.Listen(socket, 0))
	for range 4 {
		waits, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, unix.Close(waits)) })
		_ = unix.Connect(waits, at)
	}
}

// resolveTo gives all names these addresses, in this order, until the test ends.
func resolveTo(t *testing.T, addresses ...[4]byte) {
	t.Helper()
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			length := make([]byte, 2)
			if _, err := io.ReadFull(far, length); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(length))
			var m dnsmessage.Message
			if _, err := io.ReadFull(far, query); err != nil || m.Unpack(query) != nil {
				return
			}
			m.Response, m.Additionals = true, nil
			for _, a := range addresses {
				if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: a},
					})
				}
			}
			if answer, err := m.AppendPack(make([]byte, 2)); err == nil {
				binary.BigEndian.PutUint16(answer, uint16(len(answer)-2))
				_, _ = far.Write(answer)
			}
		}()
		return near, nil
	}}
}
