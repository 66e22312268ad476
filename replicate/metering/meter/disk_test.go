package meter_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/meter"
)

// fillingDir is a state directory on a disk that can fill up.
type fillingDir struct {
	journal.Dir
	full   *atomic.Bool
	probed chan time.Time // when the disk was tried; may be nil
}

func (d fillingDir) Append(name string) (journal.File, error) {
	if d.probed != nil && name == "probe.tmp" {
		d.probed <- time.Now()
	}
	f, err := d.Dir.Append(name)
	return fillingFile{f, d.full}, err
}

type fillingFile struct {
	journal.File
	full *atomic.Bool
}

var errFull = errors.New("no space left on device")

func (f fillingFile) Write(p []byte) (int, error) {
	if f.full.Load() {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, errFull
	}
	return f.File.Write(p)
}

func TestFullDiskChargesNothing(t *testing.T) {
	c := startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "full")
	require.NoError(t, err)
	c.connect("full")
	dir, err := journal.OpenDir(t.TempDir())
	require.NoError(t, err)
	disk := fillingDir{Dir: dir, full: &atomic.Bool{}, probed: make(chan time.Time, 100)}
	e := &edge{name: "full", token: node.Token}
	c.files = disk
	c.run(e)
	defer func() { e.stop() }()
	account := c.account("scale", 100)
	require.Equal(t, "", e.found(account))

	began := time.Now()
	disk.full.Store(true)
	refused := request(account, charge.Found)
	require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), refused).Code)
	require.ErrorIs(t, e.Ready(), errFull)
	require.Error(t, e.Void(t.Context(), "some-id"))
	<-disk.probed // perhaps late: the next one follows the time when it was due
	require.GreaterOrEqual(t, (<-disk.probed).Sub(began), time.Second, "a full disk is not tried all the time")

	disk.full.Store(false)
	eventually(t, func() bool { return e.Ready() == nil }, "ready again, though nobody asks an edge that is not")
	require.Equal(t, "", e.Charge(t.Context(), refused).Code, "the id was not charged before")
	eventually(t, func() bool { return c.read(account).Spent == 2 }, "two charges count")
}

// TestADiskThatWasFullForgetsNoRequest: a segment that begins each time would leave none with the ids.
func TestADiskThatWasFullForgetsNoRequest(t *testing.T) {
	c := startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "full")
	require.NoError(t, err)
	c.connect("full")
	state := t.TempDir()
	open := func() fillingDir {
		dir, err := journal.OpenDir(state)
		require.NoError(t, err)
		return fillingDir{Dir: dir, full: &atomic.Bool{}}
	}
	disk := open()
	e := &edge{name: "full", token: node.Token}
	c.files = disk
	c.run(e)
	account := c.account("scale", 100)
	kept := request(account, charge.Found)
	require.Equal(t, "", e.Charge(t.Context(), kept).Code)
	for range 3 {
		disk.full.Store(true)
		require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), request(account, charge.Found)).Code)
		disk.full.Store(false)
		eventually(t, func() bool { return e.Ready() == nil }, "ready again")
	}
	require.NoFileExists(t, filepath.Join(state, "probe.tmp"))
	e.stop()
	c.files = open()
	c.run(e)
	defer func() { e.stop() }()
	eventually(t, func() bool { return e.Ready() == nil }, "ready after the restart")
	require.Equal(t, "", e.Charge(t.Context(), kept).Code)
	eventually(t, func() bool { return c.read(account).Spent == 1 }, "the charge from before counts")
	require.Equal(t, "", e.Charge(t.Context(), request(account, charge.Found)).Code)
	eventually(t, func() bool { return c.read(account).Spent == 2 }, "and is not charged again")
}

// hangingDir is a state directory where the write of one charge to the journal hangs, and then
// fails or is done.
type hangingDir struct {
	journal.Dir
	id      *atomic.Pointer[string] // the charge's
	entered chan bool               // gets whether the charge's request writes itself
	fail    chan struct{}
	goOn    chan struct{}
	lists   *atomic.Bool            // the next list hangs until goOn
	refused *atomic.Pointer[string] // the charge whose write fails at once
}

// List implements journal.Dir.
func (d hangingDir) List() ([]string, error) {
	if d.lists.CompareAndSwap(true, false) {
		<-d.goOn
	}
	return d.Dir.List()
}

func newHangingDir(t *testing.T, state string) hangingDir {
	dir, err := journal.OpenDir(state)
	require.NoError(t, err)
	return hangingDir{dir, new(atomic.Pointer[string]), make(chan bool), make(chan struct{}), make(chan struct{}), new(atomic.Bool), new(atomic.Pointer[string])}
}

func (d hangingDir) Append(name string) (journal.File, error) {
	f, err := d.Dir.Append(name)
	if err == nil && strings.HasPrefix(name, "journal-") {
		return hangingFile{f, d}, nil
	}
	return f, err
}

type hangingFile struct {
	journal.File
	dir hangingDir
}

func (f hangingFile) Write(p []byte) (int, error) {
	if id := f.dir.id.Load(); id != nil && bytes.Contains(p, []byte(*id)) && f.dir.id.CompareAndSwap(id, nil) {
		f.dir.entered <- bytes.Contains(debug.Stack(), []byte(".TryWrite("))
		select {
		case <-f.dir.fail:
			return 0, errFull
		case <-f.dir.goOn:
		}
	}
	if id := f.dir.refused.Load(); id != nil && bytes.Contains(p, []byte(*id)) && f.dir.refused.CompareAndSwap(id, nil) {
		return 0, errFull
	}
	return f.File.Write(p)
}

// startOnHangingDisk starts an edge whose disk hangs when it is told to, and has it charge an account once.
func startOnHangingDisk(t *testing.T) (c *centre, e *edge, disk hangingDir, account int64) {
	c = startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	c.connect("one")
	e = &edge{name: "one", token: node.Token, state: t.TempDir()}
	disk = newHangingDir(t, e.state)
	c.files = disk
	c.run(e)
	account = c.account("scale", 10)
	require.Equal(t, "", e.found(account))
	return c, e, disk, account
}

// chargeOnHangingDisk also begins a charge whose write hangs, and returns where its code will be. The request
// writes itself: where an exchange or a sync of the journal was faster, all is started anew.
func chargeOnHangingDisk(t *testing.T) (c *centre, e *edge, disk hangingDir, account int64, code <-chan string) {
	for range 20 {
		c, e, disk, account = startOnHangingDisk(t)
		r, answer := request(account, charge.Found), make(chan string, 1)
		disk.id.Store(&r.ID)
		go func() { answer <- e.Charge(t.Context(), r).Code }()
		if byRequest := <-disk.entered; byRequest {
			return c, e, disk, account, answer
		}
		close(disk.goOn)
		<-answer
		e.stop()
	}
	require.FailNow(t, "no request writes its charge itself")
	return
}

// repeats are how a client asks again for what it may have been charged for.
var repeats = map[string]func(r charge.Request) charge.Request{
	"of the request": func(r charge.Request) charge.Request { return r },
	"of its Idempotency-Key": func(r charge.Request) charge.Request {
		again := request(r.Account, r.Outcome)
		again.IdempotencyHash, again.TargetHash = r.IdempotencyHash, r.TargetHash
		return again
	},
}

// keyedRequest is a request with an Idempotency-Key.
func keyedRequest(account int64) charge.Request {
	r := request(account, charge.Found)
	r.IdempotencyHash, r.TargetHash = strings.Repeat("ab", charge.HashLength/2), strings.Repeat("cd", charge.HashLength/2)
	return r
}

// TestARepeatIsNotAnsweredFromAFailedWrite has the write of a charge hang and fail while the same
// request comes again. The repeat is answered only by a charge of its own.
func TestARepeatIsNotAnsweredFromAFailedWrite(t *testing.T) {
	for name, again := range repeats {
		t.Run(name, func(t *testing.T) {
			c, e, disk, account := startOnHangingDisk(t)
			defer func() { e.stop() }()
			c.cutAfterReport(e, account, 1)

			r := keyedRequest(account)
			disk.id.Store(&r.ID)
			first, repeat := make(chan string, 1), make(chan string, 1)
			go func() { first <- e.Charge(t.Context(), r).Code }()
			<-disk.entered
			go func() { repeat <- e.Charge(t.Context(), again(r)).Code }()
			select {
			case code := <-repeat:
				t.Errorf("answered %q while its record was being written", code)
			case <-time.After(100 * time.Millisecond): // it waits for the write
			}
			close(disk.fail)
			require.Equal(t, charge.MeteringUnavailable, <-first)
			if !t.Failed() {
				require.Equal(t, "", <-repeat)
			}
			c.cut["one"].Store(false)
			eventually(t, func() bool { return c.read(account).Spent == 2 }, "the repeat is charged")
		})
	}
}

// TestVoidsAndBatchesWaitForTheWrite has the write of a charge hang and fail while the charge
// is voided, or a batch is sealed. Then the process is killed and another continues: it must
// not find the void, or the batch, of a charge that was never made.
func TestVoidsAndBatchesWaitForTheWrite(t *testing.T) {
	const credits = 10
	for name, meanwhile := range map[string]func(t *testing.T, e *edge, id string){
		"a void":  func(t *testing.T, e *edge, id string) { require.NoError(t, e.Void(t.Context(), id)) },
		"a batch": func(t *testing.T, e *edge, _ string) { _ = e.Exchange(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			c := startCentre(t, nil)
			node, err := c.client.AddNode(t.Context(), "one")
			require.NoError(t, err)
			c.connect("one")
			e := &edge{name: "one", token: node.Token, state: t.TempDir()}
			disk := newHangingDir(t, e.state)
			c.files = disk
			c.run(e)
			defer func() { e.stop() }()
			account := c.account("scale", credits)
			require.Equal(t, "", e.found(account))
			eventually(t, func() bool { return c.read(account).Spent == 1 }, "the charge is reported")
			c.cut["one"].Store(true)

			r := request(account, charge.Found)
			disk.id.Store(&r.ID)
			code := make(chan string)
			go func() { code <- e.Charge(t.Context(), r).Code }()
			<-disk.entered
			done := make(chan struct{})
			go func() { defer close(done); meanwhile(t, e, r.ID) }()
			time.Sleep(100 * time.Millisecond) // so that it reaches the point where it waits
			close(disk.fail)
			require.Equal(t, charge.MeteringUnavailable, <-code)
			<-done

			eventually(t, func() bool { return e.Ready() == nil }, "the disk is tried no more")
			require.NoError(t, e.Flush())
			var state string // as a kill leaves it
			eventually(t, func() bool {
				state = t.TempDir()
				return os.CopyFS(state, os.DirFS(e.state)) == nil
			}, "the last look at the disk, in a file that is removed, is over")
			e.stop()
			c.files, e.state = nil, state
			found, err := meter.Open(meter.Config{State: state})
			require.NoError(t, err)
			require.NoError(t, found.Check())
			require.NoError(t, found.Close())

			c.cut["one"].Store(false)
			c.run(e)
			served := 0
			for e.found(account) == "" {
				served++
			}
			require.Equal(t, credits-1, served)
			eventually(t, func() bool { return c.read(account).Spent == credits }, "all is reported, once")
		})
	}
}

// TestADiskThatHangsHoldsUpOneCharge has the write of a charge hang. Those behind it are answered 503 and
// are not charged, also if the disk takes them in the end; others are refused at once.
func TestADiskThatHangsHoldsUpOneCharge(t *testing.T) {
	c, e, disk, account, first := chargeOnHangingDisk(t)
	defer func() { e.stop() }()
	require.Equal(t, charge.MeteringUnavailable, e.found(account))
	require.ErrorIs(t, e.Ready(), meter.ErrDiskHangs)
	v := e.Charge(t.Context(), request(account, charge.Found))
	require.Equal(t, charge.MeteringUnavailable, v.Code)
	require.Positive(t, v.RateLimit)
	require.Equal(t, []int64{charge.Unsent, charge.Unsent, charge.Unsent, 1}, []int64{v.RateRemaining, v.RateReset, v.CreditsRemaining, v.RetryAfter})
	sandbox := charge.Request{ID: "request-sandbox", Sandbox: true, Client: "192.0.2.1", PerMinute: 60, Endpoint: charge.Companies, Outcome: charge.Found}
	require.Equal(t, "", e.Charge(t.Context(), sandbox).Code)

	close(disk.goOn)
	require.Equal(t, "", <-first)
	eventually(t, func() bool { return e.Ready() == nil && e.found(account) == "" }, "charges again")
	eventually(t, func() bool { return c.read(account).Spent == 3 }, "those that were answered, and no other")
	require.NoError(t, e.Exchange(t.Context()))
	require.EqualValues(t, 3, c.read(account).Spent)
}

// TestAChargeBehindAWriteIsNotAnsweredIfItsOwnFails: nothing of it is in the journal.
func TestAChargeBehindAWriteIsNotAnsweredIfItsOwnFails(t *testing.T) {
	_, e, disk, account, first := chargeOnHangingDisk(t)
	defer func() { e.stop() }()
	r, second := request(account, charge.Found), make(chan string, 1)
	disk.refused.Store(&r.ID)
	go func() { second <- e.Charge(t.Context(), r).Code }()
	select {
	case code := <-second:
		t.Errorf("answered %q while another charge was being written", code)
	case <-time.After(100 * time.Millisecond): // it waits for that write
	}
	close(disk.goOn)
	require.Equal(t, "", <-first)
	require.Equal(t, charge.MeteringUnavailable, <-second)
}

// TestAChargeThatWasGivenUpIsNeverAnswered: as long as it stands and is going to be voided nothing is charged, and then no
// repeat of it.
func TestAChargeThatWasGivenUpIsNeverAnswered(t *testing.T) {
	c, e, disk, account, first := chargeOnHangingDisk(t)
	defer func() { e.stop() }()
	r := request(account, charge.Found)
	require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), r).Code, "given up")
	var repeats sync.WaitGroup
	for range 4 {
		repeats.Go(func() {
			for until := time.Now().Add(time.Minute); time.Now().Before(until); {
				if !assert.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), r).Code) || e.Ready() == nil {
					return
				}
			}
		})
	}
	close(disk.goOn)
	require.Equal(t, "", <-first)
	repeats.Wait()
	require.NoError(t, e.Ready())
	require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), r).Code)
	for range 2 { // a batch that was sealed before the void has it
		require.NoError(t, e.Exchange(t.Context()))
	}
	require.EqualValues(t, 2, c.read(account).Spent, "the one before, and the one that hung")
}

// TestARepeatIsNotAnsweredByAChargeThatIsTakenBack: repeats that came before a charge was given up wait with it.
func TestARepeatIsNotAnsweredByAChargeThatIsTakenBack(t *testing.T) {
	for name, repeat := range repeats {
		t.Run(name, func(t *testing.T) {
			c, e, disk, account, first := chargeOnHangingDisk(t)
			defer func() { e.stop() }()
			r, given := keyedRequest(account), make(chan string, 1)
			go func() { given <- e.Charge(t.Context(), r).Code }()
			var repeats sync.WaitGroup
			var mu sync.Mutex
			answers := map[string]int{}
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for code := ""; code == ""; {
				select {
				case code = <-given:
					require.Equal(t, charge.MeteringUnavailable, code)
				case <-tick.C:
					again := repeat(r)
					repeats.Go(func() {
						code := e.Charge(t.Context(), again).Code
						mu.Lock()
						defer mu.Unlock()
						answers[code]++
					})
				}
			}
			close(disk.goOn)
			require.Equal(t, "", <-first)
			repeats.Wait()
			eventually(t, func() bool { return e.Ready() == nil }, "the charge was taken back")
			want := int64(2) // the one before, and the one that hung
			if answers[""] > 0 {
				want++
			}
			for range 2 { // a batch that was sealed before the void has it
				require.NoError(t, e.Exchange(t.Context()))
			}
			require.Equal(t, want, c.read(account).Spent, "%v", answers)
		})
	}
}

// TestAChargeThatWasGivenUpAndNeverWrittenMayComeAgain: there is nothing of it to void, and its id is free.
func TestAChargeThatWasGivenUpAndNeverWrittenMayComeAgain(t *testing.T) {
	c, e, disk, account, first := chargeOnHangingDisk(t)
	defer func() { e.stop() }()
	r := request(account, charge.Found)
	disk.refused.Store(&r.ID)
	require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), r).Code, "given up")
	close(disk.fail)
	require.Equal(t, charge.MeteringUnavailable, <-first)
	eventually(t, func() bool { return e.Ready() == nil }, "the disk takes writes again")
	require.Nil(t, disk.refused.Load(), "the write was tried")
	eventually(t, func() bool { return e.Charge(t.Context(), r).Code == "" }, "the same request is charged")
	eventually(t, func() bool { return c.read(account).Spent == 2 }, "the one before, and the one that came again")
}

// TestADiskThatHangsIsNoticedWithoutClients: the load balancer has to know before clients do.
func TestADiskThatHangsIsNoticedWithoutClients(t *testing.T) {
	_, e, disk, account, code := chargeOnHangingDisk(t)
	defer func() { e.stop() }()
	require.NoError(t, e.Ready())
	eventually(t, func() bool { return errors.Is(e.Ready(), meter.ErrDiskHangs) }, "not ready")
	require.Equal(t, charge.MeteringUnavailable, e.found(account), "at once, and not counted")
	close(disk.fail)
	require.Equal(t, charge.MeteringUnavailable, <-code)
	eventually(t, func() bool { return e.Ready() == nil && e.found(account) == "" }, "charges again")
}

// TestMetricsDoNotWaitForTheDisk: a scrape, and the report to the writer, must say
// how an edge is whose disk hangs.
func TestMetricsDoNotWaitForTheDisk(t *testing.T) {
	_, e, disk, _, code := chargeOnHangingDisk(t)
	defer func() { e.stop() }()
	require.Zero(t, e.Corrupt())
	disk.lists.Store(true)
	told := make(chan struct{})
	go func() {
		defer close(told)
		e.Stats()
		e.Headroom()
		assert.Equal(t, -1, e.Corrupt(), "a list that hangs")
		assert.Equal(t, -1, e.Corrupt(), "and still hangs")
	}()
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Error("the counts wait for a write that hangs")
	}
	close(disk.fail)
	close(disk.goOn)
	<-code
	<-told
	eventually(t, func() bool { return e.Corrupt() == 0 }, "listed again")
}

// hangingSegments is a state directory where the first sync of each new segment hangs.
type hangingSegments struct {
	journal.Dir
	armed   *atomic.Bool
	entered chan struct{}
	goOn    chan struct{}
}

func (d hangingSegments) Append(name string) (journal.File, error) {
	f, err := d.Dir.Append(name)
	if err == nil && strings.HasPrefix(name, "journal-") && d.armed.Load() {
		return &hangingSegment{File: f, dir: d}, nil
	}
	return f, err
}

type hangingSegment struct {
	journal.File
	dir hangingSegments
}

func (f *hangingSegment) Sync() error {
	if f.dir.armed.CompareAndSwap(true, false) {
		close(f.dir.entered)
		<-f.dir.goOn
	}
	return f.File.Sync()
}

// TestADiskThatHangsWhereASegmentBeginsHoldsUpNoOthers: the sandbox, screened requests and metrics go on.
func TestADiskThatHangsWhereASegmentBeginsHoldsUpNoOthers(t *testing.T) {
	c := startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	c.connect("one")
	e := &edge{name: "one", token: node.Token}
	dir, err := journal.OpenDir(t.TempDir())
	require.NoError(t, err)
	disk := hangingSegments{dir, new(atomic.Bool), make(chan struct{}), make(chan struct{})}
	c.files, c.segment = disk, 4<<10
	c.run(e)
	defer func() { e.stop() }()
	account := c.account("scale", 1000)
	require.Equal(t, "", e.found(account))

	disk.armed.Store(true)
	served := make(chan int64)
	go func() {
		answered := int64(1)
		for {
			select {
			case <-disk.entered:
				served <- answered
				return
			default:
			}
			if answered == 500 { // more than a segment holds; the account's credits must last
				time.Sleep(time.Millisecond)
			} else if e.found(account) == "" {
				answered++
			}
		}
	}()
	<-disk.entered
	told := make(chan struct{})
	go func() {
		defer close(told)
		sandbox := charge.Request{ID: "request-sandbox", Sandbox: true, Client: "192.0.2.1", PerMinute: 60, Endpoint: charge.Companies, Outcome: charge.Found}
		assert.Equal(t, "", e.Charge(t.Context(), sandbox).Code)
		e.Exceeded(request(account, charge.Found))
		e.Stats()
		e.Headroom()
	}()
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Error("they wait for the disk")
	}
	eventually(t, func() bool { return errors.Is(e.Ready(), meter.ErrDiskHangs) }, "not ready")
	close(disk.goOn)
	<-told
	answered := <-served
	eventually(t, func() bool { return e.Ready() == nil && e.found(account) == "" }, "charges again")
	eventually(t, func() bool { return c.read(account).Spent == answered+1 }, "those that were answered, and no other")
}
