package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/internal/testkit"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/lease"
	"regedge/replicate/metering/syncproto"
)

// logged is a meter that is not open, and what it logs.
func logged() (*Meter, *bytes.Buffer) {
	var log bytes.Buffer
	return newMeter(Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}), &log
}

// TestAVoidThatFailsIsLogged with the request's id, by which its charge is found.
func TestAVoidThatFailsIsLogged(t *testing.T) {
	m, log := logged()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, charge.VoidTarget("id-1"), nil)
	r.Header.Set("Authorization", "Bearer token")
	m.Handler("token").ServeHTTP(w, r)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, log.String(), "request_id=id-1")
	require.Contains(t, log.String(), journal.ErrNotOpen.Error())
}

func TestSettingsThatAreGivenAreKept(t *testing.T) {
	given := Config{JournalSync: 1, WaitLimit: 2, LastReport: 3, SegmentBytes: 4}
	c := given.withDefaults()
	require.Equal(t, []int64{1, 2, 3, 4}, []int64{int64(c.JournalSync), int64(c.WaitLimit), int64(c.LastReport), c.SegmentBytes})
	for _, missing := range []Config{{}, {JournalSync: -1, WaitLimit: -1, LastReport: -1, SegmentBytes: -1}} {
		c = missing.withDefaults()
		require.Equal(t, DefaultJournalSync, c.JournalSync)
		require.Equal(t, DefaultWaitLimit, c.WaitLimit)
		require.Equal(t, DefaultLastReport, c.LastReport)
		require.EqualValues(t, journal.DefaultSegment, c.SegmentBytes)
		require.WithinDuration(t, time.Now(), c.Now(), time.Minute)
		random := make([]byte, 16)
		c.Random(random)
		require.NotEqual(t, make([]byte, 16), random)
		c.Logger.Info("nobody reads it")
	}
}

// TestSyncsAreMeasured by the meter's clock.
func TestSyncsAreMeasured(t *testing.T) {
	now := time.Unix(1000, 0)
	var took []time.Duration
	c := Config{State: t.TempDir(), Synced: func(d time.Duration) { took = append(took, d) }}
	c.Now = func() time.Time { now = now.Add(time.Second); return now }
	dir, err := c.openDir()
	require.NoError(t, err)
	file, err := dir.Append("any")
	require.NoError(t, err)
	require.NoError(t, file.Sync())
	require.Equal(t, []time.Duration{time.Second}, took)
	require.NoError(t, file.Close())
	require.Error(t, file.Sync(), "its error is passed on")
	require.Len(t, took, 2, "a disk that fails after a minute is slow, too")
	_, err = dir.Append("no/such/folder")
	require.Error(t, err)
	_, err = c.openDir()
	require.ErrorIs(t, err, journal.ErrInUse)
	require.NoError(t, dir.Close())
}

// TestWhyAnEdgeIsNotReady: the disk comes before the clock.
func TestWhyAnEdgeIsNotReady(t *testing.T) {
	m, log := logged()
	require.ErrorIs(t, m.Ready(), ErrNoEpoch)
	full := fmt.Errorf("write: %w", syscall.ENOSPC)
	m.noteDisk(full)
	m.noteDisk(full)
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
	require.Equal(t, full, m.Ready())
	m.noteDisk(nil)
	m.noteDisk(nil)
	require.Equal(t, 2, strings.Count(log.String(), "\n"))
	require.Contains(t, log.String(), "can be written again")
	require.ErrorIs(t, m.Ready(), ErrNoEpoch)

	m.state.Boot(1)
	greeted := func(status syncproto.Status, epoch uint64) {
		m.state.Hello(1)
		m.state.Apply(1, &syncproto.Reply{Status: status, Session: 1, Epoch: epoch, Generation: 1, Live: 1}, false)
	}
	greeted(syncproto.Fresh, 1)
	require.NoError(t, m.Ready())
	for skew, ready := range map[int64]bool{5000: true, 5001: false, -5000: true, -5001: false} {
		m.noteSkew(10_000, 10_000, 10_000+skew)
		require.Equal(t, ready, m.Ready() == nil, skew)
	}
	m.noteSkew(10_000, 10_000, 15_001)
	require.ErrorIs(t, m.Ready(), ErrSkew)
}

func TestTheWritersClockIsBetweenSendingAndReceiving(t *testing.T) {
	m, _ := logged()
	for writers, skew := range map[int64]int64{90: -10, 100: 0, 150: 0, 200: 0, 210: 10} {
		m.noteSkew(100, 200, writers)
		require.Equal(t, skew, m.skewMillis.Load(), writers)
	}
}

// TestADiskThatMayRecoverIsWaitedFor, another failure of the state directory ends the start.
func TestADiskThatMayRecoverIsWaitedFor(t *testing.T) {
	for err, may := range map[error]bool{
		syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EROFS: true, syscall.EIO: true, syscall.EACCES: false, journal.ErrInUse: false,
	} {
		require.Equal(t, may, mayRecover(fmt.Errorf("open: %w", err)), err)
	}
	m, err := OpenLater(Config{State: "/dev/null/state"})
	require.Error(t, err)
	require.Nil(t, m)
}

// TestAChangeOfStandingIsLoggedOnce.
func TestAChangeOfStandingIsLoggedOnce(t *testing.T) {
	for _, c := range []struct {
		before, after syncproto.Status
		applied       lease.Applied
		want          string
	}{
		{syncproto.OK, syncproto.OK, lease.Applied{}, ""},
		{syncproto.Retired, syncproto.Retired, lease.Applied{}, ""},
		{syncproto.Retired, syncproto.OK, lease.Applied{}, ""},
		{syncproto.OK, syncproto.Superseded, lease.Applied{}, "a newer epoch was given"},
		{syncproto.OK, syncproto.Retired, lease.Applied{}, "this node is retired: live keys"},
		{syncproto.OK, syncproto.OK, lease.Applied{Forked: true}, "its leases are void"},
		{syncproto.OK, syncproto.Retired, lease.Applied{Abandoned: true, Forked: true}, "what it did not report is dropped"},
	} {
		m, log := logged()
		m.logStanding(c.before, c.after, c.applied)
		require.Equal(t, c.want != "", log.Len() > 0, "%+v", c)
		require.Contains(t, log.String(), c.want)
	}
}

func TestWhatIsMissingInAJournalIsLogged(t *testing.T) {
	m, log := logged()
	m.logRecovered()
	require.Empty(t, log.String())
	m.recovered = journal.Replayed{Torn: 7, Unfinished: []string{"cut"}, Damaged: []string{"rotten", "worse"}, Lost: true}
	m.logRecovered()
	require.Equal(t, 4, strings.Count(log.String(), "\n"))
	require.Contains(t, log.String(), "bytes=7")
	require.Contains(t, log.String(), "charges_may_be_lost=true")
	require.Equal(t, -1, m.Corrupt(), "the journal is not open")
}

func TestAPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		wait(t.Context(), time.Second)
		require.Equal(t, time.Second, time.Since(begun))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		wait(ended, time.Hour)
		require.Equal(t, time.Second, time.Since(begun))
	})
}

// TestTheNextMessageIsSentByWhatIsLeftToSay.
func TestTheNextMessageIsSentByWhatIsLeftToSay(t *testing.T) {
	m, _ := logged()
	require.Equal(t, greetPause, m.nextPause(), "a session has to be opened")
	m.state.Boot(1)
	m.state.Hello(1)
	m.state.Apply(1, &syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: 1, Live: 1}, false)
	require.Equal(t, syncPause, m.nextPause())
	require.False(t, m.pending())
	require.False(t, m.unreported())
	m.state.Charge(1, &charge.Request{ID: "1", Account: 1, Key: 1, PerMinute: 1, Endpoint: charge.Companies, Outcome: charge.Failed}, false)
	require.NotNil(t, m.state.Sync(1).Batch)
	require.Zero(t, m.nextPause(), "the writer lacks a batch")
}

// TestANewEpochIsNotHeldUpForThoseOfLongAgo: an edge waits for one only while others follow soon.
func TestANewEpochIsNotHeldUpForThoseOfLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := logged()
		require.Equal(t, greetPause, m.renewal())
		require.Equal(t, leastRenewal, m.renewal())
		time.Sleep(renewalSpan)
		require.Equal(t, 2*leastRenewal, m.renewal())
		time.Sleep(renewalSpan + time.Nanosecond)
		require.Equal(t, greetPause, m.renewal())
		for range 10 {
			require.LessOrEqual(t, m.renewal(), mostRenewal)
		}
	})
}

// away is a writer that does not answer.
type away struct{}

func (away) Sync(ctx context.Context, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestNothingIsAskedForAtTheEnd: an edge that never reached the writer has nothing to return, although it
// counted a request that was free.
func TestNothingIsAskedForAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := Open(Config{State: t.TempDir(), Writer: away{}})
		require.NoError(t, err)
		defer m.Close()
		r := charge.Request{ID: "1", Account: 1, Key: 1, PerMinute: 1, Endpoint: charge.Companies, Outcome: charge.Failed}
		require.Empty(t, m.Charge(t.Context(), r).Code)
		begun := time.Now()
		m.reportRest(t.Context())
		require.Zero(t, time.Since(begun))
	})
}

// TestARequestThatStillWaitsAsksAgain: the leases that changed were others, and the next message may be a
// second off.
func TestARequestThatStillWaitsAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := Open(Config{State: t.TempDir(), Writer: away{}})
		require.NoError(t, err)
		defer m.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan charge.Verdict)
		go func() {
			ended <- m.Charge(ctx, charge.Request{ID: "1", Account: 1, Key: 1, PerMinute: 1, Endpoint: charge.Companies, Outcome: charge.Found})
		}()
		for range 3 {
			synctest.Wait()
			require.Len(t, m.syncNow, 1)
			<-m.syncNow
			m.mu.Lock()
			m.announce()
			m.mu.Unlock()
		}
		cancel()
		require.Equal(t, charge.MeteringUnavailable, (<-ended).Code)
	})
}

// TestTheArchiveIsCheckedEachDay: an edge runs for months.
func TestTheArchiveIsCheckedEachDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, err := journal.OpenDir(t.TempDir())
		require.NoError(t, err)
		files := &unlisted{Dir: dir}
		var log testkit.Log
		m, err := Open(Config{Files: files, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		defer m.Close()
		files.err = errCut
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { m.archiveLoop(ctx) })
		for days := 1; days <= 3; days++ {
			synctest.Wait()
			require.Equal(t, days, strings.Count(log.String(), "can't be checked"), log.String())
			time.Sleep(24 * time.Hour)
		}
		cancel()
		running.Wait()
	})
}

// roundTrips is a transport of one answer.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAnAnswerThatIsNoReplyIsAnError with what the writer said, and no more of it than a line.
func TestAnAnswerThatIsNoReplyIsAnError(t *testing.T) {
	var asked *http.Request
	closed := false
	answer := func(status int, body io.Reader) ([]byte, error) {
		closed = false
		client := &http.Client{Transport: roundTrips(func(r *http.Request) (*http.Response, error) {
			asked = r
			return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: noted{body, &closed}}, nil
		})}
		return OverHTTP("http://writer/", "token", client).Sync(t.Context(), []byte("message"))
	}
	reply, err := answer(200, strings.NewReader("reply"))
	require.NoError(t, err)
	require.Equal(t, "reply", string(reply))
	require.Equal(t, "http://writer/v1/sync", asked.URL.String())
	require.Equal(t, "Bearer token", asked.Header.Get("Authorization"))
	require.True(t, closed, "its connection can be used again")
	reply, err = answer(200, strings.NewReader(strings.Repeat("x", syncproto.MaxMessage)))
	require.NoError(t, err)
	require.Equal(t, syncproto.MaxMessage, len(reply), "the longest reply")
	_, err = answer(503, strings.NewReader(strings.Repeat("x", 2*maxRefusal)))
	require.ErrorContains(t, err, "Service Unavailable")
	require.Less(t, len(err.Error()), 2*maxRefusal)
	require.True(t, closed)
	_, err = answer(200, io.MultiReader(strings.NewReader("half"), failing{}))
	require.ErrorIs(t, err, errCut)
	_, err = OverHTTP("http://writer", "token", &http.Client{Transport: roundTrips(func(*http.Request) (*http.Response, error) { return nil, errCut })}).Sync(t.Context(), nil)
	require.ErrorIs(t, err, errCut)
	_, err = OverHTTP(":", "token", nil).Sync(t.Context(), nil)
	require.Error(t, err)
}

var errCut = errors.New("cut")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errCut }

// noted notes that a body was closed.
type noted struct {
	io.Reader
	closed *bool
}

func (n noted) Close() error {
	*n.closed = true
	return nil
}

// TestAStateDirectoryThatCannotBeReadIsGivenBack: the next attempt would else find it in use, by this
// very process.
func TestAStateDirectoryThatCannotBeReadIsGivenBack(t *testing.T) {
	state := t.TempDir()
	dir, err := journal.OpenDir(state)
	require.NoError(t, err)
	m, _ := logged()
	j := journal.New(owner{m})
	_, err = j.Open(dir, nil, nil, func(*journal.Replayed) {})
	require.NoError(t, err)
	j.Append([]byte{0xff}, false) // no record
	require.NoError(t, j.Commit())
	require.NoError(t, j.Close())
	for range 2 {
		_, err = Open(Config{State: state})
		require.ErrorContains(t, err, "replay")
		require.NotErrorIs(t, err, journal.ErrInUse)
	}
}

// TestALongFileIsToldOf every few seconds, with how far it is read.
func TestALongFileIsToldOf(t *testing.T) {
	m, log := logged()
	c := m.config
	now := time.Unix(1000, 0)
	c.State, c.Now = t.TempDir(), func() time.Time { return now }
	require.NoError(t, os.WriteFile(filepath.Join(c.State, "any"), make([]byte, 1000), 0o600))
	dir, err := c.openDir()
	require.NoError(t, err)
	defer dir.Close()
	file, err := dir.Open("any")
	require.NoError(t, err)
	defer file.Close()
	for n := 1; n <= 9; n++ {
		now = now.Add(tellPause / 2)
		_, err = io.ReadFull(file, make([]byte, 100))
		require.NoError(t, err)
	}
	require.Equal(t, 4, strings.Count(log.String(), "\n"), log.String())
	for n := range 4 {
		require.Contains(t, log.String(), fmt.Sprintf("file=any read_bytes=%d of_bytes=1000\n", 200*(n+1)))
	}
}

// unlisted is a state directory that can't be listed any more.
type unlisted struct {
	journal.Dir
	err error
}

func (d *unlisted) List() ([]string, error) {
	if d.err != nil {
		return []string{"journal-1.log.corrupt"}, d.err
	}
	return d.Dir.List()
}

// TestDamageThatCannotBeCountedIsNotNone.
func TestDamageThatCannotBeCountedIsNotNone(t *testing.T) {
	dir, err := journal.OpenDir(t.TempDir())
	require.NoError(t, err)
	files := &unlisted{Dir: dir}
	m, err := Open(Config{Files: files})
	require.NoError(t, err)
	defer m.Close()
	require.Zero(t, m.Corrupt())
	files.err = errCut
	require.Equal(t, -1, m.Corrupt())
}

// TestAChangeOfStandingIsLogged, once, and the edge is not ready from then on.
func TestAChangeOfStandingIsLogged(t *testing.T) {
	for status, c := range map[syncproto.Status]struct {
		line  string
		ready error
	}{
		syncproto.Retired:    {"this node is retired: live keys are answered 503", ErrRetired},
		syncproto.Superseded: {"a newer epoch was given to this node", ErrSuperseded},
	} {
		m, log := logged()
		m.state.Boot(1)
		m.state.Hello(1)
		require.NoError(t, m.apply(1, &syncproto.Reply{Status: syncproto.Fresh, Session: 1, Epoch: 1, Generation: 1, Live: 1}, false))
		require.Empty(t, log.String())
		for range 3 {
			require.NoError(t, m.apply(2, &syncproto.Reply{Status: status, Session: 1, Epoch: 1, Generation: 1, Live: 1}, true))
		}
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), c.line)
		require.ErrorIs(t, m.Ready(), c.ready)
	}
}

// TestAVoidThatComesTooLateIsAnError: its charge may stand.
func TestAVoidThatComesTooLateIsAnError(t *testing.T) {
	m, err := Open(Config{State: t.TempDir()})
	require.NoError(t, err)
	defer m.Close()
	m.state.Forget(m.now()) // as after damage
	require.ErrorIs(t, m.Void(t.Context(), "01HZZZZZZZZZZZZZZZZZZZZZZZ"), lease.ErrForgotten)
}
