package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regedge/host/hint"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
	"regedge/schema/generate"
	"regedge/schema/importer"
	"regedge/schema/sample"
)

// onlyCompany makes a registry file of one company.
func onlyCompany(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	made, err := generate.Run(t.Context(), generate.Config{Companies: 1, Seed: 1, Out: dir})
	require.NoError(t, err)
	config := importer.Config{Registry: filepath.Join(dir, "registry.db"), AsOf: "2026-01-01"}
	for _, file := range made.Files {
		config.Files = append(config.Files, filepath.Join(dir, filepath.Base(file.Name)))
	}
	_, err = importer.Run(t.Context(), config)
	require.NoError(t, err)
	return config.Registry
}

// ran runs a command to its end.
func ran(args ...string) (code int, said string) {
	p := start(args...)
	code = <-p.ended
	return code, p.stdout.String() + p.stderr.String()
}

func companiesAt(t *testing.T, primary *sqld.Server) (n int) {
	t.Helper()
	require.NoError(t, sqldtest.Open(t, primary).QueryRow("SELECT count(*) FROM company").Scan(&n))
	return n
}

// asksFor is the error of a push that needs a confirmation.
var asksFor = regexp.MustCompile(`give --yes (\d+), the number of records that would go`)

func TestAPushThatRemovesNearlyAllIsConfirmed(t *testing.T) {
	t.Parallel()
	primary := sqldtest.Primary(t)
	dir := t.TempDir()
	registry, wrong := filepath.Join(dir, "registry.db"), onlyCompany(t)
	_, err := sample.Import(t.Context(), registry, nil)
	require.NoError(t, err)
	pushes := func(file string, more ...string) []string {
		return append([]string{"push", file, "--registry", primary.URL(), "--releases", filepath.Join(dir, "releases")}, more...)
	}
	code, said := ran(pushes(registry)...)
	require.Equal(t, exitOK, code, said)
	had := companiesAt(t, primary) // and one record of appointments at a company that is not held
	require.Greater(t, had, 100)

	code, said = ran(pushes(wrong)...)
	require.Equal(t, exitFailure, code, said)
	require.Contains(t, said, fmt.Sprintf("nothing was written: %[1]d of %[1]d companies would go", had+1))
	require.Contains(t, said, "which is current")
	require.Equal(t, had, companiesAt(t, primary))
	number := asksFor.FindStringSubmatch(said)
	require.NotNil(t, number, said)

	code, said = ran(pushes(wrong, "--dry-run")...)
	require.Equal(t, exitOK, code, said)
	require.Contains(t, said, "It has to be confirmed with --yes "+number[1]+": ")
	code, said = ran(pushes(wrong, "--yes", number[1]+"0")...)
	require.Equal(t, exitFailure, code, said)
	require.Equal(t, had, companiesAt(t, primary), "another number")

	code, said = atTerminal(t, "y\n", pushes(wrong)...)
	require.Equal(t, exitFailure, code, said)
	require.Contains(t, said, "Type "+number[1]+", the number of records that would go")
	require.Contains(t, said, "nothing was written: it was not confirmed")
	require.Equal(t, had, companiesAt(t, primary))

	code, said = atTerminal(t, "\n", pushes(wrong)...)
	require.Equal(t, exitFailure, code, said)
	require.Equal(t, had, companiesAt(t, primary), "an empty line")

	code, said = atTerminal(t, number[1]+"\n", pushes(wrong, "--yes", number[1]+"0")...)
	require.Equal(t, exitFailure, code, "a wrong --yes is no question: %s", said)
	require.Equal(t, had, companiesAt(t, primary))

	code, said = atTerminal(t, number[1]+"\n", pushes(wrong)...)
	require.Equal(t, exitOK, code, said)
	require.Equal(t, 1, companiesAt(t, primary))
	code, said = ran(pushes(registry, "--yes", "1")...)
	require.Equal(t, exitFailure, code, "another release's number: %s", said)
	number = asksFor.FindStringSubmatch(said)
	require.NotNil(t, number, said)
	code, said = ran(pushes(registry, "--yes", number[1])...)
	require.Equal(t, exitOK, code, said)
	require.Equal(t, had, companiesAt(t, primary))
}

// TestAPrimaryThatHangsIsNamedAtOnce: before a snapshot of a whole country is made for it.
func TestAPrimaryThatHangsIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	registry := onlyCompany(t)
	releases := filepath.Join(t.TempDir(), "releases")
	for name, command := range map[string][]string{"push": {"push", registry}, "dry run": {"push", registry, "--dry-run"}, "rollback": {"rollback"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := hangingPrimary(t)
			code, said := ran(append(command, "--registry", primary.URL(), "--releases", releases)...)
			require.Equal(t, exitFailure, code, said)
			require.Contains(t, said, "does not answer ("+primary.URL())
			require.Contains(t, said, "hint: does the primary's machine hang")
			require.NoDirExists(t, releases)
		})
	}
}

// TestARollbackIsAskedOnce: it says in numbers what it would do, and needs --yes without a terminal.
func TestARollbackIsAskedOnce(t *testing.T) {
	t.Parallel()
	primary := sqldtest.Primary(t)
	dir := t.TempDir()
	registry, other := filepath.Join(dir, "registry.db"), onlyCompany(t)
	_, err := sample.Import(t.Context(), registry, nil)
	require.NoError(t, err)
	at := []string{"--registry", primary.URL(), "--releases", filepath.Join(dir, "releases")}
	push := func(file string) (int, string) { return ran(append([]string{"push", file}, at...)...) }
	code, said := push(other)
	require.Equal(t, exitOK, code, said)
	code, said = push(registry)
	number := asksFor.FindStringSubmatch(said)
	if code != exitOK {
		require.NotNil(t, number, said)
		code, said = ran(append([]string{"push", registry, "--yes", number[1]}, at...)...)
	}
	require.Equal(t, exitOK, code, said)
	had := companiesAt(t, primary)
	require.Greater(t, had, 100)
	kept, err := os.ReadDir(filepath.Join(dir, "releases"))
	require.NoError(t, err)
	code, said = ran(append([]string{"push", registry, "--dry-run", "--keep", "1"}, at...)...)
	require.Equal(t, exitOK, code, said)
	after, err := os.ReadDir(filepath.Join(dir, "releases"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(kept), fmt.Sprint(after), "a dry run keeps what rollbacks go back to")
	old := filepath.Join(dir, "releases", "before.db")
	require.NoError(t, os.WriteFile(old, nil, 0o600))
	require.NoError(t, os.Chtimes(old, time.Time{}, time.Now().Add(-time.Hour)))
	code, said = ran(append([]string{"push", registry, "--keep", "2"}, at...)...)
	require.Equal(t, exitOK, code, said)
	after, err = os.ReadDir(filepath.Join(dir, "releases"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(kept), fmt.Sprint(after), "as many stay as --keep says")

	rollback := append([]string{"rollback"}, at...)
	code, said = ran(rollback...)
	require.Equal(t, exitFailure, code, said)
	require.Regexp(t, `there is no terminal to ask at: roll back to release \S+\? \d+ records change, and \d+ of them go`, said)
	require.Contains(t, said, "hint: give --yes")
	require.Equal(t, had, companiesAt(t, primary))
	code, said = ran(append(rollback, "--dry-run", "--to", "another")...)
	require.Equal(t, exitFailure, code, said)
	require.Contains(t, said, "no snapshot: that of release another is not in ")
	code, said = ran(append(rollback, "--dry-run")...)
	require.Equal(t, exitOK, code, said)
	require.NotContains(t, said, "confirmed with")
	for _, typed := range []string{"no\n", "\n"} {
		code, said = atTerminal(t, typed, rollback...)
		require.Equal(t, exitFailure, code, said)
		require.Contains(t, said, "RECORDS")
		require.Equal(t, had, companiesAt(t, primary))
	}
	code, said = atTerminal(t, "yes\n", rollback...)
	require.Equal(t, exitOK, code, said)
	require.Equal(t, 1, companiesAt(t, primary))

	code, said = push(registry)
	if number = asksFor.FindStringSubmatch(said); code != exitOK {
		require.NotNil(t, number, said)
		code, said = ran(append([]string{"push", registry, "--yes", number[1]}, at...)...)
	}
	require.Equal(t, exitOK, code, said)
	code, said = ran(append(rollback, "--yes")...)
	require.Equal(t, exitOK, code, said)
	require.Equal(t, 1, companiesAt(t, primary))
}

// TestABrokenRegistryIsNotPushed finds what an import that was killed used to leave: a company without
// a search entry.
func TestABrokenRegistryIsNotPushed(t *testing.T) {
	primary := sqldtest.Primary(t)
	registry := onlyCompany(t)
	db, err := schema.OpenFile(registry)
	require.NoError(t, err)
	_, err = db.Exec(`DELETE FROM search_name WHERE value = (SELECT min(cin) FROM company)`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	code, said := ran("push", registry, "--registry", primary.URL())
	require.Equal(t, exitFailure, code)
	require.Contains(t, said, "is not whole, and nothing was written: companies and LLPs that the search does not have: 1")
	require.NoDirExists(t, filepath.Join(filepath.Dir(registry), "releases"))
}

// TestAPushToAnotherServiceSaysWhatToCheck: "malformed HTTP response" alone says nobody what to do.
func TestAPushToAnotherServiceSaysWhatToCheck(t *testing.T) {
	t.Parallel()
	registry := onlyCompany(t)
	for _, greeting := range []string{"SSH-2.0-OpenSSH_9.2\r\n", "220 mail ESMTP\r\n", "\x15\x03\x01\x00\x02\x02\x16", ""} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = conn.Write([]byte(greeting))
				_ = conn.Close()
			}
		}()
		code, said := ran("push", registry, "--registry", "http://"+listener.Addr().String())
		require.NoError(t, listener.Close())
		require.Equal(t, exitFailure, code, said)
		require.Contains(t, said, "hint: what listens at http://"+listener.Addr().String()+" does not answer as a registry's primary does")
	}
}

// stumbling passes what a primary is asked on, but calls do in place of the first call in which a push begins.
func stumbling(t *testing.T, primary *sqld.Server, do func(http.ResponseWriter)) string {
	t.Helper()
	to, err := url.Parse(primary.URL())
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(to)
	var stumbled atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(body, []byte("INSERT INTO pushing")) && stumbled.CompareAndSwap(false, true) {
			do(w)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestAPushSaysThatACallIsTriedAgain: else it seems to hang for half a minute.
func TestAPushSaysThatACallIsTriedAgain(t *testing.T) {
	t.Parallel()
	at := stumbling(t, sqldtest.Primary(t), func(w http.ResponseWriter) { http.Error(w, "gone", http.StatusBadGateway) })
	code, said := ran("push", onlyCompany(t), "--registry", at)
	require.Equal(t, exitOK, code, said)
	require.Contains(t, said, "a call of the primary failed (attempt 1 of 8, the next in 250ms)")
}

// TestAPushThatIsInterruptedSaysThatItGoesOn.
func TestAPushThatIsInterruptedSaysThatItGoesOn(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	at := stumbling(t, sqldtest.Primary(t), func(http.ResponseWriter) { stop(); <-ctx.Done() })
	said := new(testkit.Log)
	m := &Main{Stdin: strings.NewReader(""), Stdout: said, Stderr: said, Environ: func() []string { return nil }, Now: time.Now}
	require.Equal(t, exitFailure, m.Run(ctx, []string{"push", onlyCompany(t), "--registry", at}))
	require.Contains(t, said.String(), "interrupted: ")
	require.Contains(t, said.String(), "the same command goes on from there")
}

// small mounts a file system of a size, and returns a function that gives it another.
func small(t *testing.T, size string) (dir string, resize func(string)) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.Mkdir(dir, 0o700))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("skipped: a small file system can't be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir, func(size string) { require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "size="+size)) }
}

// TestAWriterAsksWhetherTheDiskIsFull on which it can't open the ledger, or the access database.
func TestAWriterAsksWhetherTheDiskIsFull(t *testing.T) {
	if os.Getpagesize() != 4<<10 {
		t.Skip("skipped: a disk of 4 KB can't be mounted with pages of another size")
	}
	for size, database := range map[string]string{"4k": "ledger.db", "8k": "access.db"} {
		dir, _ := small(t, size)
		code, said := ran("writer", "--listen", "127.0.0.1:0", "--token", operatorToken,
			"--database", filepath.Join(dir, "ledger.db"), "--access", filepath.Join(dir, "access.db"))
		require.Equal(t, exitFailure, code, said)
		require.Contains(t, said, "open database "+filepath.Join(dir, database))
		require.Contains(t, said, "is the disk full (df), or broken (dmesg)?")
	}
}

// TestAFullDiskIsNamedWithWhatToDo, whatever of a command comes first onto it.
func TestAFullDiskIsNamedWithWhatToDo(t *testing.T) {
	dir, resize := small(t, "64k")
	code, said := ran("generate", "--companies", "1000", "--out", filepath.Join(dir, "official"))
	require.Equal(t, exitFailure, code, said)
	require.Contains(t, said, "no space left on device")
	require.Contains(t, said, "Make room and run the same command again with --force, or name another directory with --out")
	resize("4m")
	code, said = ran("generate", "--companies", "1000", "--out", filepath.Join(dir, "official"), "--force")
	require.Zero(t, code, said)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "official")))
	for _, size := range []string{"64k", "256k", "512k"} { // the secrets, the databases and the node's state
		resize(size)
		code, said = ran("dev", "--data", filepath.Join(dir, size), "--listen", "127.0.0.1:0", "--writer-listen", "127.0.0.1:0")
		require.Equal(t, exitFailure, code, said)
		require.Contains(t, said, "or name another directory with --data", size)
	}
}

// TestADiskThatAPrimaryCannotWriteToIsNamedSo: nobody's rights were wrong.
func TestADiskThatAPrimaryCannotWriteToIsNamedSo(t *testing.T) {
	dir, resize := small(t, "8k")
	_, err := newLink(dir, "link")
	require.ErrorIs(t, err, unix.ENOSPC)
	require.Equal(t, "make room on the disk of "+dir+": for bytes (df) or for files (df -i)", hint.Of(err))
	resize("1m")
	link, err := newLink(dir, "link")
	require.NoError(t, err)
	require.FileExists(t, link.Key)
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, err = newLink(dir, "link")
	require.ErrorIs(t, err, unix.EROFS)
	require.Contains(t, hint.Of(err), "can't be written to: dmesg says why")
	require.Equal(t, "let the user that this runs as write to d", hint.Of(unwritable(fs.ErrPermission, "d")))
}

// TestAPushToAFullDiskSaysWhichAndGoesOn once there is room: the disk of the snapshots, and the primary's.
func TestAPushToAFullDiskSaysWhichAndGoesOn(t *testing.T) {
	t.Parallel()
	registry := filepath.Join(t.TempDir(), "registry.db")
	_, err := sample.Import(t.Context(), registry, nil)
	require.NoError(t, err)
	releases, growReleases := small(t, "256k")
	data, growData := small(t, "10m")
	primary := sqldtest.Start(t, sqld.Config{HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t), Dir: filepath.Join(data, "primary")})
	push := []string{"push", registry, "--registry", primary.URL(), "--releases", releases}

	code, said := ran(push...)
	require.Equal(t, exitFailure, code, said)
	require.Contains(t, said, "make snapshot in "+releases)
	require.Equal(t, 1, strings.Count(said, "disk I/O error"), said)
	require.Contains(t, said, "hint: is a disk full (df), that of --releases")
	left, err := os.ReadDir(releases)
	require.NoError(t, err)
	require.Empty(t, left, "what was copied is removed again")

	growReleases("100m")
	filler, err := os.Create(filepath.Join(data, "filler"))
	require.NoError(t, err)
	_, err = io.Copy(filler, rand.Reader)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.NoError(t, filler.Close())
	code, said = ran(push...)
	require.Equal(t, exitFailure, code, said)
	require.Contains(t, said, "hint: is the disk of the primary's machine full")

	growData("200m")
	code, said = ran(push...)
	require.Equal(t, exitOK, code, said)
	require.Greater(t, companiesAt(t, primary), 100)
}
