package meter_test

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/journal"
)

// longArchive is a state directory whose reported batches take long to read, as gigabytes do.
type longArchive struct {
	journal.Dir
	long    *atomic.Bool
	entered chan struct{}
	goOn    chan struct{}
}

func (d longArchive) Open(name string) (io.ReadCloser, error) {
	if strings.HasPrefix(name, "batches-") && d.long.CompareAndSwap(true, false) {
		close(d.entered)
		<-d.goOn
	}
	return d.Dir.Open(name)
}

// TestChargesDoNotWaitForTheArchive: after a standby took over, the edge looks for the batches of the last second among
// those of seven days.
func TestChargesDoNotWaitForTheArchive(t *testing.T) {
	c := startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	c.connect("one")
	dir, err := journal.OpenDir(t.TempDir())
	require.NoError(t, err)
	disk := longArchive{dir, new(atomic.Bool), make(chan struct{}), make(chan struct{})}
	c.files, c.segment = disk, 1
	e := &edge{name: "one", token: node.Token}
	c.run(e)
	defer func() { e.stop() }()
	account := c.account("scale", 100)
	require.Equal(t, "", e.found(account))
	eventually(t, func() bool { return c.read(account).Spent == 1 && e.Stats().Unsettled == 0 }, "it is reported")
	restored := c.backup()
	require.Equal(t, "", e.found(account))
	eventually(t, func() bool { return c.read(account).Spent == 2 && e.Stats().Unsettled == 0 }, "it is reported")
	require.NoError(t, e.Exchange(t.Context())) // the one before has archived the batch by now
	require.NoError(t, e.Rotate())              // which syncs the archive: until then the batch is in memory, too
	c.stop()
	c.dir = restored
	disk.long.Store(true)
	c.start(true)
	<-disk.entered
	answered := make(chan string, 1)
	go func() {
		_ = e.Rotate()
		answered <- e.found(account)
	}()
	select {
	case code := <-answered:
		require.Equal(t, "", code, "the edge holds a lease")
	case <-time.After(time.Minute):
		t.Error("a charge with a lease waits for the archive to be read")
	}
	close(disk.goOn)
}
