package meter_test

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/meter"
)

// hanging is a state directory whose next write of the journal hangs, and then fails.
type hanging struct {
	journal.Dir
	armed   *atomic.Bool
	entered chan struct{}
	fail    chan struct{}
}

func newHanging(t *testing.T, state string) hanging {
	dir, err := journal.OpenDir(state)
	require.NoError(t, err)
	return hanging{dir, new(atomic.Bool), make(chan struct{}), make(chan struct{})}
}

func (d hanging) Append(name string) (journal.File, error) {
	f, err := d.Dir.Append(name)
	if err == nil && strings.HasPrefix(name, "journal-") {
		return hangingFile{f, d}, nil
	}
	return f, err
}

type hangingFile struct {
	journal.File
	dir hanging
}

func (f hangingFile) Write(p []byte) (int, error) {
	if f.dir.armed.CompareAndSwap(true, false) {
		close(f.dir.entered)
		<-f.dir.fail
		return 0, errFull
	}
	return f.File.Write(p)
}

// TestWhatIsSaidOfAChargeWaitsForItsWrite has the write of a charge hang and fail, while the
// charge is taken back, or a batch is made. Then the process ends at once, and another goes
// on: it must not find the void, or the batch, of a charge that never was.
func TestWhatIsSaidOfAChargeWaitsForItsWrite(t *testing.T) {
	const credits = 10
	for name, meanwhile := range map[string]func(t *testing.T, e *edge, id string){
		"a void":  func(t *testing.T, e *edge, id string) { require.NoError(t, e.Void(t.Context(), id)) },
		"a batch": func(t *testing.T, e *edge, _ string) { _ = e.Exchange(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			c := startCentre(t, nil)
			node, err := c.client.AddNode(t.Context(), "one")
			require.NoError(t, err)
			c.cutless("one")
			e := &edge{name: "one", token: node.Token, state: t.TempDir()}
			disk := newHanging(t, e.state)
			c.files = disk
			c.run(e)
			defer func() { e.stop() }()
			account := c.account("scale", credits)
			require.Equal(t, "", e.found(account))
			eventually(t, func() bool { return c.read(account).Spent == 1 }, "the charge is reported")
			c.cut["one"].Store(true)

			disk.armed.Store(true)
			r := request(account, charge.Found)
			code := make(chan string)
			go func() { code <- e.Charge(t.Context(), r).Code }()
			<-disk.entered
			done := make(chan struct{})
			go func() { defer close(done); meanwhile(t, e, r.ID) }()
			time.Sleep(100 * time.Millisecond) // so that it comes to where it waits
			close(disk.fail)
			require.Equal(t, charge.MeteringUnavailable, <-code)
			<-done

			require.NoError(t, e.Flush())
			state := t.TempDir() // as a kill leaves it
			require.NoError(t, os.CopyFS(state, os.DirFS(e.state)))
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
