package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/sqlite"
	"regedge/schema"
)

// besideEndpoint is a replica's endpoint: what is held, or the newest state.
type besideEndpoint struct {
	*sqlite.Beside
	server *sqlite.Store
	asked  []string // what the server was asked
}

func (e *besideEndpoint) Query(ctx context.Context, statement string, args []handler.Value, dst *handler.Result) error {
	if strings.Contains(statement, "heartbeat") {
		return e.server.Query(ctx, statement, args, dst)
	}
	if len(args) > 0 {
		return errors.New("no statement here has parameters")
	}
	columns, values, ok := e.Read(ctx, statement, nil)
	if !ok {
		e.asked = append(e.asked, statement)
		return e.server.Query(ctx, statement, args, dst)
	}
	dst.Columns, dst.Values = len(columns), dst.Values[:0]
	for _, value := range values {
		switch value := value.(type) {
		case int64:
			dst.Values = append(dst.Values, handler.Value{Kind: handler.Integer, Int: value})
		case string:
			dst.Values = append(dst.Values, handler.Value{Kind: handler.Text, Text: value})
		}
	}
	return nil
}

func (e *besideEndpoint) Close() error { return nil }

// endpointOf makes the endpoint of a file's replica.
func endpointOf(t *testing.T, path string) *besideEndpoint {
	t.Helper()
	e := &besideEndpoint{Beside: sqlite.OpenBeside(path), server: open(t, sqlite.Config{Path: path})}
	t.Cleanup(func() { require.NoError(t, e.Beside.Close()) })
	return e
}

func TestAReleaseIsReadBesideAReplicaWhileAPushIsUnderWay(t *testing.T) {
	p := startPushed(t)
	b := endpointOf(t, p.path).Beside
	read := func() (string, bool) {
		columns, values, ok := b.Read(t.Context(), "SELECT max(id) AS newest, ?1 AS given, ?2, x'00ff', NULL FROM release", []any{"text", int64(7)})
		if !ok {
			return "", false
		}
		require.Equal(t, []string{"newest", "given", "?2", "x'00ff'", "NULL"}, columns)
		require.Equal(t, []any{"text", int64(7), []byte{0, 0xff}, nil}, values[1:])
		return values[0].(string), true
	}
	for range 2 {
		b.Refresh()
		_, ok := read()
		require.False(t, ok, "no push is under way")
	}
	p.begin()
	b.Refresh()
	p.write(1)
	p.finish()
	release, ok := read()
	require.True(t, ok)
	require.Equal(t, "one", release)
	for name, bad := range map[string]func() (string, []any){
		"a write":          func() (string, []any) { return "DELETE FROM release", nil },
		"a transaction":    func() (string, []any) { return "BEGIN IMMEDIATE", nil },
		"two statements":   func() (string, []any) { return "SELECT 1; SELECT 2", nil },
		"a fraction":       func() (string, []any) { return "SELECT 1.5", nil },
		"a given fraction": func() (string, []any) { return "SELECT ?1", []any{1.5} },
		"too few":          func() (string, []any) { return "SELECT ?1", nil },
		"no statement":     func() (string, []any) { return "SELEKT", nil },
		"another file":     func() (string, []any) { return "ATTACH 'x' AS y", nil },
	} {
		statement, args := bad()
		_, _, ok := b.Read(t.Context(), statement, args)
		require.False(t, ok, name)
	}
	b.Refresh()
	_, ok = read()
	require.False(t, ok, "the push has ended")
}

// TestNothingIsReadBesideOtherFiles: one that is not there yet, and one that is never pushed to.
func TestNothingIsReadBesideOtherFiles(t *testing.T) {
	for name, path := range map[string]string{"missing": filepath.Join(t.TempDir(), "none"), "access": accessCopy(t, 1, 0)} {
		b := sqlite.OpenBeside(path)
		for range 2 {
			b.Refresh()
			_, _, ok := b.Read(t.Context(), "SELECT 1", nil)
			require.False(t, ok, name)
		}
		require.NoError(t, b.Close())
	}
}

// startLate starts an edge in the middle of a push, whose replica's endpoint holds the release before.
func startLate(t *testing.T) (*pushed, *besideEndpoint) {
	t.Helper()
	p := startPushed(t)
	e := endpointOf(t, p.path)
	p.begin()
	e.Refresh()
	p.write(1)
	p.open(e)
	return p, e
}

// TestAnEdgeThatMeetsAPushInItsMiddleReadsTheReleaseBefore from an endpoint that holds it, until the push ends.
func TestAnEdgeThatMeetsAPushInItsMiddleReadsTheReleaseBefore(t *testing.T) {
	p, e := startLate(t)
	for i := range 3 {
		p.write(2 + i)
		time.Sleep(2 * time.Millisecond) // longer than ReadTx
		p.requireShown("one: one")
		require.NoError(t, p.Ready(time.Minute))
		require.True(t, p.Remote())
		p.exec("UPDATE heartbeat SET beat = unixepoch('subsec') * 1000")
		require.ErrorContains(t, p.Refresh(), "only the replica's endpoint still has the release before")
	}
	require.Empty(t, e.asked)
	p.finish()
	p.requireShown("one: one")
	require.NoError(t, p.Refresh())
	require.False(t, p.Remote())
	p.eventually("two: two")
	require.NotContains(t, p.log.String(), "mix")
}

// TestAnEndpointThatHoldsNothingAnyMoreIsNotPreferred: it was started anew within the push.
func TestAnEndpointThatHoldsNothingAnyMoreIsNotPreferred(t *testing.T) {
	p, e := startLate(t)
	p.requireShown("one: one")
	require.NoError(t, e.Beside.Close())
	e.Beside = sqlite.OpenBeside(p.path)
	e.Refresh()
	require.NoError(t, p.Refresh())
	require.False(t, p.Remote())
	require.ErrorContains(t, p.Ready(time.Minute), "a push is under way")
	require.Eventually(t, func() bool { return slices.Contains(p.shown(), "one: one,two") }, testTimeout, time.Millisecond)
	require.Contains(t, p.log.String(), "may mix two releases")
}

// TestTheReleaseBeforeIsReadOnWhenTheReplicaIsCopiedAnewWithinAPush: its primary was started again. The new file tells
// the age, so that the edge stays ready, however long the push stands still.
func TestTheReleaseBeforeIsReadOnWhenTheReplicaIsCopiedAnewWithinAPush(t *testing.T) {
	p := startPushed(t)
	p.begin()
	require.NoError(t, p.Refresh())
	p.write(1)
	p.exec("VACUUM INTO '" + p.path + ".new'")
	require.NoError(t, p.db.Close())
	for _, suffix := range []string{"-wal", "-shm"} {
		require.NoError(t, os.RemoveAll(p.path+suffix))
	}
	require.NoError(t, os.Rename(p.path+".new", p.path))
	var err error
	p.db, err = schema.OpenFile(p.path)
	require.NoError(t, err)
	p.exec("UPDATE heartbeat SET beat = unixepoch('subsec') * 1000 + 3000")
	for i := range 3 {
		p.write(2 + i)
		require.NoError(t, p.Refresh())
		p.requireShown("one: one")
		age, known := p.Age()
		require.True(t, known)
		require.Zero(t, age, "that of the new file")
		require.NoError(t, p.Ready(time.Minute))
	}
	p.finish()
	require.NoError(t, p.Refresh())
	p.eventually("two: two")
}
