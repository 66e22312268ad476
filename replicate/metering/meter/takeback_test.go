package meter_test

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/replicate/metering/journal"
)

// relapsingDir is a disk that takes the first write with an id, and refuses the second.
type relapsingDir struct {
	hangingDir
	relapse *atomic.Pointer[string]
	seen    *atomic.Int64
}

func (d relapsingDir) Append(name string) (journal.File, error) {
	f, err := d.hangingDir.Append(name)
	if err == nil && strings.HasPrefix(name, "journal-") {
		return relapsingFile{f, d}, nil
	}
	return f, err
}

type relapsingFile struct {
	journal.File
	dir relapsingDir
}

func (f relapsingFile) Write(p []byte) (int, error) {
	if id := f.dir.relapse.Load(); id != nil && bytes.Contains(p, []byte(*id)) && f.dir.seen.Add(1) == 2 {
		return 0, errFull
	}
	return f.File.Write(p)
}

// TestAChargeThatWasGivenUpIsTakenBackOnceTheDiskWrites, also if the first write of its void fails.
func TestAChargeThatWasGivenUpIsTakenBackOnceTheDiskWrites(t *testing.T) {
	c := startCentre(t, nil)
	node, err := c.client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	c.connect("one")
	e := &edge{name: "one", token: node.Token, state: t.TempDir()}
	disk := relapsingDir{newHangingDir(t, e.state), new(atomic.Pointer[string]), new(atomic.Int64)}
	c.files = disk
	c.run(e)
	defer func() { e.stop() }()
	account := c.account("scale", 10)
	require.Equal(t, "", e.found(account))
	first, answer := request(account, charge.Found), make(chan string, 1)
	disk.id.Store(&first.ID)
	go func() { answer <- e.Charge(t.Context(), first).Code }()
	<-disk.entered
	r := request(account, charge.Found)
	disk.relapse.Store(&r.ID)
	require.Equal(t, charge.MeteringUnavailable, e.Charge(t.Context(), r).Code, "given up")
	close(disk.goOn)
	require.Equal(t, "", <-answer)
	eventually(t, func() bool { return e.Ready() == nil && disk.seen.Load() >= 2 }, "the disk writes again")
	eventually(t, func() bool { return e.found(account) == "" }, "charges again")
	for range 3 {
		require.NoError(t, e.Exchange(t.Context()))
	}
	require.EqualValues(t, 3, c.read(account).Spent, "those that were answered, and no other")
}
