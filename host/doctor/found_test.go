package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/replicate/disk"
	"regedge/schema"
)

// found is what one check notes, which is one thing.
func found(t *testing.T, check func(*Exam)) Finding {
	t.Helper()
	e := exam()
	check(e)
	require.Len(t, e.Findings, 1, "%v", e.Findings)
	return e.Findings[0]
}

func TestADatabaseWithoutAHeartbeatHasNoAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Access))
	missing := found(t, func(e *Exam) { e.File(t.Context(), schema.Access, path+"-missing", time.Minute) })
	require.Contains(t, missing.Found, path+"-missing is not there")
	f := found(t, func(e *Exam) { e.File(t.Context(), schema.Access, path, time.Minute) })
	require.Equal(t, Wrong, f.Level)
	require.Contains(t, f.Found, "has no heartbeat")
	require.Equal(t, OK, found(t, func(e *Exam) { e.File(t.Context(), schema.Access, path, 0) }).Level, "a file that is written here")
}

// TestAnOldBackupAndALargeLogAreFound at the limits of the alarms.
func TestAnOldBackupAndALargeLogAreFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	require.NoError(t, os.WriteFile(file, []byte("made up"), 0o600))
	for age, want := range map[time.Duration]Level{backupOld: OK, backupOld + time.Second: Wrong, -backupAhead: OK, -time.Hour: Wrong} {
		made := exam().Now().Add(-age)
		require.NoError(t, os.Chtimes(file, made, made))
		require.Equal(t, want, found(t, func(e *Exam) { e.Backup(file) }).Level, age)
	}
	require.Equal(t, Wrong, found(t, func(e *Exam) { e.Backup(file + "-missing") }).Level)
	require.NoError(t, os.WriteFile(file+"-empty", nil, 0o600))
	now := exam().Now()
	require.NoError(t, os.Chtimes(file+"-empty", now, now))
	cut := found(t, func(e *Exam) { e.Backup(file + "-empty") })
	require.Equal(t, Wrong, cut.Level)
	require.Contains(t, cut.Found, "no whole backup: it is empty")

	log, err := os.Create(file + "-wal")
	require.NoError(t, err)
	defer log.Close()
	for size, want := range map[int64]Level{largeLog: OK, largeLog + 1: Soon} {
		require.NoError(t, log.Truncate(size)) // without a block on the disk
		require.Equal(t, want, found(t, func(e *Exam) { e.Size("ledger file", file) }).Level, size)
	}
}

// TestAnotherServiceIsNoWriter, though it answers with 200.
func TestAnotherServiceIsNoWriter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }))
	defer server.Close()
	f := found(t, func(e *Exam) { require.False(t, e.Writer(t.Context(), server.URL, "made-up", OperatorToken)) })
	require.Equal(t, Wrong, f.Level)
	require.Contains(t, f.Found, "is not a writer (status 200)")
}

// TestTheTokensOfAnEdgeAreReadFromItsMetrics, also when these are on all interfaces.
func TestTheTokensOfAnEdgeAreReadFromItsMetrics(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "regedge_read_token_ends_seconds{database=\"access\"} 90.5\nregedge_read_token_ends_seconds{database=\"registry\"} x\n")
	})}}
	server.Start()
	defer server.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	left := exam().TokensLeft(t.Context(), "[::]:"+port)
	require.Equal(t, map[string]time.Duration{"access": 90*time.Second + 500*time.Millisecond}, left)
	require.Empty(t, exam().TokensLeft(t.Context(), ""))
}

// TestWhyACertificateIsRefusedIsTold: its time, or its names.
func TestWhyACertificateIsRefusedIsTold(t *testing.T) {
	for reason, want := range map[x509.InvalidReason]string{x509.Expired: "is not valid now", x509.IncompatibleUsage: "does not answer"} {
		err := x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: reason}
		require.Contains(t, found(t, func(e *Exam) { e.silent("writer", "centre:443", err) }).Found, want)
	}
	nameless := x509.HostnameError{Certificate: &x509.Certificate{}, Host: "centre"}
	require.Contains(t, found(t, func(e *Exam) { e.silent("writer", "centre:443", nameless) }).Found, "is for no machine, not for centre")
}

// TestAFullDiskIsFound: by its share, unless there is room for a registry all the same.
func TestAFullDiskIsFound(t *testing.T) {
	const gb = 1_000_000_000
	for _, c := range []struct {
		space disk.Space
		level Level
		found string
	}{
		{disk.Space{Size: 100 * gb, Free: 15 * gb}, OK, "has 15.0 GB free of 100.0 GB (15%)"},
		{disk.Space{Size: 100 * gb, Free: 14 * gb}, Soon, "has 14.0 GB free of 100.0 GB (14%)"},
		{disk.Space{Size: 100 * gb, Free: 5 * gb}, Soon, "(5%)"},
		{disk.Space{Size: 100 * gb, Free: 4 * gb}, Wrong, "has 4.0 GB free of 100.0 GB (4%)"},
		{disk.Space{Size: 1000 * gb, Free: 30 * gb}, OK, "(3%)"},
		{disk.Space{Size: 1000 * gb, Free: 29 * gb}, Soon, "(3%)"},
		{disk.Space{Size: 1000 * gb, Free: 10 * gb}, Soon, "(1%)"},
		{disk.Space{Size: 1000 * gb, Free: 9 * gb}, Wrong, "(1%)"},
		{disk.Space{Size: 100 * gb, Free: 90 * gb, Files: 1000, FilesFree: 20}, OK, "(90%)"},
		{disk.Space{Size: 100 * gb, Free: 90 * gb, Files: 1000, FilesFree: 19}, Wrong, "has room for 19 more files"},
		{disk.Space{Size: 100 * gb, Free: 90 * gb, ReadOnly: true}, Wrong, "is read-only"},
		{disk.Space{}, Wrong, "has 0 bytes free of 0 bytes (0%)"},
	} {
		f := found(t, func(e *Exam) { e.free("disk", "/d", c.space) })
		require.Equal(t, c.level, f.Level, "%+v", c.space)
		require.Contains(t, f.Found, c.found)
	}
	dir := t.TempDir() // what is free there is not the test's
	f := found(t, func(e *Exam) { e.Disk("disk", filepath.Join(dir, "made", "later")) })
	require.Contains(t, f.Found, "the disk of "+dir+" has ")
}

func TestSizesAndTimesAreToldInWords(t *testing.T) {
	for size, want := range map[uint64]string{
		0: "0 bytes", 999: "999 bytes", 1000: "1.0 KB", 999_900: "999.9 KB", 1_500_000: "1.5 MB", 2_000_000_000: "2.0 GB", 3e12: "3.0 TB", 4e15: "4000.0 TB",
	} {
		require.Equal(t, want, inUnits(size))
	}
	for age, want := range map[time.Duration]string{
		1400 * time.Millisecond: "1s", 48*time.Hour - time.Second: "47h59m59s", 48 * time.Hour: "2 days", 71 * time.Hour: "2 days", 240 * time.Hour: "10 days",
	} {
		require.Equal(t, want, days(age))
	}
	require.Equal(t, "first", firstLine([]byte("\nfirst\nsecond")))
	require.Equal(t, strings.Repeat("x", 300), firstLine([]byte(strings.Repeat("x", 300))))
	require.Equal(t, strings.Repeat("x", 300)+"…", firstLine([]byte(strings.Repeat("x", 301))))
	require.EqualValues(t, 268_435_456, largeLog, "as the alarm has it")
	require.EqualValues(t, 93_600, backupOld.Seconds(), "as the alarm has it")
}

// TestAStateDirectoryIsCounted, without what was set aside, and its disk is looked at.
func TestAStateDirectoryIsCounted(t *testing.T) {
	e, dir := exam(), t.TempDir()
	for name, text := range map[string]string{
		"journal-0000000000000001.log": "1234", "journal-0000000000000002.log": "12", "batches-00020784.log": "1", "id": "edge",
		"journal-0000000000000000.log.corrupt": "damaged",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	e.State(dir)
	require.Len(t, e.Findings, 3)
	require.Equal(t, Wrong, e.Findings[0].Level)
	require.Contains(t, e.Findings[0].Found, "damaged segments were set aside in "+dir+": journal-0000000000000000.log.corrupt")
	require.Equal(t, Finding{Service: "edge", What: "state", Level: OK, Found: dir + " has 2 segments of the journal, 6 bytes"}, e.Findings[1])
	require.Equal(t, "disk of the state", e.Findings[2].What)
}

// TestACertificateOfAnotherAuthorityIsFound, and one whose end is near.
func TestACertificateOfAnotherAuthorityIsFound(t *testing.T) {
	dir := t.TempDir()
	made := func(name string, at time.Time) *pki.Trust {
		trust, err := pki.Create(filepath.Join(dir, name), func() time.Time { return at })
		require.NoError(t, err)
		return trust
	}
	own, other := made("own", exam().Now()), made("other", exam().Now())
	cert, key, err := own.Certificate("edge")
	require.NoError(t, err)
	f := found(t, func(e *Exam) { e.Certificate("certificate", cert, key, own.AuthorityFile()) })
	require.Equal(t, OK, f.Level)
	require.Contains(t, f.Found, "it ends at 2028-11-23T03:00:00Z, in 730 days")
	f = found(t, func(e *Exam) { e.Certificate("certificate", cert, key, other.AuthorityFile()) })
	require.Equal(t, Wrong, f.Level)
	require.Contains(t, f.Found, cert+" is not of the authority "+other.AuthorityFile())
	f = found(t, func(e *Exam) { e.Certificate("certificate", cert, key, key) })
	require.Contains(t, f.Found, "holds no authority")
	ended := found(t, func(e *Exam) {
		e.Now = func() time.Time { return exam().Now().AddDate(2, 1, 0) }
		e.Certificate("certificate", cert, key, own.AuthorityFile())
	})
	require.Contains(t, ended.Found, "it ended at 2028-11-23T03:00:00Z, 31 days ago", "and is of the authority all the same")
	old := made("old", time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	cert, key, err = old.Certificate("edge")
	require.NoError(t, err)
	f = found(t, func(e *Exam) { e.Certificate("certificate", cert, key, old.AuthorityFile()) })
	require.Contains(t, f.Found, "it ended at 2021-12-31T00:00:00Z", "also by this machine's clock")
}

// TestACertificateEndsWithItsAuthority and with its chain, as the metric of its end says.
func TestACertificateEndsWithItsAuthority(t *testing.T) {
	dir := t.TempDir()
	begun := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	now := begun
	trust, err := pki.Create(filepath.Join(dir, "trust"), func() time.Time { return now })
	require.NoError(t, err)
	now = begun.AddDate(19, 0, 0)
	cert, key, err := trust.Certificate("edge")
	require.NoError(t, err)
	leaf, err := os.ReadFile(cert)
	require.NoError(t, err)
	authority, err := os.ReadFile(trust.AuthorityFile())
	require.NoError(t, err)
	chain := filepath.Join(dir, "chain.crt")
	require.NoError(t, os.WriteFile(chain, append(leaf, authority...), 0o600))
	end, err := pki.CertificateEnd(trust.AuthorityFile())
	require.NoError(t, err)
	for left, want := range map[time.Duration]Level{endsSoon: OK, endsNow: Soon, time.Hour: Wrong, -time.Hour: Wrong} {
		for _, c := range []struct{ what, cert, authority string }{
			{"authority of the certificate", cert, trust.AuthorityFile()}, {"certificate", chain, ""}, {"certificate", chain, trust.AuthorityFile()},
		} {
			f := found(t, func(e *Exam) {
				e.Now = func() time.Time { return end.Add(-left) }
				e.Certificate("certificate", c.cert, key, c.authority)
			})
			require.Equal(t, []any{c.what, want}, []any{f.What, f.Level}, "%v: %+v", left, f)
			require.Contains(t, f.Found, end.UTC().Format(time.RFC3339))
		}
	}
}

// TestADatabaseTellsItsAgeAndItsNewestRelease.
func TestADatabaseTellsItsAgeAndItsNewestRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
	f := found(t, func(e *Exam) { e.File(t.Context(), schema.Registry, path, time.Minute) })
	require.Contains(t, f.Found, "has no release yet")
	for n, id := range []string{"old", "new"} {
		_, err = db.Exec(`INSERT INTO release (seq, id, released_at, companies, llps, directors, appointments, partners) VALUES (?, ?, 0, 0, 0, 0, 0, 0)`, n+1, id)
		require.NoError(t, err)
	}
	_, err = db.Exec(`INSERT INTO heartbeat VALUES (1, ?)`, exam().Now().Add(-3*time.Second).UnixMilli())
	require.NoError(t, err)
	f = found(t, func(e *Exam) { e.File(t.Context(), schema.Registry, path, time.Minute) })
	require.Equal(t, path+" is 3s behind, and has release new", f.Found)
	require.Equal(t, OK, f.Level)
	late := found(t, func(e *Exam) {
		e.Now = func() time.Time { return exam().Now().Add(time.Hour) }
		e.File(t.Context(), schema.Registry, path, time.Minute)
	})
	require.Equal(t, "it is 1h0m3s behind, more than the 1m0s that it may be ("+path+", and has release new)", late.Found)
}

// TestAnotherDatabaseIsNotTakenForTheOneThatIsMeant: a replica that follows the other primary is as new as that.
func TestAnotherDatabaseIsNotTakenForTheOneThatIsMeant(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Registry))
	_, err = db.Exec(`INSERT INTO heartbeat VALUES (1, ?)`, exam().Now().UnixMilli())
	require.NoError(t, err)
	f := found(t, func(e *Exam) { e.File(t.Context(), schema.Access, path, time.Minute) })
	require.Equal(t, []any{Wrong, path + ": this is the registry database: name the access database"}, []any{f.Level, f.Found})
	require.Contains(t, f.Do, "does its replica follow another primary")
}

// TestWhoHoldsTheLedgerIsTold, and whether it was heard lately.
func TestWhoHoldsTheLedgerIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	missing := found(t, func(e *Exam) { e.Ledger(t.Context(), path) })
	require.Equal(t, Wrong, missing.Level)
	require.Contains(t, missing.Found, path+" is not there")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	for _, c := range []struct {
		pid   int
		heard time.Duration
		want  Finding
	}{
		{0, 0, Finding{Level: Wrong, Found: "no writer holds it: the last one has ended in order"}},
		{7, 10 * time.Second, Finding{Level: OK, Found: "process 7 at centre holds it, since 2026-11-24T02:00:00Z"}},
		{7, 11 * time.Second, Finding{Level: Wrong, Found: "process 7 at centre holds it, and was last heard 11s ago"}},
		{7, 72 * time.Hour, Finding{Level: Wrong, Found: "process 7 at centre holds it, and was last heard 3 days ago"}},
	} {
		now := exam().Now()
		_, err := db.Exec(`UPDATE writer SET host = 'centre', pid = ?, since = ?, heard = ?`, c.pid, now.Add(-time.Hour).UnixMilli(), now.Add(-c.heard).UnixMilli())
		require.NoError(t, err)
		f := found(t, func(e *Exam) { e.Ledger(t.Context(), path) })
		require.Equal(t, c.want, Finding{Level: f.Level, Found: f.Found})
	}
}

// TestAWriterThatWasHeardInTheFutureIsWatched: once its clock was ahead, that time stays until it has come, also when the writer
// has died.
func TestAWriterThatWasHeardInTheFutureIsWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := schema.OpenFile(path)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, schema.Migrate(t.Context(), db, schema.Ledger))
	_, err = db.Exec(`UPDATE writer SET host = 'centre', pid = 7, heard = ?`, exam().Now().AddDate(1, 0, 0).UnixMilli())
	require.NoError(t, err)
	f := found(t, func(e *Exam) { e.Ledger(t.Context(), path) })
	require.Equal(t, Wrong, f.Level)
	require.Contains(t, f.Found, "process 7 at centre holds it, and is not heard: its last sign of life is of 2027-11-24T")
	ended := make(chan struct{})
	var alive sync.WaitGroup
	alive.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(10 * time.Millisecond):
				db.Exec(`UPDATE writer SET heard = heard + 1`)
			}
		}
	})
	f = found(t, func(e *Exam) { e.Ledger(t.Context(), path) })
	close(ended)
	alive.Wait()
	require.Equal(t, OK, f.Level, f.Found)
}

// TestWhyADatabaseRefusesATokenIsTold: it ended, there is none, or it is another's.
func TestWhyADatabaseRefusesATokenIsTold(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":"the token is not good here"}`, http.StatusUnauthorized)
	}))
	defer server.Close()
	made := func(at time.Time) string {
		trust, err := pki.Create(filepath.Join(t.TempDir(), "trust"), func() time.Time { return at })
		require.NoError(t, err)
		token, err := trust.Token("access", pki.ReadOnly, time.Hour)
		require.NoError(t, err)
		return token
	}
	for token, want := range map[string]string{
		"":                                     "asks for a token, and there is none",
		made(exam().Now().Add(-3 * time.Hour)): "refuses the token, which ended at 2026-11-24T01:00:00Z",
		made(exam().Now()):                     "refuses the token: it is of another cluster",
	} {
		f := found(t, func(e *Exam) {
			e.LibSQL(t.Context(), Server{Database: schema.Access, Address: server.URL, Token: token, MaxAge: time.Minute})
		})
		require.Equal(t, Wrong, f.Level)
		require.Contains(t, f.Found, want)
	}
}

// TestADatabaseThatHangsIsGivenUp after the time that an answer may take, though the examination goes on.
func TestADatabaseThatHangsIsGivenUp(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(ended)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f := found(t, func(e *Exam) {
		e.Timeout = 100 * time.Millisecond
		e.LibSQL(ctx, Server{Database: schema.Access, Address: server.URL})
	})
	require.NoError(t, ctx.Err())
	require.Contains(t, f.Found, "does not answer within 100ms")
}

// certificate makes files of an authority and of a machine of its cluster, which is at 127.0.0.1.
func certificate(t *testing.T) (ca, cert, key string, pair tls.Certificate) {
	trust, err := pki.Create(filepath.Join(t.TempDir(), "trust"), exam().Now)
	require.NoError(t, err)
	cert, key, err = trust.Certificate("centre", "127.0.0.1")
	require.NoError(t, err)
	pair, err = tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	return trust.AuthorityFile(), cert, key, pair
}

// TestAPrimaryThatHangsIsGivenUp once its certificate was found good: one that is stopped, or whose disk hangs, says no more.
func TestAPrimaryThatHangsIsGivenUp(t *testing.T) {
	ca, cert, key, pair := certificate(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go func() { _, _ = io.Copy(io.Discard, conn) }() // which begins with the handshake
		}
	}()
	e, done := exam(), make(chan struct{})
	e.Timeout = time.Second
	go func() {
		defer close(done)
		e.Replication(context.Background(), "primary", listener.Addr().String(), ca, cert, key)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the examination hangs")
	}
	require.Len(t, e.Findings, 1, "%v", e.Findings)
	require.Contains(t, e.Findings[0].Found, "accepts connections and does not answer within 1s")
}

// TestAPrimaryIsGreetedAsAReplicaThatFollows: one whose log begins at a base answers nobody else.
func TestAPrimaryIsGreetedAsAReplicaThatFollows(t *testing.T) {
	ca, cert, key, pair := certificate(t)
	for _, of := range []string{`"log"`, ""} {
		follows := of == ""
		primary := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			follows = follows || r.Header.Get("If-None-Match") == of
			switch {
			case r.Method == http.MethodGet && of != "":
				w.Header().Set("ETag", of)
			case r.Method == http.MethodGet:
				w.WriteHeader(http.StatusNotFound)
			case !follows:
				w.Header().Set("Grpc-Status", "14")
			default:
				w.Header().Set("Grpc-Status", "0")
			}
		}))
		primary.EnableHTTP2 = true
		primary.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		primary.StartTLS()
		defer primary.Close()
		f := found(t, func(e *Exam) {
			e.Replication(t.Context(), "primary", primary.Listener.Addr().String(), ca, cert, key)
		})
		require.Equal(t, OK, f.Level, f.Found)
	}
}

// TestAnAnswerIsReadToABound, whatever listens there.
func TestAnAnswerIsReadToABound(t *testing.T) {
	const most = 64 << 20
	written := make(chan int, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent, part := 0, make([]byte, 64<<10)
		for sent < most {
			n, err := w.Write(part)
			if sent += n; err != nil {
				break
			}
		}
		written <- sent
	}))
	defer server.Close()
	e := exam()
	e.Timeout = time.Minute
	a, err := e.ask(t.Context(), http.MethodGet, server.URL, "", true)
	require.NoError(t, err)
	require.Len(t, a.body, maxAnswer)
	require.Less(t, <-written, most)
}
