package sqld_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

// TestAPrimaryThatHangsIsStartedAgain: without it no revocation reaches an edge, and no release.
func TestAPrimaryThatHangsIsStartedAgain(t *testing.T) {
	t.Parallel()
	log := &testkit.Log{}
	primary := watched(t, log, "", 5, 0)
	sqldtest.Exec(t, primary, "CREATE TABLE probe (n INTEGER)", "INSERT INTO probe VALUES (1)")
	pid := primary.PID()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "the primary has answered nothing") }, patience, 50*time.Millisecond)
	sqldtest.Await(t, primary, "")
	require.NotEqual(t, pid, primary.PID())
	sqldtest.Exec(t, primary, "UPDATE probe SET n = n + 1")
}

// TestAPrimaryWhoseDiskHangsIsLeftAlone: it goes on when the disk does, where one that was killed has all replicas copy anew. A
// named pipe that nobody reads stands for a disk that ends no write.
func TestAPrimaryWhoseDiskHangsIsLeftAlone(t *testing.T) {
	t.Parallel()
	log := &testkit.Log{}
	primary := watched(t, log, "", 5, 5)
	pipe := filepath.Join(primary.Dir, "disk.check")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	pid := primary.PID()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	require.Never(t, func() bool { return strings.Contains(log.String(), "started again") }, 10*time.Second, 100*time.Millisecond)
	reader, err := os.Open(pipe) // the disk writes again
	require.NoError(t, err)
	t.Cleanup(func() { reader.Close() })
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "started again") }, patience, 50*time.Millisecond)
}

// TestAPrimaryThatAcceptsNoWritesIsStartedAgain provokes a defect of sqld; see restartHung.
func TestAPrimaryThatAcceptsNoWritesIsStartedAgain(t *testing.T) {
	t.Parallel()
	for name, tokens := range map[string]bool{"without tokens": false, "with tokens": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, token, keys := &testkit.Log{}, "", ""
			if tokens {
				token, keys = tokenAndKeys(t)
			}
			primary := watched(t, log, keys, 0, limited)
			c := &client{t, primary.URL(), token}
			c.send(t.Context(), "", "CREATE TABLE probe (n INTEGER, filling BLOB)")
			pid := primary.PID()
			pause := time.Duration(0)
			require.Eventually(t, func() bool {
				pause = pause%time.Second + 200*time.Millisecond
				return c.jam(pause)
			}, 5*time.Minute, time.Millisecond)
			require.Eventually(t, func() bool { return strings.Contains(log.String(), "the primary has accepted no write") }, 2*time.Minute, 50*time.Millisecond)
			require.NotEqual(t, pid, primary.PID(), "it waits for the start")
			sqldtest.Await(t, primary, token)
			require.NotContains(t, log.String(), "answered nothing", "what asks for its health notices nothing")
			sqldtest.ExecWith(t, primary, token, "DELETE FROM probe")
		})
	}
}

// TestAPrimaryIsStuckOnlyWhereNothingIsWrittenAndNothingCanBe: neither a primary at rest is, nor one that writes.
func TestAPrimaryIsStuckOnlyWhereNothingIsWrittenAndNothingCanBe(t *testing.T) {
	t.Parallel()
	for name, tokens := range map[string]bool{"without tokens": false, "with tokens": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token, keys := "", ""
			if tokens {
				token, keys = tokenAndKeys(t)
			}
			primary := watched(t, &testkit.Log{}, keys, 0, limited)
			c := &client{t, primary.URL(), token}
			c.send(t.Context(), "", "CREATE TABLE probe (n INTEGER)")
			stuck := primary.WriteCheck()
			require.False(t, stuck(t.Context(), patience), "it has not looked before")
			require.False(t, stuck(t.Context(), patience), "it is at rest")

			baton, _ := c.send(t.Context(), "", "BEGIN IMMEDIATE", "INSERT INTO probe VALUES (1)")
			require.True(t, stuck(t.Context(), time.Second), "a transaction is open")
			c.send(t.Context(), baton, "COMMIT")
			require.False(t, stuck(t.Context(), time.Nanosecond), "that was written")

			c.send(t.Context(), "", "BEGIN IMMEDIATE", "INSERT INTO probe VALUES (2)")
			require.False(t, stuck(t.Context(), patience), "the server ends a transaction that stays open")
			primary.Kill()
			require.False(t, stuck(t.Context(), patience), "it does not run")
		})
	}
}

// TestThePrimaryAcceptsNoMoreTokensThanItsOwn: the key of the checks is in its directory, and lets nobody else in.
func TestThePrimaryAcceptsNoMoreTokensThanItsOwn(t *testing.T) {
	t.Parallel()
	token, keys := tokenAndKeys(t)
	others, _ := tokenAndKeys(t)
	primary := watched(t, &testkit.Log{}, keys, 0, limited)
	sqldtest.Await(t, primary, token)
	for _, refused := range []string{"", others} {
		_, answer := (&client{t, primary.URL(), refused}).send(t.Context(), "", "SELECT 1")
		require.NotContains(t, answer, `"ok"`)
	}
	info, err := os.Stat(filepath.Join(primary.Dir, "tokens.pub"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

// limited counts more checks of a second than a transaction may last.
const limited = 12

// watched is a primary that counts as hung, and as one that accepts no writes, after so many checks of a second; 0 is the usual.
func watched(t *testing.T, log *testkit.Log, keys string, hung, writeless int) *sqld.Server {
	t.Helper()
	primary := &sqld.Server{Config: sqld.Config{
		Program: sqldtest.Program(t), Dir: filepath.Join(t.TempDir(), "data"), HTTP: testkit.FreePort(t), GRPC: testkit.FreePort(t),
		JWTKeyFile: keys, Log: log,
	}}
	primary.HangsAfter(hung)
	primary.WritelessAfter(writeless)
	require.NoError(t, primary.Start())
	t.Cleanup(primary.Kill)
	require.Eventually(t, func() bool { return healthy(primary) }, patience, 10*time.Millisecond)
	return primary
}

// tokenAndKeys makes a key pair, and returns a token that may write and the file of the public key.
func tokenAndKeys(t *testing.T) (token, file string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "database.pub")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	token, err = libsql.SignToken(private, map[string]any{"a": "rw"})
	require.NoError(t, err)
	return token, file
}

func healthy(server *sqld.Server) bool {
	answer, err := http.Get(server.URL() + "/health")
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// client speaks the HTTP protocol of libSQL itself, so that a test decides when a stream is closed.
type client struct {
	t          *testing.T
	url, token string
}

// send runs statements on a stream, which it begins if baton is empty and leaves open if the last one is none that ends it.
func (c *client) send(ctx context.Context, baton string, statements ...string) (next, answer string) {
	var requests []any
	for _, text := range statements {
		requests = append(requests, map[string]any{"type": "execute", "stmt": map[string]any{"sql": text}})
	}
	body := map[string]any{"requests": append(requests, map[string]any{"type": "close"})}
	if last := statements[len(statements)-1]; statements[0] == "BEGIN IMMEDIATE" && last != "COMMIT" {
		body["requests"] = requests
	}
	if baton != "" {
		body["baton"] = baton
	}
	content, err := json.Marshal(body)
	require.NoError(c.t, err)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v2/pipeline", bytes.NewReader(content))
	require.NoError(c.t, err)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", ""
	}
	defer response.Body.Close()
	content, err = io.ReadAll(response.Body)
	if err != nil {
		return "", ""
	}
	var parsed struct{ Baton string }
	_ = json.Unmarshal(content, &parsed) // an error's text has none
	return parsed.Baton, string(content)
}

// jam tries to bring the primary's queue of writers to a stop, and reports whether it could: a transaction stays open until
// its limit; the one before it waits to checkpoint what it committed, and others wait behind that to write. They queue in this
// order if each is heard within the pause, which a busy machine may not do.
func (c *client) jam(pause time.Duration) bool {
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	baton, _ := c.send(ctx, "", "BEGIN IMMEDIATE", `WITH RECURSIVE row (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row LIMIT 3000)
		INSERT INTO probe SELECT n, randomblob(3000) FROM row`)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() { c.send(ctx, "", "BEGIN IMMEDIATE", "DELETE FROM probe") })
	time.Sleep(pause)
	waiting.Go(func() { c.send(ctx, baton, "COMMIT") })
	time.Sleep(pause)
	for range 5 {
		waiting.Go(func() { c.send(ctx, "", "BEGIN IMMEDIATE", "COMMIT") })
	}
	waiting.Wait()
	ctx, cancel = context.WithTimeout(c.t.Context(), 6*time.Second) // longer than what a transaction may take
	defer cancel()
	_, answer := c.send(ctx, "", "BEGIN IMMEDIATE", "COMMIT")
	return answer == ""
}
