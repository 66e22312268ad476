package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/doctor"
	"regedge/host/hint"
	"regedge/host/pki"
	"regedge/host/units"
	"regedge/internal/testkit"
	"regedge/replicate/metering/writer"
	"regedge/schema"
	"regedge/schema/verify"
)

// TestARegistryThatHangsIsToldFromOneThatRefuses, and one without a release from one that failed.
func TestARegistryThatHangsIsToldFromOneThatRefuses(t *testing.T) {
	c := &statusCommand{Registry: "http://10.0.0.1:8181"}
	late := c.explainRegistry(fmt.Errorf("read the releases: %w", context.DeadlineExceeded))
	require.Contains(t, hint.Of(late), "nothing answered for http://10.0.0.1:8181 within 5s")
	require.NotContains(t, hint.Of(late), "name servers", "no name is resolved")
	named := (&statusCommand{Registry: "libsql://registry.example"}).explainRegistry(context.DeadlineExceeded)
	require.Contains(t, hint.Of(named), "do the name servers of this machine answer, is the machine on")
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

// TestAFindingSteersNoTerminal: it may quote what another machine has answered.
func TestAFindingSteersNoTerminal(t *testing.T) {
	var out strings.Builder
	require.NoError(t, writeFindings(&out, []doctor.Finding{{Service: "edge", What: "writer", Level: doctor.Wrong, Found: "it is \x1b[2Jgone", Do: "look"}}))
	require.NotContains(t, out.String(), "\x1b")
	require.Contains(t, out.String(), "WRONG  edge: writer: ")
	require.Contains(t, out.String(), "       do: look\n")
}

// TestDoctorExaminesAServiceAsItRuns: with its arguments, its environment alone, the time that was given, and the database of its
// unit's name. The program is a script, which says with what it was called.
func TestDoctorExaminesAServiceAsItRuns(t *testing.T) {
	program := filepath.Join(t.TempDir(), "regedge")
	script := "#!/bin/sh\nprintf '{\"findings\":[{\"service\":\"replica\",\"found\":\"%s, token %s\"}]}' \"$*\" \"$REGEDGE_TOKEN\"\n"
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
	t.Setenv("REGEDGE_TOKEN", "of the operator")
	var c doctorMachine
	c.Timeout = 7 * time.Second
	examined := func(s units.Service) doctor.Finding {
		t.Helper()
		found := c.examine(t.Context(), &Main{Now: time.Now, Stderr: io.Discard}, program, s)
		require.Len(t, found, 1)
		return found[0]
	}
	replica := examined(units.Service{Name: "regedge-replica@access", Instance: "access", Command: "replica", Arguments: []string{"--dir", "/d"}, Environment: []string{"REGEDGE_TOKEN=own"}})
	require.Equal(t, "doctor replica --dir /d --json --timeout 7s --database access, token own", replica.Found)
	require.Equal(t, "replica@access", replica.Service)
	edge := examined(units.Service{Name: "regedge-edge", Command: "edge"})
	require.Equal(t, "doctor edge --json --timeout 7s, token ", edge.Found)
}

// TestABackupThatIsWatchedIsEnoughWithoutAStandby, if the writer's own environment names it.
func TestABackupThatIsWatchedIsEnoughWithoutAStandby(t *testing.T) {
	c := doctorMachine{Units: t.TempDir()}
	for variable, want := range map[string]doctor.Level{"REGEDGE_BACKUP=/backup/ledger.db": doctor.OK, "REGEDGE_BACKUP=": doctor.Soon, "A=b": doctor.Soon} {
		services := []units.Service{{Command: "edge", Environment: []string{"REGEDGE_BACKUP=/x"}}, {Command: "writer", Environment: []string{variable}}}
		findings, err := c.examineStandby(t.Context(), &Main{Now: time.Now}, services)
		require.NoError(t, err)
		require.Len(t, findings, 1)
		require.Equal(t, want, findings[0].Level, variable)
		require.Equal(t, "writer", findings[0].Service)
	}
}

// TestAReplicasFileIsJudgedByItsAge, also where its endpoint does not answer.
func TestAReplicasFileIsJudgedByItsAge(t *testing.T) {
	of := replicasOf(t, time.Hour)
	dir := of.AccessReplica
	for maxAge, want := range map[time.Duration]doctor.Level{time.Minute: doctor.Wrong, 2 * time.Hour: doctor.Soon} {
		e := &doctor.Exam{Service: "edge", Now: time.Now, Timeout: 10 * time.Second}
		examineDatabase(t.Context(), e, databaseExam{database: schema.Access, name: "http://" + testkit.FreePort(t), replica: dir, maxAge: maxAge})
		var behind []doctor.Level
		for _, f := range e.Findings {
			if strings.Contains(f.Found, "behind") {
				behind = append(behind, f.Level)
			}
		}
		require.Equal(t, []doctor.Level{want}, behind, e.Findings)
	}
	replica := "doctor replica --listen 127.0.0.1:1 --primary http://127.0.0.1:1 --database access --dir " + dir
	edge := fmt.Sprintf("doctor edge --listen 127.0.0.1:1 --writer http://127.0.0.1:1 --token a-token --state %s --registry %s --registry-replica %s --registry-token a-token --access %s --access-replica %s",
		t.TempDir(), of.Registry, of.RegistryReplica, of.Access, of.AccessReplica)
	for _, c := range []struct{ line, want string }{
		{replica + " --max-lag 1m", "WRONG  replica: access: it is 1h0m"},
		{replica + " --max-lag 2h", "SOON   replica: access: it is 1h0m"},
		{edge + " --max-lag 2h --access-max-age 1m", "WRONG  edge: access: it is 1h0m"},
		{edge + " --max-lag 1m --access-max-age 2h", "WRONG  edge: access: it is 1h0m"},
		{edge + " --max-lag 2h --access-max-age 2h", "SOON   edge: access: it is 1h0m"},
		{edge + " --max-lag 2h --access-max-age 1m", "SOON   edge: registry: it is 1h0m"},
		{edge + " --max-lag 1m --access-max-age 2h", "WRONG  edge: registry: it is 1h0m"},
		{edge, "ok     edge: token of registry: it does not end"},
	} {
		_, said := ran(strings.Fields(c.line)...)
		require.Contains(t, said, c.want, c.line)
	}
}

// TestWhatFailedOnTheWaySteersNoTerminal, nor what is wrong with a file: both quote what others have written.
func TestWhatFailedOnTheWaySteersNoTerminal(t *testing.T) {
	out := new(testkit.Log)
	newStages(out, time.Now, "pushing").failed(errors.New("error code 500: \x1b[2J"), 1, 8, time.Second)
	require.NoError(t, writeVerified(&Main{Stdout: out}, &verify.Report{Problems: []string{"no row for \x1b[2J"}}))
	require.NoError(t, writeVerified(&Main{Stdout: out}, &verify.Report{Release: "\x1b[2J"}))
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"code": "unavailable", "detail": "wait \u001b[2J"}`))
	}))
	defer stranger.Close()
	ctx, end := context.WithCancel(t.Context())
	m := &Main{Stderr: io.MultiWriter(out, onWrite(end))}
	_, err := retrying(m, writer.NewClient(stranger.URL, "token", nil)).RevokeKey(ctx, 1)
	require.ErrorIs(t, err, writer.ErrUncertain)
	require.NotContains(t, out.String(), "\x1b")
	require.Equal(t, 4, strings.Count(out.String(), "[2J"), out.String())
}

// onWrite is called with each write to it.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// TestAHintSteersNoTerminal: it may quote an address that somebody else gave.
func TestAHintSteersNoTerminal(t *testing.T) {
	out := new(testkit.Log)
	(&Main{Stderr: out}).complain(hint.With(errors.New("refused"), "is it %s?", "\x1b[2J\u009b"))
	require.Equal(t, "regedge: refused\nhint: is it \ufffd[2J\ufffd?\n", out.String())
}
