package writer

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// diskRead is a collector that reads a disk. What it has not read within probeLimit is left out of a scrape:
// when a disk hangs, the other metrics must say so.
type diskRead struct {
	prometheus.Collector
	turn chan struct{} // taken while the disk is read
}

func newDiskRead(of prometheus.Collector) diskRead { return diskRead{of, make(chan struct{}, 1)} }

// Collect implements prometheus.Collector.
func (b diskRead) Collect(to chan<- prometheus.Metric) {
	limit := time.NewTimer(probeLimit)
	defer limit.Stop()
	select {
	case b.turn <- struct{}{}:
	case <-limit.C:
		return
	}
	read := make(chan []prometheus.Metric, 1)
	go func() {
		defer func() { <-b.turn }()
		read <- b.collect()
	}()
	select {
	case list := <-read:
		for _, m := range list {
			to <- m
		}
	case <-limit.C:
	}
}

func (b diskRead) collect() (list []prometheus.Metric) {
	each := make(chan prometheus.Metric)
	go func() {
		defer close(each)
		b.Collector.Collect(each)
	}()
	for m := range each {
		list = append(list, m)
	}
	return list
}
