package sqld

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/schema"
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

// TestAPrimaryWithoutAPortHasThatOfItsScheme, which the replica's own address keeps.
func TestAPrimaryWithoutAPortHasThatOfItsScheme(t *testing.T) {
	for address, want := range map[string]string{
		"http://primary.example": "primary.example:80", "https://primary.example": "primary.example:443",
		"https://[::1]": "[::1]:443", "https://primary.example:5001": "primary.example:5001",
	} {
		config := &Config{Primary: address}
		r, err := openRelay(config, &output{to: new(testkit.Log)}, time.Minute)
		require.NoError(t, err)
		require.Equal(t, want, r.primary)
		scheme, _, _ := strings.Cut(address, "//")
		require.Equal(t, scheme+"//"+r.listener.Addr().String(), config.Primary)
		r.close()
	}
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
	primary, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer primary.Close()
	config := &Config{Primary: "http://" + primary.Addr().String()}
	r, err := openRelay(config, &output{to: new(testkit.Log)}, time.Minute)
	require.NoError(t, err)
	defer r.close()
	near, err := net.Dial("tcp", r.listener.Addr().String())
	require.NoError(t, err)
	defer near.Close()
	far, err := primary.Accept()
	require.NoError(t, err)
	defer far.Close()
	for _, word := range []string{"first", "later"} { // the first one goes another way
		require.True(t, r.hold())
		_, err = far.Write([]byte(word))
		require.NoError(t, err)
		require.NoError(t, near.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
		_, err = near.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, word)
		r.release()
		require.NoError(t, near.SetReadDeadline(time.Now().Add(time.Minute)))
		heard := make([]byte, len(word))
		_, err = io.ReadFull(near, heard)
		require.NoError(t, err)
		require.Equal(t, word, string(heard))
	}
	// More than all buffers take.
	_ = far.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	_, err = far.Write(make([]byte, 64<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.False(t, r.hold())
}

// TestALogIsEmptiedWhileTheRelayIsHeld: a server that can't write meanwhile would copy its database anew.
func TestALogIsEmptiedWhileTheRelayIsHeld(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data")
	db, err := schema.OpenFile(file)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec("CREATE TABLE probe (n INTEGER)")
	require.NoError(t, err)
	server := &run{relay: &relay{}}
	server.relay.held.RLock() // it is given something
	_, err = server.emptyLog(file, 0)
	require.ErrorIs(t, err, errLogInUse)
	server.relay.held.RUnlock()
	freed, err := server.emptyLog(file, 0)
	require.NoError(t, err)
	require.Positive(t, freed)
	require.True(t, server.relay.held.TryLock(), "it is released")
	server.relay.held.Unlock()

	_, err = db.Exec("INSERT INTO probe VALUES (1)")
	require.NoError(t, err)
	ended := &run{relay: &relay{}, ended: make(chan struct{})}
	close(ended.ended)
	_, err = ended.emptyLog(file, 0)
	require.ErrorIs(t, err, errLogInUse, "another process may have the files")
}
