package answer

import "github.com/prometheus/client_golang/prometheus"

// Register registers the counts of the engine's instances.
func (c *Component) Register(registry prometheus.Registerer) error {
	count := func(name, help string, of func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(of()) })
	}
	for _, collector := range []prometheus.Collector{
		count("regedge_instances_created_total", "Instances of the component that were made.",
			func() int64 { return c.Stats().Created }),
		count("regedge_instances_discarded_total", "Instances thrown away after a failure.",
			func() int64 { return c.Stats().Discarded }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "regedge_instances_busy", Help: "Instances at work now.",
		}, func() float64 { return float64(c.Stats().Busy) }),
	} {
		if err := registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}
