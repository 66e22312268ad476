package doctor

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// exam is one that waits long for answers: on a busy machine a handshake takes more than a second.
func exam() *Exam {
	return &Exam{Service: "edge", Now: func() time.Time { return time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC) }, Timeout: time.Minute}
}

func TestAnEndIsToldInTime(t *testing.T) {
	for left, want := range map[time.Duration]Level{
		-time.Second: Wrong, 7*24*time.Hour - time.Second: Wrong, 7 * 24 * time.Hour: Soon,
		30*24*time.Hour - time.Second: Soon, 30 * 24 * time.Hour: OK,
	} {
		e := exam()
		e.end("certificate", e.Now().Add(left), endsSoon, endsNow, "renew it")
		require.Equal(t, want, e.Findings[0].Level, "%v", left)
	}
}

// TestClocksAreComparedToTheSecond: a date says a second, so that it is the server's clock at some time
// within it.
func TestClocksAreComparedToTheSecond(t *testing.T) {
	for ahead, want := range map[time.Duration]Level{
		0: OK, -900 * time.Millisecond: OK, 5 * time.Second: OK, 5*time.Second + time.Millisecond: Wrong,
		-6 * time.Second: OK, -6*time.Second - time.Millisecond: Wrong, time.Hour: Wrong, -time.Hour: Wrong,
	} {
		e := exam()
		e.clock(&answer{date: e.Now().Add(ahead), asked: e.Now()})
		require.Equal(t, want, e.Findings[0].Level, "%v: %v", ahead, e.Findings)
		if side := map[bool]string{true: "1h0m0s ahead of", false: "59m59s behind"}[ahead > 0]; ahead.Abs() == time.Hour {
			require.Contains(t, e.Findings[0].Found, "the writer's clock is "+side+" this machine's")
		}
	}
}

// TestADateIsOfHalfwayToItsAnswer: an answer that took long makes no clock wrong.
func TestADateIsOfHalfwayToItsAnswer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	e := exam()
	a, err := e.ask(t.Context(), http.MethodGet, server.URL, "", false)
	require.NoError(t, err)
	require.Positive(t, a.took)
	require.Equal(t, e.Now().Add(a.took/2), a.asked)
}

func TestAnAddressOnAllInterfacesIsReachedOnTheLoopback(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:443": "127.0.0.1:443", "[::]:443": "127.0.0.1:443", ":443": "127.0.0.1:443",
		"10.0.0.1:443": "10.0.0.1:443", "centre.example:443": "centre.example:443",
	} {
		require.Equal(t, want, Dialable(address))
	}
}

// TestANameServerThatHangsIsNoWrongName: only an answer says that there is no such machine.
func TestANameServerThatHangsIsNoWrongName(t *testing.T) {
	testkit.NameServerHangs(t)
	e := exam()
	e.Timeout = 100 * time.Millisecond
	require.False(t, e.connects(t.Context(), "writer", "centre.example.org:8081"))
	require.Equal(t, Wrong, e.Findings[0].Level)
	require.Contains(t, e.Findings[0].Found, "do not say what centre.example.org is")
	require.Contains(t, e.Findings[0].Do, "/etc/resolv.conf")
	require.NotContains(t, e.Findings[0].Do, "spelling")

	e = exam()
	require.False(t, e.connects(t.Context(), "writer", "centre..example.org:8081"))
	require.Contains(t, e.Findings[0].Found, "the name centre..example.org can't be resolved")
	require.Contains(t, e.Findings[0].Do, "spelling")
}

func TestATokenThatWasRenewedCounts(t *testing.T) {
	// {"exp": 1795402800}, some days before the exam.
	const ended = "e30.eyJleHAiOjE3OTU0MDI4MDB9.x"
	e := exam()
	require.False(t, e.Renewed("registry", ended, 29*24*time.Hour))
	require.Zero(t, CountWrong(e.Findings), "%v", e.Findings)
	require.Equal(t, Soon, e.Findings[1].Level)
	e = exam()
	e.Token("registry", ended)
	require.Equal(t, Wrong, e.Findings[0].Level)
	for left, want := range map[time.Duration]Level{
		3*24*time.Hour - 1: Wrong, 3 * 24 * time.Hour: Soon, 10*24*time.Hour - 1: Soon, 10 * 24 * time.Hour: OK,
	} {
		e = exam()
		require.True(t, e.Renewed("registry", "", left))
		require.Equal(t, want, e.Findings[0].Level, left)
	}
}

func TestAURLWithoutAPortHasThatOfItsScheme(t *testing.T) {
	for address, want := range map[string]string{
		"http://a": "a:80", "https://a/x": "a:443", "libsql://a": "a:443", "https://a:8443": "a:8443", "http://[2001:db8::1]": "[2001:db8::1]:80",
	} {
		u, err := url.Parse(address)
		require.NoError(t, err)
		require.Equal(t, want, hostPort(u))
	}
}

// TestWhatIsNoFileInAStateDirectoryIsWrong: an edge does not start with it.
func TestWhatIsNoFileInAStateDirectoryIsWrong(t *testing.T) {
	for _, name := range []string{"journal-0000000000000003.log", "batches-00020784.log"} {
		e, dir := exam(), t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		e.State(dir)
		require.Equal(t, Wrong, e.Findings[0].Level)
		require.Contains(t, e.Findings[0].Found, name)
	}
}
