package disk

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// patience is how long a scrape waits for a disk.
const patience = time.Second

// Bounded is a collector that reads a disk. A scrape leaves out what it has not read within a second:
// when a disk hangs, the other metrics must be able to say so.
type Bounded struct {
	prometheus.Collector
	turn chan struct{} // taken while the disk is read
}

// NewBounded makes a Bounded of a collector.
func NewBounded(of prometheus.Collector) Bounded { return Bounded{of, make(chan struct{}, 1)} }

// Collect implements prometheus.Collector.
func (b Bounded) Collect(to chan<- prometheus.Metric) {
	limit := time.NewTimer(patience)
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

func (b Bounded) collect() (list []prometheus.Metric) {
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
