package cluster_test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/internal/testkit/sqldtest"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/sqld"
)

// TestReadTokensAreRenewed: regedge trust renew reaches a running edge, with a token that may manage
// nodes only.
func TestReadTokensAreRenewed(t *testing.T) {
	t.Parallel()
	f := startAt(t, "", []placed{{name: "east"}})
	operator, err := f.Client.AddToken(t.Context(), "renew", writer.RoleNodes, time.Hour)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(f.tokenEnds()) == 2 }, patience, 20*time.Millisecond)
	for _, seconds := range f.tokenEnds() {
		require.LessOrEqual(t, seconds, pki.ReadTokenLife.Seconds())
	}
	said, err := f.command([]string{"trust", "renew", "--trust", filepath.Join(f.Dir, "trust"), "--life", "1440h"},
		[]string{"REGEDGE_WRITER=" + f.WriterURL(), "REGEDGE_TOKEN=" + operator.Token}).CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, string(said), "east")
	require.Eventually(t, func() bool {
		ends := f.tokenEnds()
		return len(ends) == 2 && ends[0] > 1400*3600 && ends[1] > 1400*3600
	}, patience, 20*time.Millisecond, "the edge has the new tokens")
	f.push(f.before) // its replicas and their endpoints answer
	reader, err := f.Client.AddToken(t.Context(), "reader", writer.RoleRead, time.Hour)
	require.NoError(t, err)
	err = writer.NewClient(f.WriterURL(), reader.Token, nil).PassReadTokens(t.Context(), "east", nil)
	require.ErrorIs(t, err, writer.ErrForbidden)
}

// tokenEnds is in how many seconds the first edge's tokens end.
func (f *fixture) tokenEnds() (seconds []float64) {
	page, err := get(f.Edges[0].Metrics, "")
	if err != nil {
		return nil
	}
	for _, found := range regexp.MustCompile(`(?m)^regedge_read_token_ends_seconds\{.*\} (\S+)$`).FindAllStringSubmatch(page, -1) {
		value, err := strconv.ParseFloat(found[1], 64)
		if err == nil {
			seconds = append(seconds, value)
		}
	}
	return seconds
}

// TestANewTokenIsUsed: a database that was opened with a token that has ended answers after Set.
func TestANewTokenIsUsed(t *testing.T) {
	dir := t.TempDir()
	trust, err := pki.Create(filepath.Join(dir, "trust"), time.Now)
	require.NoError(t, err)
	past, err := pki.Open(filepath.Join(dir, "trust"), func() time.Time { return time.Now().Add(-2 * time.Hour) })
	require.NoError(t, err)
	ended, err := past.Token("access", pki.ReadOnly, time.Hour)
	require.NoError(t, err)
	fresh, err := trust.Token("access", pki.ReadOnly, time.Hour)
	require.NoError(t, err)
	server := &sqld.Server{Config: sqld.Config{
		Program: sqldtest.Program(t), Dir: filepath.Join(dir, "data"), HTTP: testkit.FreePort(t), JWTKeyFile: trust.ReplicaKeyFile("access"),
	}}
	require.NoError(t, server.Start())
	t.Cleanup(server.Kill)
	sqldtest.Await(t, server, fresh)
	token := libsql.NewToken(ended)
	db, err := libsql.OpenRenewed(server.URL(), token)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "SELECT 1")
	require.ErrorIs(t, libsql.Explain(err), libsql.ErrUnauthorized)
	token.Set(fresh)
	_, err = db.ExecContext(t.Context(), "SELECT 1")
	require.NoError(t, err)
}
