package cli

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
)

// profile asks for a profile, and returns the status and the answer.
func profile(t *testing.T, address, name, token string) (int, []byte) {
	t.Helper()
	request, err := http.NewRequest("GET", "http://"+address+"/debug/pprof/"+name, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, body
}

// isProfile holds that go tool pprof can read a profile.
func isProfile(t *testing.T, content []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "profile")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	out, err := exec.Command("go", "tool", "pprof", "-raw", file).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "Samples:")
}

func TestProfilesAreServedOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	c := startCentre(t)
	quiet := c.edge(t, "quiet", "--metrics", "127.0.0.1:0")
	for _, name := range []string{"", "heap", "profile?seconds=1", "cmdline"} {
		status, _ := profile(t, quiet.addr("metrics"), name, "")
		require.Equal(t, http.StatusNotFound, status, name)
	}
	status, _ := profile(t, c.addr("writer"), "heap", operatorToken)
	require.Equal(t, http.StatusNotFound, status)

	p := c.edge(t, "profiled", "--metrics", "127.0.0.1:0", "--pprof")
	status, page := profile(t, p.addr("metrics"), "", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, string(page), "goroutine")
	for _, name := range []string{"heap", "profile?seconds=1"} {
		status, content := profile(t, p.addr("metrics"), name, "")
		require.Equal(t, http.StatusOK, status, name)
		isProfile(t, content)
	}
	status, _ = profile(t, p.addr("metrics"), "cmdline", "")
	require.Equal(t, http.StatusNotFound, status, "the command line may hold tokens")
	status, _ = profile(t, p.addr("lookups"), "heap", "")
	require.Equal(t, http.StatusNotFound, status, "clients get none")

	code, said := ran("edge", "--listen", "127.0.0.1:0", "--registry", c.path("registry.db"), "--access", c.path("access.db"),
		"--writer", c.url(), "--state", c.path("x"), "--token", "x", "--pprof")
	require.Equal(t, exitMisuse, code)
	require.Contains(t, said, "--pprof needs --metrics")
}

func TestTheWritersProfilesNeedItsOwnToken(t *testing.T) {
	c := startCentre(t, "--pprof")
	made, err := c.client.AddToken(t.Context(), "prometheus", "read", 1e12)
	require.NoError(t, err)
	for token, want := range map[string]int{"": 401, "wrong": 401, made.Token: 401, operatorToken: 200} {
		status, _ := profile(t, c.addr("writer"), "heap", token)
		require.Equal(t, want, status, token)
	}
	_, content := profile(t, c.addr("writer"), "heap", operatorToken)
	isProfile(t, content)
	response, err := http.Get("http://" + c.addr("writer") + "/readyz")
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, 200, response.StatusCode)
}

// TestTheMetersProfilesNeedAFlag, and a meter that ends leaves its state to the next.
func TestTheMetersProfilesNeedAFlag(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	for pprof, want := range map[bool]int{false: http.StatusNotFound, true: http.StatusOK} {
		flags := []string{"meter", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--writer", "http://127.0.0.1:1",
			"--state", state, "--token", "token", "--meter-token", "another"}
		if pprof {
			flags = append(flags, "--pprof")
		}
		p := start(flags...)
		t.Cleanup(func() { p.halt() })
		require.True(t, p.await(func() bool { return p.addr("meter") != "" }), p.stderr.String())
		status, _ := profile(t, p.addr("metrics"), "heap", "")
		require.Equal(t, want, status)
		response, err := http.Get("http://" + p.addr("metrics") + "/metrics")
		require.NoError(t, err)
		response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, exitOK, p.halt(), p.stderr.String())
	}
}

func TestAPrimarysAndAReplicasProfilesNeedAFlag(t *testing.T) {
	dir, program := t.TempDir(), sqldtest.Program(t)
	made, err := pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	cert, key, err := made.Certificate("primary", "127.0.0.1")
	require.NoError(t, err)
	putAwaySigningKeys(t, filepath.Join(dir, "trust"))
	for name, flags := range map[string][]string{
		"primary": {
			"--replication", testkit.FreePort(t), "--jwt-key", made.PrimaryKeyFile("access"),
			"--tls-ca", made.AuthorityFile(), "--tls-cert", cert, "--tls-key", key,
		},
		"replica": {"--primary", "http://" + testkit.FreePort(t)},
	} {
		t.Run(name, func(t *testing.T) {
			flags := append([]string{name, "--sqld", program, "--dir", filepath.Join(dir, name), "--listen", testkit.FreePort(t)}, flags...)
			code, said := ran(append(flags, "--pprof")...)
			require.Equal(t, exitMisuse, code)
			require.Contains(t, said, "--pprof needs --metrics")
			flags = append(flags, "--metrics", "127.0.0.1:0")
			for _, pprof := range []bool{false, true} {
				want := http.StatusNotFound
				if pprof {
					flags, want = append(flags, "--pprof"), http.StatusOK
				}
				p := start(flags...)
				require.True(t, p.await(func() bool { return p.addr("metrics") != "" }), p.stderr.String())
				status, content := profile(t, p.addr("metrics"), "heap", "")
				require.Equal(t, want, status)
				if pprof {
					isProfile(t, content)
				}
				require.Equal(t, exitOK, p.halt(), p.stderr.String())
			}
		})
	}
}
