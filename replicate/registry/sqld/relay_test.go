package sqld

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// TestAPrimaryThatSaysNothingIsLeft, so that sqld connects again: it would wait for
// the handshake without an end.
func TestAPrimaryThatSaysNothingIsLeft(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	log := new(testkit.Log)
	config := &Config{Primary: "http://" + silent.Addr().String()}
	r, err := openRelay(config, &output{to: log}, time.Second)
	require.NoError(t, err)
	defer r.close()
	conn, err := net.Dial("tcp", r.listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = conn.Read(make([]byte, 1))
	var late net.Error
	require.False(t, err == nil || errors.As(err, &late) && late.Timeout(), "%v", err)
	require.Contains(t, log.String(), "takes connections and says nothing")
}

// TestAConnectionMayBeSilentAfterItsFirstWord: a replica waits for the next change as long as there is none.
func TestAConnectionMayBeSilentAfterItsFirstWord(t *testing.T) {
	primary, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer primary.Close()
	config := &Config{Primary: "http://" + primary.Addr().String()}
	r, err := openRelay(config, &output{to: new(testkit.Log)}, 500*time.Millisecond)
	require.NoError(t, err)
	defer r.close()
	near, err := net.Dial("tcp", r.listener.Addr().String())
	require.NoError(t, err)
	defer near.Close()
	far, err := primary.Accept()
	require.NoError(t, err)
	defer far.Close()
	require.NoError(t, near.SetReadDeadline(time.Now().Add(time.Minute)))
	for _, word := range []string{"one", "two"} {
		_, err = far.Write([]byte(word))
		require.NoError(t, err)
		heard := make([]byte, len(word))
		_, err = io.ReadFull(near, heard)
		require.NoError(t, err)
		require.Equal(t, word, string(heard))
		time.Sleep(2 * r.patience)
	}
}

// TestAHeldRelayPassesNothingOn, until it is released; it is not held beside a server that takes nothing.
func TestAHeldRelayPassesNothingOn(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	r := &relay{}
	require.True(t, r.hold())
	passed := make(chan error)
	go func() {
		_, err := heldWriter{far, &r.held}.Write([]byte("x"))
		passed <- err
	}()
	require.NoError(t, near.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := near.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	r.release()
	require.Eventually(t, func() bool {
		free := r.held.TryLock()
		if free {
			r.held.Unlock()
		}
		return !free
	}, time.Minute, time.Millisecond, "it is being written")
	require.False(t, r.hold())
	require.NoError(t, near.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = near.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, <-passed)
	require.True(t, r.hold())
}
