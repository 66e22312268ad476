package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/doctor"
	"regedge/host/hint"
	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/schema/verify"
)

// TestARegistryThatHangsIsToldFromOneThatRefuses, and one without a release from one that failed.
func TestARegistryThatHangsIsToldFromOneThatRefuses(t *testing.T) {
	c := &statusCommand{Registry: "http://10.0.0.1:8181"}
	late := c.explainRegistry(fmt.Errorf("read the releases: %w", context.DeadlineExceeded))
	require.Contains(t, hint.Of(late), "nothing answered for http://10.0.0.1:8181 within 5s")
	refused := c.explainRegistry(errors.New("refused"))
	require.Contains(t, hint.Of(refused), "is the registry's server running at http://10.0.0.1:8181")
	require.NoError(t, c.explainRegistry(nil))
	for empty, want := range map[bool]int{true: 1, false: 0} {
		var b strings.Builder
		require.NoError(t, (&status{empty: empty}).write(&b))
		require.Equal(t, want, strings.Count(b.String(), "No release has been pushed to the registry yet."))
	}
}

// TestDoctorLooksAtAllThatAServiceIsGiven: the certificate that it serves, its own token, its backup and its databases.
func TestDoctorLooksAtAllThatAServiceIsGiven(t *testing.T) {
	dir := t.TempDir()
	trust, err := pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	cert, key, err := trust.Certificate("served", "localhost")
	require.NoError(t, err)
	mine := filepath.Join(dir, "mine") // without the keys that sign
	require.NoError(t, os.Mkdir(mine, 0o700))
	for from, to := range map[string]string{cert: "served.crt", key: "served.key"} {
		content, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(mine, to), content, 0o600))
	}
	cert, key = filepath.Join(mine, "served.crt"), filepath.Join(mine, "served.key")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "backup.db"), []byte("ledger"), 0o600))
	closed, late := testkit.FreePort(t), func() time.Time { return time.Now().AddDate(3, 0, 0) }
	found := func(what string, args ...string) doctor.Finding {
		t.Helper()
		out := new(testkit.Log)
		m := &Main{Stdin: strings.NewReader(""), Stdout: out, Stderr: out, Environ: func() []string { return nil }, Now: late}
		code := m.Run(t.Context(), append([]string{"doctor"}, args...))
		require.Equal(t, exitFailure, code, out.String())
		for line := range strings.Lines(out.String()) {
			if _, rest, ok := strings.Cut(line, args[0]+": "+what+": "); ok {
				return doctor.Finding{Level: doctor.Level(strings.Fields(line)[0]), Found: strings.TrimSpace(rest)}
			}
		}
		require.Fail(t, "no such finding", "%s: %s", what, out.String())
		return doctor.Finding{}
	}
	edge := []string{"edge", "--listen", closed, "--registry", filepath.Join(dir, "none.db"), "--access", filepath.Join(dir, "none.db"),
		"--writer", "http://" + closed, "--state", dir, "--token", "some-node-token", "--tls-cert", cert, "--tls-key", key}
	writer := []string{"writer", "--listen", closed, "--database", filepath.Join(dir, "none.db"), "--access", filepath.Join(dir, "none.db"),
		"--tls-cert", cert, "--tls-key", key, "--backup", filepath.Join(dir, "backup.db"), "--registry", "http://" + closed}
	client := []string{"client", "--writer", "http://" + closed, "--token", operatorToken, "--registry", "http://" + closed}
	for _, c := range []struct {
		what  string
		args  []string
		words string
	}{
		{"certificate for clients", edge, "it ended at "},
		{"certificate", writer, "it ended at "},
		{"operators' token", writer, "there is none"},
		{"backup", writer, filepath.Join(dir, "backup.db") + " is 10"},
		{"ledger", writer, "is not there"},
		{"registry", writer, "nothing listens at " + closed},
		{"registry", client, "nothing listens at " + closed},
	} {
		f := found(c.what, c.args...)
		require.Equal(t, doctor.Level("WRONG"), f.Level, f.Found)
		require.Contains(t, f.Found, c.words)
	}
}

// TestWhatIsNotAnsweredOfARegistryIsCounted when it is verified, and a problem says what to do.
func TestWhatIsNotAnsweredOfARegistryIsCounted(t *testing.T) {
	out := new(testkit.Log)
	m := &Main{Stdout: out, Stderr: out}
	report := verify.Report{Release: "r1", Unlinked: map[string]int64{"partners without their LLP": 3, "appointments": 2}}
	require.NoError(t, writeVerified(m, &report))
	require.Contains(t, out.String(), "appointments: 2 (kept, and not answered)\npartners without their LLP: 3 (kept, and not answered)\n")
	require.Contains(t, out.String(), "release r1 is whole")
	out = new(testkit.Log)
	m.Stdout, report.Problems = out, []string{"a count differs"}
	require.NoError(t, writeVerified(m, &report))
	require.Contains(t, out.String(), "not whole: a count differs\n")
	require.NotContains(t, out.String(), "is whole")
}

// TestAnEdgeForOtherMachinesNeedsTheAddressOfItsPages: the links in errors would name this machine.
func TestAnEdgeForOtherMachinesNeedsTheAddressOfItsPages(t *testing.T) {
	everywhere, here := &net.TCPAddr{IP: net.IPv4zero, Port: 8080}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	for _, c := range []struct {
		addr net.Addr
		docs string
		want bool
	}{
		{everywhere, "", true}, {&net.TCPAddr{IP: net.IPv6zero, Port: 8080}, "", true}, {everywhere, "https://docs.example.org", false}, {here, "", false},
	} {
		f := &edgeFlags{DocsURL: c.docs}
		require.Equal(t, c.want, f.needsDocsURL(c.addr), c.addr)
		n := &devNode{devCommand: &devCommand{edgeFlags: *f}, addr: c.addr}
		require.Equal(t, c.want, n.notice() != "")
	}
}

// TestAHintSteersNoTerminal: it may quote an address that somebody else gave.
func TestAHintSteersNoTerminal(t *testing.T) {
	out := new(testkit.Log)
	(&Main{Stderr: out}).complain(hint.With(errors.New("refused"), "is it %s?", "\x1b[2J\u009b"))
	require.Equal(t, "regedge: refused\nhint: is it \ufffd[2J\ufffd?\n", out.String())
}
