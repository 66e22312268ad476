package engine

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/handler"
	"regedge/wasm"
	"regedge/wasm/labels"
)

// Parts are the databases and services that an engine answers lookups with.
type Parts struct {
	Access, Registry Database
	Meter            Meter
	Clock            handler.Clock
	Random           handler.Random
	// DocsURL is the URL with which the type of every problem begins, without a slash at its end.
	DocsURL string
}

// The meter's URL and token inside the process. Nothing is ever sent there: the engine answers calls
// to this address itself and denies all others.
const (
	meterURL   = "http://meter.internal"
	meterToken = "in-process"
)

// Limits bound the component. Zero means the engine's default.
type Limits struct {
	// Instances is the maximum number of requests answered at once.
	Instances int
	// Fresh gives each request a new instance, as Spin does, instead of a pooled one.
	Fresh bool
}

// NewComponent starts an engine on the component that is embedded in this program.
func NewComponent(ctx context.Context, parts Parts, limits Limits) (*Engine, error) {
	e, err := New(ctx, Config{
		Component: wasm.Component,
		Databases: map[string]Database{
			labels.AccessDatabase: parts.Access, labels.RegistryDatabase: parts.Registry,
		},
		Meter: parts.Meter,
		Variables: map[string]string{
			labels.MeterURL: meterURL, labels.MeterToken: meterToken, labels.DocsURL: parts.DocsURL,
		},
		Clock: parts.Clock, Random: parts.Random,
		MaxInstances: limits.Instances, Fresh: limits.Fresh,
	})
	if err != nil {
		return nil, fmt.Errorf("start component: %w", err)
	}
	return e, nil
}

// Register registers the metrics of the engine's instances.
func (e *Engine) Register(registry prometheus.Registerer) error {
	count := func(name, help string, of func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(of()) })
	}
	for _, collector := range []prometheus.Collector{
		count("regedge_instances_created_total", "Instances of the component that were made.",
			func() int64 { return e.Stats().Created }),
		count("regedge_instances_discarded_total", "Instances thrown away after a failure.",
			func() int64 { return e.Stats().Discarded }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "regedge_instances_busy", Help: "Instances at work now.",
		}, func() float64 { return float64(e.Stats().Busy) }),
	} {
		if err := registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}
