package meter_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/testkit"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/syncproto"
)

// deafDir is a state directory on a disk that can't be read for a while.
type deafDir struct {
	journal.Dir
	deaf *atomic.Bool
}

func (d deafDir) List() ([]string, error) {
	if d.deaf.Load() {
		return nil, syscall.EIO
	}
	return d.Dir.List()
}

// TestNobodyWaitsForAMeterThatIsNotOpen: a request would hold its connection for as long as WaitLimit, and
// no message of the writer could decide it.
func TestNobodyWaitsForAMeterThatIsNotOpen(t *testing.T) {
	dir, err := journal.OpenDir(t.TempDir())
	require.NoError(t, err)
	disk := deafDir{dir, &atomic.Bool{}}
	disk.deaf.Store(true)
	b := newBooks(t, 10)
	m, err := meter.OpenLater(meter.Config{Files: disk, Writer: b, WaitLimit: time.Hour})
	require.NoError(t, err)
	defer m.Close()
	require.ErrorIs(t, m.Ready(), syscall.EIO)
	require.Equal(t, charge.MeteringUnavailable, m.Charge(t.Context(), request(bookedAccount, charge.Found)).Code)
	require.Zero(t, m.Stats().Waited)
}

// TestAnArchiveThatCannotBeReadIsLogged: a restored ledger would lack what it has.
func TestAnArchiveThatCannotBeReadIsLogged(t *testing.T) {
	dir, err := journal.OpenDir(t.TempDir())
	require.NoError(t, err)
	disk := deafDir{dir, &atomic.Bool{}}
	var log testkit.Log
	m, err := meter.Open(meter.Config{Files: disk, Writer: newBooks(t, 10), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	m.CheckArchive()
	require.Empty(t, log.String())
	disk.deaf.Store(true)
	stop := (&edge{}).start(m)
	defer stop()
	eventually(t, func() bool { return strings.Contains(log.String(), "the reported batches can't be checked") }, "each start looks")
}

// TestALostJournalIsFoundAndLoggedOnce, by a meter that runs before the next write.
func TestALostJournalIsFoundAndLoggedOnce(t *testing.T) {
	var log testkit.Log
	state := t.TempDir()
	m, err := meter.Open(meter.Config{State: state, Writer: newBooks(t, 10), Logger: slog.New(slog.NewTextHandler(&log, nil)), LastReport: time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, os.Remove(segments(t, state)[0]))
	m.CheckFile()
	m.CheckFile()
	require.Equal(t, 1, strings.Count(log.String(), "deleted, replaced or cut"))
	require.NoError(t, m.Rotate())
	require.NoError(t, os.Remove(segments(t, state)[0]))
	stop := (&edge{}).start(m)
	defer stop()
	eventually(t, func() bool { return m.Stats().Replaced == 2 && len(segments(t, state)) == 1 }, "a new segment begins")
}

// unsafeDir is a state directory whose files can be written, and not made durable.
type unsafeDir struct {
	fillingDir
	failing *atomic.Bool
}

func (d unsafeDir) Append(name string) (journal.File, error) {
	f, err := d.fillingDir.Append(name)
	return unsafeFile{f, d.failing}, err
}

type unsafeFile struct {
	journal.File
	failing *atomic.Bool
}

func (f unsafeFile) Sync() error {
	if f.failing.Load() {
		return syscall.EIO
	}
	return f.File.Sync()
}

// openUnsafe opens a meter on such a directory.
func openUnsafe(t *testing.T) (*meter.Meter, unsafeDir) {
	t.Helper()
	dir, err := journal.OpenDir(t.TempDir())
	require.NoError(t, err)
	disk := unsafeDir{fillingDir{Dir: dir, full: &atomic.Bool{}}, &atomic.Bool{}}
	m, err := meter.Open(meter.Config{Files: disk, Writer: newBooks(t, 10), WaitLimit: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return m, disk
}

// TestAnEdgeIsNotReadyWhileItsDiskFails: neither when a sync failed, nor because there was nothing to sync
// after a write that did.
func TestAnEdgeIsNotReadyWhileItsDiskFails(t *testing.T) {
	m, disk := openUnsafe(t)
	e := &edge{Meter: m}
	granted(t, e)
	require.NoError(t, m.Flush())
	require.NoError(t, m.Ready())
	disk.full.Store(true)
	require.Equal(t, charge.MeteringUnavailable, e.found(bookedAccount))
	require.ErrorIs(t, m.Ready(), errFull)
	disk.full.Store(false)
	require.NoError(t, m.Flush())
	require.NoError(t, m.Flush(), "nothing to sync")
	require.ErrorIs(t, m.Ready(), errFull, "until a write succeeds")
	require.Equal(t, "", e.found(bookedAccount))
	require.NoError(t, m.Ready())
	disk.failing.Store(true)
	require.ErrorIs(t, m.Flush(), syscall.EIO)
	require.ErrorIs(t, m.Ready(), syscall.EIO)
	disk.failing.Store(false)
}

// TestAVoidThatIsNotDurableIsToldAsADiskThatFails, as a charge and a sync are.
func TestAVoidThatIsNotDurableIsToldAsADiskThatFails(t *testing.T) {
	m, disk := openUnsafe(t)
	granted(t, &edge{Meter: m})
	r := request(bookedAccount, charge.Found)
	require.Empty(t, m.Charge(t.Context(), r).Code)
	require.NoError(t, m.Ready())
	disk.failing.Store(true)
	defer disk.failing.Store(false)
	require.ErrorIs(t, m.Void(t.Context(), r.ID), syscall.EIO)
	require.ErrorIs(t, m.Void(t.Context(), r.ID), syscall.EIO, "nor when it is asked for again")
	require.ErrorIs(t, m.Ready(), syscall.EIO)
}

// countingDir counts the segments that are begun.
type countingDir struct {
	unsafeDir
	begun *atomic.Int64
}

func (d countingDir) Append(name string) (journal.File, error) {
	d.begun.Add(1)
	return d.unsafeDir.Append(name)
}

// TestADiskThatFailsIsNotTriedAllTheTime: each attempt writes a snapshot of all accounts.
func TestADiskThatFailsIsNotTriedAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, err := journal.OpenDir(t.TempDir())
		require.NoError(t, err)
		disk := countingDir{unsafeDir{fillingDir{Dir: dir, full: &atomic.Bool{}}, &atomic.Bool{}}, &atomic.Int64{}}
		b := newBooks(t, 10)
		m, err := meter.Open(meter.Config{Files: disk, Writer: b, JournalSync: time.Millisecond, LastReport: time.Millisecond, WaitLimit: time.Minute})
		require.NoError(t, err)
		defer m.Close()
		granted(t, &edge{Meter: m})
		b.before = func(ctx context.Context, m syncproto.Message) error {
			if m.Sync == nil || m.Sync.HoldMillis == 0 {
				return nil
			}
			<-ctx.Done() // a writer holds this one
			return ctx.Err()
		}
		disk.failing.Store(true)
		before, began := disk.begun.Load(), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		require.NoError(t, m.Run(ctx))
		require.Greater(t, disk.begun.Load(), before, "a new segment would mend it")
		require.LessOrEqual(t, disk.begun.Load()-before, 2+int64(time.Since(began).Seconds()))
		disk.failing.Store(false)
	})
}

// TestALongFileIsReadWithAWord now and then, since the edge does nothing else meanwhile; a short one without.
func TestALongFileIsReadWithAWord(t *testing.T) {
	state := t.TempDir()
	path := filepath.Join(state, "batches-00020000.log")
	var log testkit.Log
	var seconds atomic.Int64
	open := func() *meter.Meter {
		m, err := meter.Open(meter.Config{
			State: state, Writer: newBooks(t, 10), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Now: func() time.Time { return time.Unix(seconds.Add(1), 0) },
		})
		require.NoError(t, err)
		return m
	}
	require.NoError(t, os.WriteFile(path, []byte{1}, 0o600))
	m := open()
	m.CheckArchive()
	require.Empty(t, log.String())
	require.NoError(t, os.Truncate(path, 16<<20))
	m.CheckArchive()
	require.Contains(t, log.String(), "is being read")
	require.Contains(t, log.String(), "file=batches-00020000.log")
	require.Contains(t, log.String(), "of_bytes=16777216")
	require.NoError(t, m.Close())
}
