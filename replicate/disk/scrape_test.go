package disk

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// hangingGauge is read from a disk that hangs.
type hangingGauge struct {
	prometheus.Gauge
	reads chan struct{} // each read waits for one
}

func (g hangingGauge) Collect(to chan<- prometheus.Metric) {
	<-g.reads
	g.Gauge.Collect(to)
}

// TestAScrapeDoesNotWaitForADiskThatHangs: the others must say what hangs.
func TestAScrapeDoesNotWaitForADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gauge := func(name string) prometheus.Gauge {
			return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: name})
		}
		hangs, registry := hangingGauge{gauge("of_the_disk"), make(chan struct{}, 2)}, prometheus.NewRegistry()
		registry.MustRegister(NewBounded(hangs), gauge("of_memory"))
		shown := func() (names []string) {
			families, err := registry.Gather()
			require.NoError(t, err)
			for _, f := range families {
				names = append(names, f.GetName())
			}
			return names
		}
		require.Equal(t, []string{"of_memory"}, shown())
		require.Equal(t, []string{"of_memory"}, shown(), "the first read still hangs")
		hangs.reads <- struct{}{} // of the first scrape
		synctest.Wait()
		hangs.reads <- struct{}{}
		require.Equal(t, []string{"of_memory", "of_the_disk"}, shown())
	})
}

// TestDisksThatHangCostAScrapeOneWait, however many do.
func TestDisksThatHangCostAScrapeOneWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "of_the_disk", Help: "of_the_disk"})
		hangs := hangingGauge{gauge, make(chan struct{})}
		began := time.Now()
		disks{NewBounded(hangs), NewBounded(hangs), NewBounded(hangs)}.Collect(make(chan prometheus.Metric))
		require.Equal(t, patience, time.Since(began))
		close(hangs.reads)
	})
}
