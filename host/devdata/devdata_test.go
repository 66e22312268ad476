package devdata_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/devdata"
	"regedge/host/hint"
	"regedge/host/service"
	"regedge/replicate/dashboard"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

// TestAnInterruptedFirstStartIsResumed: the next start imports the sample, and those after it do not.
func TestAnInterruptedFirstStartIsResumed(t *testing.T) {
	dir := t.TempDir()
	start := func(ctx context.Context) (sampled bool, err error) {
		var closers service.Closers
		data, err := devdata.Open(ctx, dir, "", time.Now, io.Discard, &closers)
		require.NoError(t, closers.Close())
		return err == nil && data.Sampled, err
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := start(interrupted)
	require.ErrorIs(t, err, context.Canceled)
	var made [2]int
	for i := range made {
		sampled, err := start(t.Context())
		require.NoError(t, err)
		require.True(t, sampled)
		db, err := schema.OpenReadOnly(filepath.Join(dir, "registry.db"))
		require.NoError(t, err)
		require.NoError(t, db.QueryRow("SELECT count(*) FROM release").Scan(&made[i]))
		require.NoError(t, db.Close())
	}
	require.Positive(t, made[0])
	require.Equal(t, made[0], made[1])
}

// TestTheSecretsAreTheirOwnersAlone, also once they were written again.
func TestTheSecretsAreTheirOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var closers service.Closers
	data, err := devdata.Open(t.Context(), dir, "", time.Now, io.Discard, &closers)
	require.NoError(t, err)
	require.NoError(t, closers.Close())
	for path, want := range map[string]os.FileMode{dir: 0o700, data.SecretsFile(): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), path)
	}
}

// started is a data directory with its writer, until stop.
type started struct {
	*devdata.Data
	client *writer.Client
	pages  *dashboard.Dashboard
	ledger *sql.DB
}

// start opens a directory as dev does, with a registry of its own, which is not opened.
func start(t *testing.T, dir string) (s started, stop func()) {
	t.Helper()
	var closers service.Closers
	data, err := devdata.Open(t.Context(), dir, "own.db", time.Now, io.Discard, &closers)
	require.NoError(t, err)
	ledger, err := schema.OpenFile(data.LedgerFile())
	require.NoError(t, err)
	closers.Add(ledger.Close)
	access, err := schema.OpenFile(data.AccessFile())
	require.NoError(t, err)
	closers.Add(access.Close)
	central, err := writer.Open(t.Context(), writer.Config{Ledger: ledger, Access: access, OperatorToken: data.OperatorToken})
	require.NoError(t, err)
	closers.Add(central.Close)
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { central.Run(ctx) })
	closers.Add(func() error { end(); running.Wait(); return nil })
	pages, err := dashboard.New(dashboard.Config{Writer: central, Ledger: ledger, OperatorToken: data.OperatorToken})
	require.NoError(t, err)
	client := writer.NewClient("http://writer", data.OperatorToken, &http.Client{Transport: writer.InProcess(central.Handler())})
	return started{data, client, pages, ledger}, func() { require.NoError(t, closers.Close()) }
}

// TestTheDemoAccountIsMadeOnce, though a start ended before it saved the key: its owner signs in to the account that
// has the key.
func TestTheDemoAccountIsMadeOnce(t *testing.T) {
	s, stop := start(t, t.TempDir())
	defer stop()
	s.OperatorPassword = "made already"
	for range 2 {
		s.NodeToken, s.LiveKey = "", "" // what the start before made, and did not save
		require.NoError(t, s.Provision(t.Context(), s.client, nil))
	}
	accounts, err := s.client.Accounts(t.Context())
	require.NoError(t, err)
	require.Len(t, accounts, 1)
	require.EqualValues(t, 100_000, accounts[0].Bought)
	require.NotEmpty(t, s.LiveKey)
}

// TestWhatDevShowsStaysTheSame: key, token and passwords are in scripts and browsers of its developer.
func TestWhatDevShowsStaysTheSame(t *testing.T) {
	dir := t.TempDir()
	s, stop := start(t, dir)
	require.NoError(t, s.Provision(t.Context(), s.client, s.pages))
	shown := s.Secrets
	require.NotEmpty(t, shown.OwnerPassword)
	require.NotEqual(t, shown.OwnerPassword, shown.OperatorPassword)
	stop()
	s, stop = start(t, dir)
	defer stop()
	require.Equal(t, shown, s.Secrets, "each was saved")
	require.NoError(t, s.Provision(t.Context(), s.client, s.pages))
	require.Equal(t, shown, s.Secrets)
	keys, err := s.client.Keys(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	nodes, err := s.client.Nodes(t.Context())
	require.NoError(t, err)
	require.Len(t, nodes, 1)
}

// TestAKeyThatWasRevokedOrReplacedIsKnown, since it can't be shown as one that works.
func TestAKeyThatWasRevokedOrReplacedIsKnown(t *testing.T) {
	s, stop := start(t, t.TempDir())
	defer stop()
	require.NoError(t, s.Provision(t.Context(), s.client, s.pages))
	works := func() bool {
		t.Helper()
		works, err := s.KeyWorks(t.Context(), s.client)
		require.NoError(t, err)
		return works
	}
	require.True(t, works())
	_, err := s.client.RotateKey(t.Context(), 1, time.Hour)
	require.NoError(t, err)
	require.True(t, works(), "for an hour")
	_, err = s.client.RotateKey(t.Context(), 1, 0)
	require.NoError(t, err)
	require.False(t, works())
	made, err := s.client.AddKey(t.Context(), 1, "another")
	require.NoError(t, err)
	s.LiveKey = made.Secret
	require.True(t, works())
	_, err = s.client.RevokeKey(t.Context(), made.ID)
	require.NoError(t, err)
	require.False(t, works())
}

// TestALostLedgerIsRefused: with a new ledger dev ran, but its key and its node got 401 for ever.
func TestALostLedgerIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, stop := start(t, dir)
	require.NoError(t, s.Provision(t.Context(), s.client, s.pages))
	stop()
	require.NoError(t, os.Remove(s.LedgerFile()))
	var closers service.Closers
	_, err := devdata.Open(t.Context(), dir, "own.db", time.Now, io.Discard, &closers)
	require.NoError(t, closers.Close())
	require.ErrorContains(t, err, "ledger.db is gone")
	require.Equal(t, "remove "+dir+" to start over", hint.Of(err))
}

// TestALostRegistryIsMadeAgain, and a damaged one names the way out: the hint was to run dev without one.
func TestALostRegistryIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	registry := filepath.Join(dir, "registry.db")
	var said strings.Builder
	open := func() error {
		t.Helper()
		var closers service.Closers
		data, err := devdata.Open(t.Context(), dir, "", time.Now, &said, &closers)
		if err == nil {
			_, _, err = data.OpenDatabases(t.Context(), &closers)
		}
		require.NoError(t, closers.Close())
		return err
	}
	require.ErrorContains(t, open(), "access.db", "the writer makes it")
	require.NoError(t, os.Remove(registry))
	require.ErrorContains(t, open(), "access.db")
	require.FileExists(t, registry)
	require.Equal(t, 1, strings.Count(said.String(), "First start"))
	require.Contains(t, said.String(), registry+" is gone: making it again")
	for name, content := range map[string]string{"no database": strings.Repeat("a text\n", 100), "cut short": cutShort(t, registry)} {
		require.NoError(t, os.WriteFile(registry, []byte(content), 0o600))
		err := open()
		require.ErrorContains(t, err, "registry.db: ", name)
		require.NotContains(t, err.Error(), "fts5", name)
		require.Equal(t, "remove "+dir+" to start over", hint.Of(err), name)
	}
}

// cutShort is the beginning of a file.
func cutShort(t *testing.T, file string) string {
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(content[:5000])
}

// TestEachSecretIsSavedWhenItIsMade: the start may end before the next is.
func TestEachSecretIsSavedWhenItIsMade(t *testing.T) {
	dir := t.TempDir()
	s, stop := start(t, dir)
	defer func() { stop() }()
	saved := func() devdata.Secrets {
		t.Helper()
		stop()
		s, stop = start(t, dir)
		return s.Secrets
	}
	s.LiveKey, s.OperatorPassword = "later", "later"
	require.NoError(t, s.Provision(t.Context(), s.client, nil))
	node := s.NodeToken
	require.Equal(t, node, saved().NodeToken)
	s.LiveKey, s.OperatorPassword = "", "later"
	require.NoError(t, s.Provision(t.Context(), s.client, nil))
	key := s.LiveKey
	require.NotEmpty(t, key)
	require.Equal(t, key, saved().LiveKey)
}

// TestTheSignInsAreThoseOfAnOwnerAndAnOperator, also after a start that ended before it saved their passwords.
func TestTheSignInsAreThoseOfAnOwnerAndAnOperator(t *testing.T) {
	s, stop := start(t, t.TempDir())
	defer stop()
	var before string
	for range 2 {
		s.OwnerPassword, s.OperatorPassword = "", ""
		require.NoError(t, s.Provision(t.Context(), s.client, s.pages))
		var owner, operator, stored string
		require.NoError(t, s.ledger.QueryRow(`SELECT email, password FROM user WHERE account = 1 AND operator = 0`).Scan(&owner, &stored))
		require.NoError(t, s.ledger.QueryRow(`SELECT email FROM user WHERE account IS NULL AND operator = 1`).Scan(&operator))
		require.Equal(t, []string{devdata.Owner, devdata.Operator}, []string{owner, operator})
		require.NotEqual(t, before, stored)
		before = stored
		for email, password := range map[string]string{devdata.Owner: s.OwnerPassword, devdata.Operator: s.OperatorPassword} {
			require.Equal(t, "/", signIn(t, s.pages.Handler(), email, password))
		}
	}
}

// formToken is the field by which a form is known as one of the pages.
var formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// signIn fills in the form of the dashboard and returns where that leads.
func signIn(t *testing.T, pages http.Handler, email, password string) string {
	t.Helper()
	page := httptest.NewRecorder()
	pages.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "http://writer/sign-in", nil))
	token := formToken.FindStringSubmatch(page.Body.String())
	require.Len(t, token, 2)
	form := url.Values{"token": {token[1]}, "email": {email}, "password": {password}}
	r := httptest.NewRequest(http.MethodPost, "http://writer/sign-in", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, cookie := range page.Result().Cookies() {
		r.AddCookie(cookie)
	}
	answer := httptest.NewRecorder()
	pages.ServeHTTP(answer, r)
	return answer.Header().Get("Location")
}

// TestSpoiltSecretsAreToldAndKept: a developer may mend the file, and the databases belong to them.
func TestSpoiltSecretsAreToldAndKept(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "dev.json")
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	var closers service.Closers
	_, err := devdata.Open(t.Context(), dir, "own.db", time.Now, io.Discard, &closers)
	require.ErrorContains(t, err, file)
	require.Contains(t, hint.Of(err), "remove "+dir)
	require.NoError(t, closers.Close())
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "{", string(content))

	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700)) // it can't be read
	_, err = devdata.Open(t.Context(), dir, "own.db", time.Now, io.Discard, &closers)
	require.ErrorContains(t, err, "read "+file)
	require.NoError(t, closers.Close())
}

// TestARegistryOfTheDevelopersOwnIsTheOnlyOne: no sample is made beside it.
func TestARegistryOfTheDevelopersOwnIsTheOnlyOne(t *testing.T) {
	dir := t.TempDir()
	var said strings.Builder
	var closers service.Closers
	_, err := devdata.Open(t.Context(), dir, "own.db", time.Now, &said, &closers)
	require.NoError(t, err)
	require.NoError(t, closers.Close())
	require.Empty(t, said.String())
	require.NoFileExists(t, filepath.Join(dir, "registry.db"))
}

// TestADirectoryThatCanNotBeUsedIsToldWithTheWayOut: it is a file, or another regedge has it.
func TestADirectoryThatCanNotBeUsedIsToldWithTheWayOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	var closers service.Closers
	_, err := devdata.Open(t.Context(), file, "", time.Now, io.Discard, &closers)
	require.ErrorContains(t, err, "make data directory")
	require.Contains(t, hint.Of(err), "--data DIR chooses another")

	dir := t.TempDir()
	_, err = devdata.Open(t.Context(), dir, "own.db", time.Now, io.Discard, &closers)
	require.NoError(t, err)
	_, err = devdata.Open(t.Context(), dir, "own.db", time.Now, io.Discard, &closers)
	require.ErrorContains(t, err, dir)
	require.Contains(t, hint.Of(err), "another regedge runs on "+dir)
	require.NoError(t, closers.Close())
	_, err = devdata.Open(t.Context(), dir, "own.db", time.Now, io.Discard, &closers)
	require.NoError(t, err, "the first one has ended")
	require.NoError(t, closers.Close())
}
