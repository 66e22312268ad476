package sqld

import (
	"context"
	"net"
	"sync/atomic"

	"regedge/replicate/dial"
)

// Traffic counts the bytes of replication as they are on the wire: what a primary sends to its replicas, and
// what a replica receives from its primary and a mirror. A nil Traffic counts nothing.
type Traffic struct{ Sent, Received atomic.Int64 }

// listener counts what is sent and received by the connections of a listener.
func (t *Traffic) listener(l net.Listener) net.Listener {
	if t == nil {
		return l
	}
	return countedListener{l, t}
}

// dial connects with a primary or a mirror. The connection ends when the other side is silently gone.
func (t *Traffic) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: handshakeTimeout, KeepAliveConfig: keepalive, Control: boundSilence}
	c, err := dial.Any(dialer)(ctx, network, address)
	if err != nil || t == nil {
		return c, err
	}
	return countedConn{c, t}, nil
}

type countedListener struct {
	net.Listener
	traffic *Traffic
}

func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{c, l.traffic}, nil
}

type countedConn struct {
	net.Conn
	traffic *Traffic
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.traffic.Received.Add(int64(n))
	return n, err
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.traffic.Sent.Add(int64(n))
	return n, err
}
