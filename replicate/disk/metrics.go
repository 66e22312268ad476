package disk

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	freeDesc = prometheus.NewDesc("regedge_disk_free_bytes",
		"Free on the disk of what this process keeps: an edge its state, a writer its ledger and backup, a primary or replica its database.", []string{"directory"}, nil)
	sizeDesc      = prometheus.NewDesc("regedge_disk_size_bytes", "Size of that disk.", []string{"directory"}, nil)
	freeFilesDesc = prometheus.NewDesc("regedge_disk_free_files",
		"Files that can still be made on that disk: its free inodes; left out where the file system counts none.", []string{"directory"}, nil)
	filesDesc = prometheus.NewDesc("regedge_disk_files", "Files that it can hold in all, as far as its file system counts them.", []string{"directory"}, nil)
	usedDesc  = prometheus.NewDesc("regedge_stored_bytes",
		"Size of the files that this process keeps: an edge its journal; a primary or replica the database, its write-ahead log (wal), the log that replicas follow (log), its parts (snapshots), the compressed database (base), and what is there while a full release comes (base in work, fetched, handed over).", []string{"files"}, nil)
)

// Kept is what a process keeps on one disk, by the name that a metric gives it.
type Kept struct {
	Directories map[string]string
	// Files are files, or directories with all files below them.
	Files map[string]string
}

// Metrics shows what a process keeps. Each Kept is read by itself, since one disk may
// hang.
func Metrics(list ...Kept) prometheus.Collector {
	all := make(disks, len(list))
	for i, k := range list {
		all[i] = NewBounded(k)
	}
	return all
}

// disks is the collector that Metrics returns.
type disks []Bounded

// Describe names the metrics.
func (d disks) Describe(to chan<- *prometheus.Desc) { Kept{}.Describe(to) }

// Collect reads all disks at the same time.
func (d disks) Collect(to chan<- prometheus.Metric) {
	var reading sync.WaitGroup
	for _, r := range d {
		reading.Go(func() { r.Collect(to) })
	}
	reading.Wait()
}

// Describe names the metrics.
func (k Kept) Describe(to chan<- *prometheus.Desc) {
	to <- freeDesc
	to <- sizeDesc
	to <- freeFilesDesc
	to <- filesDesc
	to <- usedDesc
}

// Collect asks the file systems. It leaves out what they do not report.
func (k Kept) Collect(to chan<- prometheus.Metric) {
	for name, dir := range k.Directories {
		s, err := Of(dir)
		if err != nil {
			continue
		}
		to <- prometheus.MustNewConstMetric(freeDesc, prometheus.GaugeValue, float64(s.Free), name)
		to <- prometheus.MustNewConstMetric(sizeDesc, prometheus.GaugeValue, float64(s.Size), name)
		if s.Files > 0 {
			to <- prometheus.MustNewConstMetric(freeFilesDesc, prometheus.GaugeValue, float64(s.FilesFree), name)
			to <- prometheus.MustNewConstMetric(filesDesc, prometheus.GaugeValue, float64(s.Files), name)
		}
	}
	for name, path := range k.Files {
		to <- prometheus.MustNewConstMetric(usedDesc, prometheus.GaugeValue, float64(used(path)), name)
	}
}
