package meter_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
)

// post asks the contract's server and returns its status and headers.
func post(t *testing.T, server *httptest.Server, token, target string) (int, http.Header) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+target, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := server.Client().Do(r)
	require.NoError(t, err)
	response.Body.Close()
	return response.StatusCode, response.Header
}

func TestTheContractOverHTTP(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	server := httptest.NewServer(e.Handler("meter-token"))
	defer server.Close()
	account := c.account("growth", 10)
	r := request(account, charge.Found)

	t.Run("needs the token", func(t *testing.T) {
		status, _ := post(t, server, "another", r.Target())
		require.Equal(t, http.StatusUnauthorized, status)
	})
	t.Run("gives the verdict that the process gives", func(t *testing.T) {
		status, header := post(t, server, "meter-token", r.Target())
		v, err := charge.ParseVerdict(status, header.Get)
		require.NoError(t, err)
		require.Equal(t, "", v.Code)
		require.EqualValues(t, 9, v.CreditsRemaining)
		require.Equal(t, v, e.Charge(t.Context(), r))
	})
	t.Run("voids", func(t *testing.T) {
		status, _ := post(t, server, "meter-token", charge.VoidTarget(r.ID))
		require.Equal(t, http.StatusNoContent, status)
		status, header := post(t, server, "meter-token", r.Target())
		v, err := charge.ParseVerdict(status, header.Get)
		require.NoError(t, err)
		require.Equal(t, charge.MeteringUnavailable, v.Code)
	})
	t.Run("refuses what is malformed", func(t *testing.T) {
		status, _ := post(t, server, "meter-token", charge.ChargePath+"?id=x")
		require.Equal(t, http.StatusBadRequest, status)
		status, _ = post(t, server, "meter-token", charge.VoidPath)
		require.Equal(t, http.StatusBadRequest, status)
	})
}

// fragile is a state directory on a disk that can fill up.
type fragile struct {
	journal.Dir
	full *atomic.Bool
}

func (d fragile) Append(name string) (journal.File, error) {
	f, err := d.Dir.Append(name)
	return fragileFile{f, d.full}, err
}

type fragileFile struct {
	journal.File
	full *atomic.Bool
}

var errFull = errors.New("no space left on device")

func (f fragileFile) Write(p []byte) (int, error) {
	if f.full.Load() {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, errFull
	}
	return f.File.Write(p)
}

func TestAFullDiskChargesNothing(t *testing.T) {
	c := startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "full")
	require.NoError(t, err)
	c.cutless("full")
	dir, err := journal.OpenDir(t.TempDir())
	require.NoError(t, err)
	disk := fragile{dir, &atomic.Bool{}}
	e := &edge{name: "full", token: node.Token}
	c.files = disk
	c.run(e)
	defer func() { e.stop() }()
	account := c.account("scale", 100)
	require.Equal(t, "", e.found(account))

	disk.full.Store(true)
	refused := request(account, charge.Found)
	require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), refused).Code)
	require.ErrorIs(t, e.Ready(), errFull)
	require.Error(t, e.Void(t.Context(), "some-id"))

	disk.full.Store(false)
	require.Equal(t, "", e.Charge(t.Context(), refused).Code, "the id was not charged before")
	eventually(t, func() bool { return e.Ready() == nil }, "ready again")
	eventually(t, func() bool { return c.read(account).Spent == 2 }, "two charges stand")
}

func TestUsageIsReported(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("scale", 100)
	for _, outcome := range []charge.Outcome{charge.Found, charge.Found, charge.NotFound, charge.Failed} {
		require.Equal(t, "", e.charge(account, outcome).Code)
	}
	counts := func(q writer.UsageQuery) map[string]int64 {
		rows, err := c.client.Usage(t.Context(), q)
		require.NoError(t, err)
		found := map[string]int64{}
		for _, r := range rows {
			require.Equal(t, "companies", r.Endpoint)
			found[r.Outcome] += r.Count
		}
		return found
	}
	want := map[string]int64{"found": 2, "not_found": 1, "failed": 1}
	eventually(t, func() bool { return len(counts(writer.UsageQuery{Account: account})) == 3 }, "the usage arrives")
	require.Equal(t, want, counts(writer.UsageQuery{Account: account}))
	require.Empty(t, counts(writer.UsageQuery{Account: account + 1}))
	require.Empty(t, counts(writer.UsageQuery{To: time.Now().Add(-2 * time.Hour)}))
}

func TestAWriterThatAnswersGarbage(t *testing.T) {
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }))
	defer garbage.Close()
	m, err := meter.Open(meter.Config{State: t.TempDir(), Writer: meter.OverHTTP(garbage.URL, "token", nil), WaitLimit: time.Second})
	require.NoError(t, err)
	e := &edge{Meter: m}
	stop := e.start(m)
	defer stop()
	require.Equal(t, charge.MeteringUnavailable, e.found(1))
	require.ErrorIs(t, e.Ready(), meter.ErrNoEpoch)
}
