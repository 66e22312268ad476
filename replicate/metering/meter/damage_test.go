package meter_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/testkit"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/syncproto"
)

// unreported runs an edge that made charges which the writer does not have, and ends it as a kill
// does. It returns the directory as the kill left it, and the ids of the charges.
func (c *centre) unreported(e *edge, account int64, charges int) (state string, ids []string) {
	return c.unreportedAfter(e, account, 1, charges)
}

// unreportedAfter is the same for an account of which one charge fewer than reported was made before.
func (c *centre) unreportedAfter(e *edge, account, reported int64, charges int) (state string, ids []string) {
	require.Equal(c.t, "", e.found(account))
	c.cutAfterReport(e, account, reported)
	e.stop()
	m, err := meter.Open(meter.Config{State: e.state, WaitLimit: c.wait, SegmentBytes: c.segment}) // not run, it seals no batch
	require.NoError(c.t, err)
	for range charges {
		require.NoError(c.t, m.Rotate())
		r := request(account, charge.Found)
		require.Equal(c.t, "", m.Charge(c.t.Context(), r).Code)
		ids = append(ids, r.ID)
		require.NoError(c.t, m.Flush())
	}
	state = c.t.TempDir()
	require.NoError(c.t, os.CopyFS(state, os.DirFS(e.state)))
	require.NoError(c.t, m.Close())
	return state, ids
}

// segments lists the segments of a state directory, oldest first.
func segments(t *testing.T, state string) []string {
	paths, err := filepath.Glob(filepath.Join(state, "journal-*.log"))
	require.NoError(t, err)
	return paths
}

// flip changes one bit of a file.
func flip(t *testing.T, path string, find func(content []byte) int) {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	at := find(content)
	require.GreaterOrEqual(t, at, 0)
	content[at] ^= 4
	require.NoError(t, os.WriteFile(path, content, 0o600))
}

// TestAFlippedBitLosesOneCharge flips a bit in the first of 40 charges that were not reported. The others
// are reported and paid for, what is left of the leases goes back, and the edge serves in another epoch.
func TestAFlippedBitLosesOneCharge(t *testing.T) {
	const charges, credits = 40, 1000
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("scale", credits)
	state, ids := c.unreported(e, account, charges)
	newest := segments(t, state)[0]
	flip(t, newest, func(content []byte) int { return bytes.Index(content, []byte(ids[0])) })

	var log testkit.Log
	e.state, c.edgeLog = state, slog.New(slog.NewTextHandler(&log, nil))
	epoch := e.Epoch()
	c.run(e)
	require.True(t, e.Recovered().Lost)
	require.Contains(t, log.String(), "a segment of the journal is damaged")
	require.FileExists(t, newest+".corrupt")
	require.NoError(t, e.Check())
	require.Equal(t, charge.MeteringUnavailable, e.found(account), "its leases may be spent")
	c.cut["one"].Store(false)
	eventually(t, func() bool { return e.Epoch() > epoch && e.Ready() == nil }, "a new epoch")
	require.EqualValues(t, charges, c.read(account).Spent, "all but one, and the first")
	require.Zero(t, c.read(account).Leased)
	require.Equal(t, "", e.found(account))
	require.Equal(t, 1, e.Corrupt())
	e.stop()
	c.run(e)
	require.False(t, e.Recovered().Lost, "it is found once")
	eventually(t, func() bool { return c.read(account).Spent == charges+1 }, "and the one after")
}

// TestAFlippedBitInASnapshotLosesNothing flips a bit in the snapshot that the newest segment begins
// with. The segment before has all of it.
func TestAFlippedBitInASnapshotLosesNothing(t *testing.T) {
	const charges = 20
	c := startCentre(t, nil)
	c.segment = 1 << 10
	e := c.edge("one")
	account := c.account("scale", 1000)
	state, _ := c.unreported(e, account, charges)
	all := segments(t, state)
	require.Greater(t, len(all), 1)
	flip(t, all[len(all)-1], func([]byte) int { return 9 })

	epoch := e.Epoch()
	e.state = state
	c.run(e)
	require.Equal(t, []string{filepath.Base(all[len(all)-1])}, e.Recovered().Damaged)
	require.False(t, e.Recovered().Lost)
	require.Equal(t, "", e.found(account), "from its lease")
	c.cut["one"].Store(false)
	eventually(t, func() bool { return c.read(account).Spent == charges+2 }, "all are reported")
	require.Equal(t, epoch, e.Epoch())
}

// TestAChargeWhoseRequestIDIsLostIsNotSaidToBeVoided flips a bit in the segment before the newest, whose snapshot
// has the charge: without the id, nobody can tell whether there is one.
func TestAChargeWhoseRequestIDIsLostIsNotSaidToBeVoided(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("scale", 1000)
	state, _ := c.unreported(e, account, 0)
	charged := func(m *meter.Meter) string {
		r := request(account, charge.Found)
		r.ID = syncproto.RequestIDsFrom(time.Now().UnixMilli()) + fmt.Sprintf("%016d", ids.Add(1)) // it has its time
		require.Equal(t, "", m.Charge(t.Context(), r).Code)
		return r.ID
	}
	open := func() *meter.Meter {
		m, err := meter.Open(meter.Config{State: state, SegmentBytes: 1, Writer: meter.OverHTTP("http://writer.invalid", e.token, nil)})
		require.NoError(t, err)
		return m
	}
	m := open()
	id := charged(m)
	before := segments(t, state)
	require.NoError(t, m.Rotate())
	require.NoError(t, m.Close())
	flip(t, before[len(before)-1], func(content []byte) int { return bytes.Index(content, []byte(id)) })

	m = open()
	defer m.Close()
	require.True(t, m.Recovered().IDsLost)
	require.False(t, m.Recovered().Lost)
	require.ErrorIs(t, m.Void(t.Context(), id), lease.ErrForgotten)
	require.NoError(t, m.Void(t.Context(), charged(m)), "it was charged since")
}

// TestAnEdgeWithNothingButDamageBeginsAnew destroys the journal as a whole.
func TestAnEdgeWithNothingButDamageBeginsAnew(t *testing.T) {
	c := startCentre(t, nil)
	e := c.edge("one")
	account := c.account("scale", 1000)
	state, _ := c.unreported(e, account, 5)
	for _, path := range segments(t, state) {
		require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("x"), 5000), 0o600))
	}
	e.state = state
	c.cut["one"].Store(false)
	c.run(e)
	require.Equal(t, journal.Replayed{Damaged: e.Recovered().Damaged, Lost: true, IDsLost: true}, e.Recovered())
	eventually(t, func() bool { return e.found(account) == "" }, "it serves")
	require.EqualValues(t, 1, e.Corrupt())
}

// syncedDir is a state directory that notes, each time a damaged segment is set aside, how much of the reported
// batches is durable.
type syncedDir struct {
	journal.Dir
	synced *int64   // bytes of the archive's file, as last synced
	aside  *[]int64 // the same when a segment was set aside
	full   *atomic.Bool
}

func (d syncedDir) Append(name string) (journal.File, error) {
	f, err := d.Dir.Append(name)
	if err == nil && strings.HasPrefix(name, "batches-") {
		return syncedFile{f, d}, nil
	}
	return f, err
}

func (d syncedDir) Rename(from, to string) error {
	if strings.HasSuffix(to, ".corrupt") {
		*d.aside = append(*d.aside, *d.synced)
	}
	return d.Dir.Rename(from, to)
}

type syncedFile struct {
	journal.File
	dir syncedDir
}

func (f syncedFile) Write(p []byte) (int, error) {
	if f.dir.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

func (f syncedFile) Sync() error {
	err := f.File.Sync()
	if size, failed := f.Size(); err == nil && failed == nil {
		*f.dir.synced = size
	}
	return err
}

// TestReportedBatchesOutliveADamagedSegment has an edge find its only segment damaged, after the archive
// of what it reported was lost. The batches are durable there again before the segment is set aside, also
// when the disk is full at first.
func TestReportedBatchesOutliveADamagedSegment(t *testing.T) {
	for name, full := range map[string]bool{"with room": false, "on a full disk": true} {
		t.Run(name, func(t *testing.T) {
			const batches = 3
			c := startCentre(t, nil)
			e := c.edge("one")
			account := c.account("scale", 1000)
			for n := range batches - 1 {
				require.Equal(t, "", e.found(account))
				eventually(t, func() bool { return c.read(account).Spent == int64(n)+1 && e.Stats().Unsettled == 0 }, "reported")
			}
			epoch := e.Epoch()
			state, ids := c.unreportedAfter(e, account, batches, 2)
			flip(t, segments(t, state)[0], func(content []byte) int { return bytes.Index(content, []byte(ids[0])) })
			archive, err := filepath.Glob(filepath.Join(state, "batches-*.log"))
			require.NoError(t, err)
			require.Len(t, archive, 1)
			require.NoError(t, os.Remove(archive[0]))

			dir, err := journal.OpenDir(state)
			require.NoError(t, err)
			disk := syncedDir{dir, new(int64), new([]int64), &atomic.Bool{}}
			disk.full.Store(full)
			writer := meter.OverHTTP("http://writer", e.token, &http.Client{Transport: link{c, c.cut["one"]}})
			m, err := meter.OpenLater(meter.Config{Files: disk, LastReport: c.last, Writer: writer})
			require.NoError(t, err)
			require.True(t, m.Recovered().Lost)
			stop := e.start(m)
			disk.full.Store(false)
			eventually(t, func() bool { return m.Corrupt() == 1 }, "the segment is set aside")
			stop()
			require.Len(t, *disk.aside, 1)
			require.NotZero(t, (*disk.aside)[0], "no batch was durable yet")

			dir, err = journal.OpenDir(state)
			require.NoError(t, err)
			ignore := func([]byte) error { return nil }
			j := journal.New(noOwner{&sync.Mutex{}})
			_, err = j.Open(dir, ignore, ignore, func(*journal.Replayed) {})
			require.NoError(t, err)
			for seq := uint64(1); seq <= batches; seq++ {
				b, err := j.Batch(epoch, seq)
				require.NoError(t, err)
				require.NotNil(t, b, "batch %d", seq)
			}
			require.NoError(t, j.Close())
		})
	}
}

// noOwner owns a journal to which nothing is written.
type noOwner struct{ *sync.Mutex }

func (noOwner) Drop([]byte) {}
