package sqld

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAFileThatLostItsHeaderIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	h := &header{path: path}
	defer h.close()
	require.False(t, h.gone(), "there is none yet")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.False(t, h.gone(), "a new one is empty")
	for name, begin := range map[string]string{"empty": "", "zeros": strings.Repeat("\x00", 4096), "short": headerText[:9], "other": "PK" + strings.Repeat("x", 100)} {
		require.NoError(t, os.WriteFile(path, []byte(headerText+"rest"), 0o600), name)
		require.False(t, h.gone(), name)
		require.NoError(t, os.WriteFile(path, []byte(begin), 0o600), name)
		require.True(t, h.gone(), name)
		require.True(t, h.gone(), name)
		require.NoError(t, os.Remove(path))
		require.False(t, h.gone(), "removed, as sqld does")
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.False(t, h.gone(), "another file, which is new")
	}
	require.NoError(t, os.WriteFile(path, []byte(headerText), 0o600))
	require.False(t, h.gone())
	require.NoError(t, os.WriteFile(path+".new", nil, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
	require.False(t, h.gone(), "another file took its place")
	require.NoError(t, os.WriteFile(path+".new", []byte("no header"), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
	require.True(t, h.gone(), "one that was damaged while nobody looked")
}

func TestAnswersTellOfDamage(t *testing.T) {
	const statement = `{"results":[{"type":"error","error":{"message":"SQLite error: database disk image is malformed","code":"SQLITE_CORRUPT"}}]}`
	for _, c := range []struct {
		status  int
		body    string
		damaged bool
	}{
		{200, statement, true},
		{200, strings.Repeat(" ", 5000) + statement, true},
		{200, `{"error":{"message":"m","code":"SQLITE_NOTADB"}}`, true},
		{500, `{"error":"file is not a database"}`, true},
		{500, `{"error":"database disk image is malformed"}`, true},
		{500, `{"error":"database is locked"}`, false},
		{404, `{"error":"file is not a database"}`, false},
		{200, `{"error":{"message":"m","code":"SQLITE_CORRUPT_VTAB"}}`, false},
		{200, `{"rows":[[{"type":"text","value":"\"code\":\"SQLITE_CORRUPT\""}]]}`, false},
		{200, `{"rows":[[{"type":"text","value":"file is not a database"}]]}`, false},
		{200, "", false},
	} {
		sources := map[string]io.Reader{
			"whole": strings.NewReader(c.body), "by bytes": iotest.OneByteReader(strings.NewReader(c.body)), "by halves": iotest.HalfReader(strings.NewReader(c.body)),
		}
		for at := range c.body {
			sources[fmt.Sprint("divided at ", at)] = io.MultiReader(strings.NewReader(c.body[:at]), strings.NewReader(c.body[at:]))
		}
		for name, source := range sources {
			found := false
			answer := &http.Response{StatusCode: c.status, Body: io.NopCloser(source)}
			watchAnswer(answer, func() { found = true })
			passed, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.Equal(t, c.body, string(passed))
			require.Equal(t, c.damaged, found, "%s: %s", name, c.body)
		}
	}
	for _, sign := range append(damagedStatement, damagedDatabase...) {
		require.LessOrEqual(t, len(sign), longestSign)
	}
}

// TestCopiesAfterStatementsAreRare: each loads the primary.
func TestCopiesAfterStatementsAreRare(t *testing.T) {
	s := &Server{}
	now := time.Now()
	require.Zero(t, s.untilCopy(now))
	for _, pause := range []time.Duration{copyPause, 2 * copyPause, 4 * copyPause} {
		s.noteCopy(now)
		require.Equal(t, pause, s.untilCopy(now))
	}
	s.noteCopy(now.Add(calmAfter + 1))
	require.Equal(t, copyPause, s.untilCopy(now.Add(calmAfter+1)), "after a calm time the first again")
	for copies, pause := range map[int]time.Duration{1: copyPause, 2: 2 * copyPause, 6: 32 * copyPause, 7: 32 * copyPause, 1000: 32 * copyPause} {
		s.copied, s.copies = now, copies
		require.Equal(t, pause, s.untilCopy(now))
		require.Equal(t, time.Second, s.untilCopy(now.Add(pause-time.Second)))
		require.Zero(t, s.untilCopy(now.Add(pause)))
		require.Zero(t, s.untilCopy(now.Add(calmAfter+1)))
	}
}
