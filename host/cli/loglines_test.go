package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// TestALongErrorIsCutInTheLog, as one that quotes what something else than the writer answers.
func TestALongErrorIsCutInTheLog(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = conn.Write(append(bytes.Repeat([]byte{0x1c}, 5000), '\n'))
		_ = conn.Close()
	}()
	_, noise := http.Get("http://" + listener.Addr().String())
	require.ErrorContains(t, noise, "malformed HTTP response")
	require.Greater(t, len(noise.Error()), 20_000)

	for _, text := range []bool{false, true} {
		var lines bytes.Buffer
		log := newLog(&lines, slog.LevelInfo, text).With("node", "east").WithGroup("sync")
		log.Warn("the writer does not answer", "error", noise, "code", 7)
		require.Less(t, lines.Len(), 3*maxErrorBytes)
		for _, part := range []string{"the writer does not answer", "east", "malformed HTTP response", "bytes in all)", "code"} {
			require.Contains(t, lines.String(), part)
		}
		require.Equal(t, 1, strings.Count(lines.String(), "\n"))
	}
	var lines bytes.Buffer
	log := newLog(&lines, slog.LevelInfo, false)
	log.Error("short", "error", errors.New(strings.Repeat("é", maxErrorBytes/2)))
	require.NotContains(t, lines.String(), "bytes in all")
	lines.Reset()
	log.Error("long", "error", errors.New("x"+strings.Repeat("é", maxErrorBytes/2)))
	require.Contains(t, lines.String(), "é… (2001 bytes in all)")
	require.True(t, utf8.Valid(lines.Bytes()))
	require.NotContains(t, lines.String(), `\ufffd`, "it is not cut within a character")
	lines.Reset()
	log.Error("none", "error", (*net.OpError)(nil))
	log.Error("broken", "error", (*net.AddrError)(nil), "wrapped", shortError{})
	require.Equal(t, 2, strings.Count(lines.String(), "\n"), "no error ends the process")
	lines.Reset()
	newLog(&lines, slog.LevelWarn, false).Info("request")
	require.Empty(t, lines.String())
}
