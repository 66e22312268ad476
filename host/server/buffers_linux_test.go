package server_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/server"
)

// TestTheKernelHoldsLittleForAClientThatReadsNothing counts what a client can send, and what it can
// read later, while it asks for large answers and reads nothing.
func TestTheKernelHoldsLittleForAClientThatReadsNothing(t *testing.T) {
	r := start(t, server.Config{Answerer: constant(handler.Response{Status: 200, Body: make([]byte, handler.MaxBody)})})
	conn, err := r.dial()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	request := []byte("GET /v1/llps/a HTTP/1.1\r\nHost: h\r\n\r\n")
	for range 1000 {
		_, err := conn.Write(request)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return r.measured(t, "regedge_connections_writing") == 1 }, time.Minute, time.Millisecond)
	time.Sleep(200 * time.Millisecond) // an answer that is not blocked takes microseconds
	const answers = 4
	lines := r.log.lines()
	require.Less(t, len(lines), answers, "answers that are on their way to a client that reads nothing")
}
