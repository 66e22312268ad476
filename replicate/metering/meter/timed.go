package meter

import (
	"time"

	"regedge/replicate/metering/journal"
)

// timed is a directory that tells how long the syncs of its files take.
type timed struct {
	journal.Dir
	now    func() time.Time
	synced func(time.Duration)
}

func (d timed) Append(name string) (journal.File, error) {
	file, err := d.Dir.Append(name)
	if err != nil {
		return nil, err
	}
	return timedFile{file, d}, nil
}

type timedFile struct {
	journal.File
	dir timed
}

func (f timedFile) Sync() error {
	began := f.dir.now()
	err := f.File.Sync()
	f.dir.synced(f.dir.now().Sub(began))
	return err
}
