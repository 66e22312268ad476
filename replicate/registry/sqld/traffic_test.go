package sqld

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTrafficIsCountedOnBothSides(t *testing.T) {
	for name, counted := range map[string][2]*Traffic{"counted": {new(Traffic), new(Traffic)}, "not counted": {nil, nil}} {
		t.Run(name, func(t *testing.T) {
			primary, replica := counted[0], counted[1]
			plain, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			listener := primary.listener(plain)
			defer listener.Close()
			served := make(chan error, 1)
			go func() {
				c, err := listener.Accept()
				if err == nil {
					_, err = io.ReadFull(c, make([]byte, 3))
				}
				if err == nil {
					_, err = c.Write(make([]byte, 5000))
				}
				served <- err
				if c != nil {
					c.Close()
				}
			}()
			c, err := replica.dial(t.Context(), "tcp", plain.Addr().String())
			require.NoError(t, err)
			defer c.Close()
			_, err = c.Write([]byte("abc"))
			require.NoError(t, err)
			got, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Len(t, got, 5000)
			require.NoError(t, <-served)
			if primary != nil {
				require.Equal(t, [4]int64{5000, 3, 3, 5000}, [4]int64{
					primary.Sent.Load(), primary.Received.Load(), replica.Sent.Load(), replica.Received.Load(),
				})
			}
		})
	}
	_, err := new(Traffic).dial(t.Context(), "tcp", "127.0.0.1:1")
	require.Error(t, err)
}
