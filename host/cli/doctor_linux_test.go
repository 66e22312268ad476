package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regedge/host/doctor"
	"regedge/host/pki"
	"regedge/host/units"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/sqld"
)

// diagnosed is what regedge doctor says.
type diagnosed struct {
	t    *testing.T
	code int
	diagnosis
}

// diagnose runs regedge doctor with a clock.
func diagnose(t *testing.T, now func() time.Time, args ...string) *diagnosed {
	t.Helper()
	stdout, stderr := new(testkit.Log), new(testkit.Log)
	main := &Main{Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Environ: func() []string { return nil }, Now: now}
	d := &diagnosed{t: t, code: main.Run(t.Context(), append(append([]string{"doctor"}, args...), "--json"))}
	require.NoError(t, json.Unmarshal([]byte(stdout.String()), &d.diagnosis), stderr.String())
	require.Equal(t, d.Wrong, doctor.CountWrong(d.Findings))
	require.Equal(t, d.Wrong > 0, d.code == exitFailure, "%+v", d.Findings)
	for _, f := range d.Findings {
		require.Equal(t, f.Level != doctor.OK, f.Do != "", "what to do: %+v", f)
	}
	return d
}

// says requires a finding.
func (d *diagnosed) says(level doctor.Level, what, found, do string) {
	d.t.Helper()
	for _, f := range d.Findings {
		if f.Level == level && f.What == what && strings.Contains(f.Found, found) && strings.Contains(f.Do, do) {
			return
		}
	}
	require.Fail(d.t, "no such finding", "%s %s: %s (%s), got %+v", level, what, found, do, d.Findings)
}

// allFine requires that nothing is wrong.
func (d *diagnosed) allFine() {
	d.t.Helper()
	require.Zero(d.t, d.Wrong, "%+v", d.Findings)
	require.Equal(d.t, exitOK, d.code)
}

// awaitReport waits until the writer knows that its one edge is ready.
func (c *centre) awaitReport(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		reports, err := c.client.Reports(t.Context())
		return err == nil && len(reports) == 1 && reports[0].Ready == ""
	}, time.Minute, 10*time.Millisecond)
}

func TestDoctorFindsAHealthyClusterHealthy(t *testing.T) {
	c := startCentre(t)
	p := c.edge(t, "one")
	c.awaitReport(t)
	token := c.path("one.token")
	args := []string{"edge", "--listen", p.addr("lookups"), "--registry", c.path("registry.db"), "--access", c.path("access.db"),
		"--writer", c.url(), "--state", c.path("one"), "--token-file", token}
	d := diagnose(t, time.Now, args...)
	d.allFine()
	d.says(doctor.OK, "token of the node", "accepts", "")
	d.says(doctor.OK, "registry", "has release ", "")
	d.says(doctor.OK, "state", "1 segments", "")
	before, err := c.client.Reports(t.Context())
	require.NoError(t, err)
	require.Len(t, before, 1)
	require.NotEmpty(t, before[0].Address, "asking with the node's token left its report alone")
	diagnose(t, time.Now, "writer", "--listen", c.addr("writer"), "--database", c.path("ledger.db"), "--access", c.path("access.db"), "--token", operatorToken).allFine()
	c.awaitReport(t)
	d = diagnose(t, time.Now, "client", "--writer", c.url(), "--token", operatorToken)
	d.allFine()
	d.says(doctor.OK, "one", "it is ready, has release ", "")

	// The words are for people, and the exit code for scripts.
	code, said := ran("doctor", "client", "--writer", c.url(), "--token", "another")
	require.Equal(t, exitFailure, code)
	require.Contains(t, said, "WRONG  client: operators' token: the writer refuses it")
	require.Contains(t, said, "       do: is REGEDGE_TOKEN an operators' token")

	d = diagnose(t, func() time.Time { return time.Now().Add(-time.Minute) }, args...)
	d.says(doctor.Wrong, "clock", "ahead of this machine's", "mend NTP")

	probe := []string{"probe", "--listen", p.addr("lookups")}
	code, said = ran(probe...)
	require.Equal(t, exitOK, code, said)
	require.Empty(t, said)
	code, said = ran(append(probe, "--path", "/no-such-page")...)
	require.Equal(t, exitFailure, code, said)
	require.Equal(t, exitOK, p.halt())
	code, said = ran(probe...)
	require.Equal(t, exitFailure, code, said)
	require.Contains(t, said, "nothing listens at")
	d = diagnose(t, time.Now, args...)
	d.says(doctor.Wrong, "edge", "nothing listens at", "is it running")
	require.Equal(t, exitOK, c.halt())
	d = diagnose(t, time.Now, "writer", "--listen", c.addr("writer"), "--database", c.path("ledger.db"), "--access", c.path("access.db"), "--token", operatorToken)
	d.says(doctor.Wrong, "ledger", "no writer holds it", "start the writer")
}

func TestDoctorFindsAWriterThatHangs(t *testing.T) {
	program, err := exec.LookPath("regedge")
	require.NoError(t, err)
	dir, address := t.TempDir(), testkit.FreePort(t)
	p := &testkit.Process{Program: program, Args: []string{
		"writer", "--listen", address, "--token", operatorToken, "--database", filepath.Join(dir, "ledger.db"), "--access", filepath.Join(dir, "access.db"),
	}}
	require.NoError(t, p.Start())
	t.Cleanup(p.Kill)
	require.NoError(t, p.Await(t.Context(), "http://"+address+"/readyz"))
	args := []string{"client", "--writer", "http://" + address, "--token", operatorToken}
	diagnose(t, time.Now, args...).allFine()
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	d := diagnose(t, time.Now, append(args, "--timeout", "300ms")...)
	d.says(doctor.Wrong, "writer", "accepts connections and does not answer within 300ms", "it hangs")
	d = diagnose(t, func() time.Time { return time.Now().Add(time.Minute) },
		"writer", "--listen", address, "--database", filepath.Join(dir, "ledger.db"), "--access", filepath.Join(dir, "access.db"), "--token", operatorToken, "--timeout", "300ms")
	d.says(doctor.Wrong, "writer", "does not answer", "it hangs")
	d.says(doctor.Wrong, "ledger", "was last heard", "does that process still run?")
	require.NoError(t, p.Signal(syscall.SIGCONT))
}

func TestDoctorTellsTokensApart(t *testing.T) {
	c := startCentre(t)
	p := c.edge(t, "one")
	c.awaitReport(t)
	edge := func(token string) *diagnosed {
		return diagnose(t, time.Now, "edge", "--listen", p.addr("lookups"), "--registry", c.path("registry.db"), "--access", c.path("access.db"),
			"--writer", c.url(), "--state", c.path("one"), "--token", token)
	}
	edge("reg_node_of_another_cluster").says(doctor.Wrong, "token of the node", "the writer refuses it", "regedge node token")
	edge(operatorToken).says(doctor.Wrong, "token of the node", "the writer refuses it", "regedge node token")
	ended, err := c.client.AddToken(t.Context(), "ended", writer.RoleRead, time.Hour)
	require.NoError(t, err)
	client := func() *diagnosed {
		return diagnose(t, time.Now, "client", "--writer", c.url(), "--token", ended.Token)
	}
	client().allFine()
	_, err = c.client.EndToken(t.Context(), "ended")
	require.NoError(t, err)
	client().says(doctor.Wrong, "operators' token", "the token ended ended at", "regedge trust operator add")
}

// tokenAsOf makes a token that is good for an hour from a time on.
func tokenAsOf(t *testing.T, s *stage, at time.Time) string {
	t.Helper()
	made, err := pki.Open(s.trust, func() time.Time { return at })
	require.NoError(t, err)
	token, err := made.Token(s.database, pki.ReadOnly, time.Hour)
	require.NoError(t, err)
	return token
}

func TestDoctorLooksAtReplication(t *testing.T) {
	s := startStage(t, "access")
	beat := func(age time.Duration) {
		sqldtest.ExecWith(t, s.primary, s.write, "CREATE TABLE IF NOT EXISTS heartbeat (id INTEGER PRIMARY KEY, beat INTEGER)",
			fmt.Sprintf("INSERT INTO heartbeat VALUES (1, %d) ON CONFLICT (id) DO UPDATE SET beat = excluded.beat", time.Now().Add(-age).UnixMilli()))
	}
	c := startCentre(t)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	edge := func(token string, more ...string) *diagnosed {
		return diagnose(t, time.Now, append([]string{"edge", "--listen", testkit.FreePort(t), "--registry", c.path("registry.db"), "--access", s.replica.URL(), "--access-replica", s.replica.Dir,
			"--access-token", token, "--writer", c.url(), "--state", c.path("one"), "--token", node.Token, "--max-lag", "10m"}, more...)...)
	}
	replica := func(files *sqld.TLSFiles) *diagnosed {
		return diagnose(t, time.Now, "replica", "--database", "access", "--sqld", sqldtest.Program(t), "--dir", s.replica.Dir, "--listen", s.replica.HTTP, "--primary", "https://"+s.primary.GRPC,
			"--jwt-key", s.replicaKey, "--tls-ca", files.CA, "--tls-cert", files.Cert, "--tls-key", files.Key)
	}
	primary := func() *diagnosed {
		return diagnose(t, time.Now, "primary", "--sqld", sqldtest.Program(t), "--dir", s.primary.Dir, "--listen", s.primary.HTTP, "--replication", s.primary.GRPC,
			"--jwt-key", s.primaryKey, "--tls-ca", s.own.CA, "--tls-cert", s.own.Cert, "--tls-key", s.own.Key)
	}
	arrived := func(level doctor.Level, found string) {
		t.Helper()
		require.Eventually(t, func() bool {
			for _, f := range edge(s.read).Findings {
				if f.What == "access" && f.Level == level && strings.Contains(f.Found, found) {
					return true
				}
			}
			return false
		}, time.Minute, 50*time.Millisecond)
	}
	beat(0)
	arrived(doctor.OK, "behind")
	for dir, d := range map[string]*diagnosed{s.replica.Dir: replica(s.edge), s.primary.Dir: primary()} {
		d.allFine()
		require.True(t, slices.ContainsFunc(d.Findings, func(f doctor.Finding) bool { return f.What == "disk" && strings.Contains(f.Found, dir) }), "%+v", d.Findings)
	}

	beat(time.Hour)
	arrived(doctor.Wrong, "more than the 10m0s that it may be")
	edge(s.read).says(doctor.Wrong, "access", "it is 1h0m", "is the writer up")
	edge(s.read, "--access-max-age", "2m").says(doctor.Wrong, "access", "more than the 2m0s that it may be", "is the writer up")
	replica(s.edge).says(doctor.Wrong, "access", "more than the 10m0s that it may be", "is the writer up")
	beat(-time.Hour)
	arrived(doctor.Wrong, "ahead of this machine's clock")

	edge(tokenAsOf(t, s, time.Now().Add(-2*time.Hour))).says(doctor.Wrong, "access", "refuses the token, which ended at", "regedge trust token access")
	edge(s.read+"x").says(doctor.Wrong, "access", "refuses the token", "regedge trust token access")
	edge("").says(doctor.Wrong, "access", "asks for a token, and there is none", "regedge trust token access")

	other, err := pki.Create(filepath.Join(t.TempDir(), "other"), time.Now)
	require.NoError(t, err)
	cert, key, err := other.Certificate("edge")
	require.NoError(t, err)
	d := replica(&sqld.TLSFiles{CA: s.edge.CA, Cert: cert, Key: key})
	d.says(doctor.Wrong, "certificate", "is not of the authority", "regedge trust machine")
	d.says(doctor.Wrong, "primary", "refuses the certificate", "regedge trust machine")
	d = replica(&sqld.TLSFiles{CA: other.AuthorityFile(), Cert: cert, Key: key})
	d.says(doctor.Wrong, "primary", "is of another authority", "ca.crt")

	// The certificates of two years end at last.
	late := diagnose(t, func() time.Time { return time.Now().Add((2*365 - 5) * 24 * time.Hour) },
		"primary", "--sqld", sqldtest.Program(t), "--dir", s.primary.Dir, "--listen", s.primary.HTTP, "--replication", s.primary.GRPC,
		"--jwt-key", s.primaryKey, "--tls-ca", s.own.CA, "--tls-cert", s.own.Cert, "--tls-key", s.own.Key)
	late.says(doctor.Wrong, "certificate", "it ends at", "renew it")
}

// TestDoctorTellsWhatItFoundThoughTheNodesAreNotListed, also to programs.
func TestDoctorTellsWhatItFoundThoughTheNodesAreNotListed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "R")
		switch r.URL.Path {
		case "/readyz":
			io.WriteString(w, "ready\n")
		case "/v1/health":
			io.WriteString(w, "{}")
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"status":503,"code":"unavailable","detail":"the ledger can't be read"}`)
		}
	}))
	defer server.Close()
	d := diagnose(t, time.Now, "client", "--writer", server.URL, "--token", operatorToken)
	d.says(doctor.OK, "operators' token", "the writer accepts it", "")
	d.says(doctor.Wrong, "nodes", "the ledger can't be read", "the writer's log says more")
	require.Equal(t, exitFailure, d.code)
}

// TestDoctorThatIsInterruptedSuspectsNobody: the writer was asked for the nodes, and had no time to answer.
func TestDoctorThatIsInterruptedSuspectsNobody(t *testing.T) {
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			io.WriteString(w, "ready\n")
		case "/v1/health":
			io.WriteString(w, "{}")
		default:
			asked <- struct{}{}
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	p := start("doctor", "client", "--writer", server.URL, "--token", operatorToken)
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal(p.stdout, p.stderr)
	}
	require.NotEqual(t, exitOK, p.halt())
	require.NotContains(t, p.stdout.String(), "WRONG")
}

// TestAServiceThatCanNotBeExaminedHidesNoOther: a disk that hangs is what doctor is asked about.
func TestAServiceThatCanNotBeExaminedHidesNoOther(t *testing.T) {
	program := filepath.Join(t.TempDir(), "hangs")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700))
	m := &Main{Stdout: new(testkit.Log), Stderr: new(testkit.Log), Environ: func() []string { return nil }, Now: time.Now}
	c := &doctorMachine{Units: t.TempDir(), doctorFlags: doctorFlags{Timeout: 10 * time.Millisecond}}
	found := c.examine(t.Context(), m, program, units.Service{Command: "edge"})
	require.Len(t, found, 1)
	require.Equal(t, []any{"edge", "examination", doctor.Wrong}, []any{found[0].Service, found[0].What, found[0].Level})
	require.Contains(t, found[0].Found, "it did not end within 5.3s")

	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	require.ErrorIs(t, c.Run(interrupted, m), context.Canceled)
	require.Empty(t, m.Stdout.(*testkit.Log).String(), "nothing is suspected")
}

// TestDoctorLooksBehindTheGateOfAPrimary, which answers for a database that hangs or is not there, and accepts
// connections.
func TestDoctorLooksBehindTheGateOfAPrimary(t *testing.T) {
	s := startStage(t, "access")
	replicaOf := func(primary string) *diagnosed {
		return diagnose(t, time.Now, "replica", "--timeout", "2s", "--sqld", sqldtest.Program(t), "--dir", s.replica.Dir, "--listen", s.replica.HTTP, "--primary", "https://"+primary,
			"--jwt-key", s.replicaKey, "--tls-ca", s.edge.CA, "--tls-cert", s.edge.Cert, "--tls-key", s.edge.Key)
	}
	replica := func() *diagnosed { return replicaOf(s.primary.GRPC) }
	replica().says(doctor.OK, "primary", "each side trusts the other", "")
	noted, err := os.ReadFile(filepath.Join(s.primary.Dir, "regedge.lock"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.Fields(string(noted))[0])
	require.NoError(t, err)
	require.Greater(t, pid, 1)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	replica().says(doctor.Wrong, "primary", "accepts connections and does not answer", "it hangs")
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	replica().says(doctor.OK, "primary", "each side trusts the other", "")

	// A gate that does not reach its sqld says so.
	own, err := tls.LoadX509KeyPair(s.own.Cert, s.own.Key)
	require.NoError(t, err)
	gate := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Grpc-Status", "14") }))
	gate.EnableHTTP2, gate.TLS = true, &tls.Config{Certificates: []tls.Certificate{own}}
	gate.StartTLS()
	defer gate.Close()
	replicaOf(gate.Listener.Addr().String()).says(doctor.Wrong, "primary", "the database behind it does not", "the log of regedge primary")
}

func TestDoctorFindsADiskThatIsNearlyFull(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.Mkdir(dir, 0o700))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("skipped: a small file system can't be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	c := startCentre(t)
	p := c.edge(t, "one", "--state", filepath.Join(dir, "state"))
	disk := func() *diagnosed {
		return diagnose(t, time.Now, "edge", "--listen", p.addr("lookups"), "--registry", c.path("registry.db"), "--access", c.path("access.db"),
			"--writer", c.url(), "--state", filepath.Join(dir, "state"), "--token-file", c.path("one.token"))
	}
	disk().says(doctor.OK, "disk of the state", "free of 1.0 MB", "")
	var s unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &s))
	fill := func(share float64) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("filler", share)), make([]byte, int(share*float64(s.Bfree)*float64(s.Bsize))), 0o600))
	}
	fill(0.9)
	disk().says(doctor.Soon, "disk of the state", "free of 1.0 MB", "make room")
	fill(0.08)
	disk().says(doctor.Wrong, "disk of the state", "free of 1.0 MB", "make room")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "state", "journal-0000000000000009.log.corrupt"), nil, 0o600))
	disk().says(doctor.Wrong, "journal", "damaged segments were set aside", "smartctl")
}

// TestDoctorExaminesAMeter that is well.
func TestDoctorExaminesAMeter(t *testing.T) {
	c := startCentre(t)
	node, err := c.client.AddNode(t.Context(), "spin")
	require.NoError(t, err)
	flags := []string{"--writer", c.url(), "--state", c.path("spin"), "--token", node.Token, "--meter-token", "a-secret-of-the-component"}
	p := start(append([]string{"meter", "--listen", "127.0.0.1:0"}, flags...)...)
	t.Cleanup(func() { p.halt() })
	require.True(t, p.await(func() bool { return p.addr("meter") != "" }), p.stderr.String())
	d := diagnose(t, time.Now, append([]string{"meter", "--listen", p.addr("meter")}, flags...)...)
	require.Zero(t, d.Wrong, "%+v", d.Findings)
	d.says(doctor.OK, "meter", p.addr("meter")+" answers in", "")
	d.says(doctor.OK, "token of the node", "", "")
	d.says(doctor.OK, "state", "", "")
}

// TestDoctorExaminesTheUnitsOfAMachine: the units of deploy/systemd, with other folders and addresses.
func TestDoctorExaminesTheUnitsOfAMachine(t *testing.T) {
	c := startCentre(t)
	folder := t.TempDir()
	etc, units := filepath.Join(folder, "etc"), filepath.Join(folder, "units")
	require.NoError(t, os.MkdirAll(etc, 0o700))
	require.NoError(t, os.MkdirAll(units, 0o700))
	files, err := filepath.Glob("../../deploy/systemd/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	closed := testkit.FreePort(t)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		text := strings.NewReplacer("/etc/regedge", etc, "/var/lib/regedge/writer", c.dir, "/var/lib/regedge", folder,
			"http://127.0.0.1:8182 --registry http://127.0.0.1:8181", c.path("access.db"),
			"127.0.0.1:8281", closed, "127.0.0.1:8282", closed).Replace(string(content))
		require.NoError(t, os.WriteFile(filepath.Join(units, filepath.Base(file)), []byte(text), 0o600))
	}
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(etc, name), []byte(text), 0o600))
	}
	program, err := exec.LookPath("regedge")
	require.NoError(t, err)
	run := func() (out string, code int) {
		command := exec.Command(program, "doctor", "--units", units)
		said, err := command.CombinedOutput()
		require.IsType(t, new(exec.ExitError), err, string(said))
		return string(said), command.ProcessState.ExitCode()
	}
	put("writer.env", "REGEDGE_LISTEN="+c.addr("writer")+"\nREGEDGE_TOKEN='"+operatorToken+"'\n")
	command := exec.Command(program, "doctor", "--units", units)
	said, err := command.CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, string(said), "ok     writer: writer: it listens at "+c.addr("writer")+" and is ready")
	require.Contains(t, string(said), "SOON   writer: standby: no standby is set up here, and no backup is watched")
	require.NotContains(t, string(said), "client: ")
	command = exec.Command(program, "doctor", "--units", units)
	command.Env = append(os.Environ(), "REGEDGE_WRITER="+c.url(), "REGEDGE_TOKEN="+operatorToken)
	said, err = command.CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, string(said), "ok     client: writer: "+c.url()+" is ready", "the operator's own way to it, too")

	put("edge.env", "# an edge\nREGEDGE_LISTEN="+closed+"\nREGEDGE_WRITER="+c.url()+"\nREGEDGE_TOKEN=wrong\n")
	put("replica-access.env", "SQLD_HTTP_LISTEN_ADDR="+closed+"\nSQLD_PRIMARY_GRPC_URL=https://127.0.0.1:1\n")
	out, code := run()
	require.Equal(t, exitFailure, code)
	require.Contains(t, out, "WRONG  edge: token of the node: the writer refuses it")
	require.Contains(t, out, "WRONG  edge: access: nothing listens at "+closed)
	require.Contains(t, out, "WRONG  replica@access: configuration: ")
	require.Contains(t, out, ".pub", "the file that is missing is named")
	require.NotContains(t, out, "primary@", "there is no environment file of one")
	require.NotContains(t, out, "litestream")
	wants := filepath.Join(units, "multi-user.target.wants")
	require.NoError(t, os.Mkdir(wants, 0o700))
	require.NoError(t, os.Symlink("../regedge-primary@.service", filepath.Join(wants, "regedge-primary@registry.service")))
	out, _ = run()
	require.Contains(t, out, "WRONG  primary@registry: configuration: its unit is enabled, and "+etc+"/primary-registry.env is missing")
	require.Contains(t, out, "else systemctl disable regedge-primary@registry\n")
	require.NotContains(t, out, "primary@access")

	put("meter.env", "REGEDGE_LISTEN="+closed+"\nREGEDGE_WRITER="+c.url()+"\nREGEDGE_TOKEN=wrong\n")
	out, _ = run()
	require.Contains(t, out, "WRONG  meter: meter: nothing listens at "+closed)
	require.Contains(t, out, "WRONG  meter: meter token: there is none")
	require.Contains(t, out, "WRONG  meter: token of the node: the writer refuses it")

	require.Contains(t, out, "no standby")
	require.NoError(t, os.Symlink("../regedge-writer.service", filepath.Join(wants, "regedge-writer.service")))
	require.NoError(t, os.Remove(filepath.Join(etc, "writer.env")))
	out, _ = run()
	require.Contains(t, out, "WRONG  writer: configuration: its unit is enabled, and "+etc+"/writer.env is missing")
	require.NotContains(t, out, "no standby", "the file may have told of a backup")

	put("litestream.env", "")
	put("litestream.yml", "addr: "+closed+"\n")
	out, _ = run()
	require.Contains(t, out, "WRONG  litestream: standby: nothing listens at "+closed)
	require.NotContains(t, out, "no standby")
}

func TestStatusExplains(t *testing.T) {
	c := startCentre(t)
	p := c.edge(t, "one")
	status := func(more ...string) (int, string) {
		return ran(append([]string{"status", "--writer", c.url(), "--token", operatorToken}, more...)...)
	}
	c.awaitReport(t)
	code, said := status("--explain")
	require.Equal(t, exitOK, code, said)
	require.Regexp(t, `REPORTED +SEEN`, said)
	require.Regexp(t, `ok     node: one: it is ready, has release \S+, and reported \ds ago`, said)
	_, err := c.client.AddNode(t.Context(), "two")
	require.NoError(t, err)
	code, said = status("--explain")
	require.Equal(t, exitOK, code, said)
	require.Contains(t, said, "SOON   node: two: it was never started")

	require.Equal(t, exitOK, p.halt())
	_, err = c.client.RetireNode(t.Context(), "two", false)
	require.NoError(t, err)
	to, err := url.Parse(c.url())
	require.NoError(t, err)
	later := httputil.NewSingleHostReverseProxy(to)
	later.ModifyResponse = func(r *http.Response) error {
		r.Header.Set("Date", time.Now().Add(time.Minute+5*time.Second).UTC().Format(http.TimeFormat)) // which has whole seconds
		return nil
	}
	ahead := httptest.NewServer(later)
	defer ahead.Close()
	code, said = ran("status", "--writer", ahead.URL, "--token", operatorToken, "--explain", "--json")
	require.Equal(t, exitFailure, code, said)
	require.Contains(t, said, `"found": "its figures are old: it last reported 1m`)
	require.NotContains(t, said, `"what": "two"`, "a retired node needs nothing")
}

// TestStatusExplainsAWriterThatIsNotReady: nodes are well until their leases end, and it exited with 0 meanwhile.
func TestStatusExplainsAWriterThatIsNotReady(t *testing.T) {
	c := startCentre(t)
	c.edge(t, "one")
	c.awaitReport(t)
	address, err := url.Parse(c.url())
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/", httputil.NewSingleHostReverseProxy(address))
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the ledger can't be written: the writer's log says why", http.StatusServiceUnavailable)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	code, said := ran("status", "--writer", server.URL, "--token", operatorToken, "--explain")
	require.Equal(t, exitFailure, code, said)
	require.Contains(t, said, "WRONG  centre: writer: "+server.URL+" is not ready: the ledger can't be written: ")
	require.Contains(t, said, "ok     node: one: it is ready")
}

// TestStatusExplainsARestoredLedgerThatWaits: it grants nothing to any node, also to those that are well.
func TestStatusExplainsARestoredLedgerThatWaits(t *testing.T) {
	c := startCentre(t)
	address, err := url.Parse(c.url())
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/", httputil.NewSingleHostReverseProxy(address))
	mux.HandleFunc("GET /v1/health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(writer.RequestIDHeader, "made-up")
		fmt.Fprint(w, `{"restoring": true, "waiting": ["away", "one"]}`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	code, said := ran("status", "--writer", server.URL, "--token", operatorToken, "--explain")
	require.Equal(t, exitFailure, code, said)
	require.Contains(t, said, "WRONG  centre: ledger: it came back from a backup and grants nothing until these nodes have reported: away, one\n")
}

// TestAnEmptyVariableIsNone, as for the services.
func TestAnEmptyVariableIsNone(t *testing.T) {
	for variable, want := range map[string]bool{"REGEDGE_BACKUP=b.db": true, "REGEDGE_BACKUP=": false, "REGEDGE_BACKUP_DIR=b": false} {
		require.Equal(t, want, hasVariable([]string{"EMPTY=", variable}, "REGEDGE_BACKUP"), variable)
	}
}
