package sqld

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regedge/host/pki"
	"regedge/internal/testkit"
)

// TestNobodyIsGivenThePortBehindAGate: the server takes it some milliseconds after the gate was opened.
func TestNobodyIsGivenThePortBehindAGate(t *testing.T) {
	ca, cert, key, err := pki.Link(filepath.Join(t.TempDir(), "link"))
	require.NoError(t, err)
	files := &TLSFiles{CA: ca, Cert: cert, Key: key}
	for name, open := range map[string]func() (string, func()){
		"replication": func() (string, func()) {
			config := Config{GRPC: testkit.FreePort(t), TLS: files, Link: files}
			g, err := openGate(&config, newOutput(io.Discard))
			require.NoError(t, err)
			return config.GRPC, g.close
		},
		"queries": func() (string, func()) {
			config := Config{HTTP: testkit.FreePort(t), Reads: &Reads{}}
			g, err := openReads(&config, newOutput(io.Discard), nil)
			require.NoError(t, err)
			return config.HTTP, g.close
		},
	} {
		t.Run(name, func(t *testing.T) {
			address, end := open()
			defer end()
			require.ErrorIs(t, takeAlone(t, address), unix.EADDRINUSE)
			server, err := net.Listen("tcp", address)
			require.NoError(t, err, "the server itself can listen")
			require.NoError(t, server.Close())
			end()
			require.NoError(t, takeAlone(t, address), "the port is given up with the gate")
		})
	}
}

// takeAlone binds a socket to a port as the kernel does when it chooses one: only if no other has it.
func takeAlone(t *testing.T, address string) error {
	t.Helper()
	at, err := net.ResolveTCPAddr("tcp", address)
	require.NoError(t, err)
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(socket)
	return unix.Bind(socket, &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())})
}

func TestTheCallsOfACertificateAreBounded(t *testing.T) {
	g := &gate{calls: map[string]int{}}
	for range callsAtOnce {
		require.True(t, g.enter("1"))
	}
	require.False(t, g.enter("1"))
	require.True(t, g.enter("2"), "each has its own")
	g.leave("1")
	require.True(t, g.enter("1"))
}

// TestAGateKeepsNoBaseOpen: edges ask for it whenever they start to follow.
func TestAGateKeepsNoBaseOpen(t *testing.T) {
	s := &Server{Config: Config{Dir: t.TempDir(), Link: &TLSFiles{}}}
	b := requireBaseOf(t, s, placed(t, s))
	g := &gate{dir: s.Dir, output: newOutput(t.Output()), follows: make(map[string]bool)}
	for _, known := range []string{"", b.Log.tag()} {
		r, w := httptest.NewRequest(http.MethodGet, basePath, nil), httptest.NewRecorder()
		r.Header.Set("If-None-Match", known)
		g.serveBase(w, r, "edge", "serial")
		require.Less(t, w.Code, 400)
		open, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		for _, file := range open {
			if to, err := os.Readlink("/proc/self/fd/" + file.Name()); err == nil {
				require.NotEqual(t, filepath.Join(s.Dir, baseFolder, baseData), to)
			}
		}
	}
}
