package main

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/meter"
)

type edgeCommand struct {
	serving
	registryFlags
	accessFlags
	following
	metering
}

// Validate finds what contradicts itself.
func (c *edgeCommand) Validate() error {
	return errors.Join(c.serving.Validate(), c.following.check(c.Registry, c.Access))
}

// metering are the flags of a meter.
type metering struct {
	State  string `required:"" type:"path" placeholder:"DIR" help:"State directory of this node: its journal. One process owns it."`
	Writer string `required:"" placeholder:"URL" help:"Address of the writer."`
	secret
	JournalSync time.Duration `default:"10ms" help:"The most that a power cut may lose of the charges, in time (${default})."`
}

// open opens the meter. Its token is that of the node: regedge node add shows it.
func (f *metering) open(metrics prometheus.Registerer, config meter.Config) (*meter.Meter, error) {
	token, err := f.read()
	if err != nil {
		return nil, err
	}
	if err := checkWriterURL(f.Writer); err != nil {
		return nil, err
	}
	config.State, config.JournalSync = f.State, f.JournalSync
	config.Writer = meter.OverHTTP(f.Writer, token, nil)
	return openMeter(metrics, config)
}

// openMeter opens a meter and registers what it counts.
func openMeter(metrics prometheus.Registerer, config meter.Config) (opened *meter.Meter, err error) {
	if config.Synced, err = journalSyncs(metrics); err != nil {
		return nil, err
	}
	if opened, err = meter.Open(config); err != nil {
		return nil, explainInUse(err, config.State)
	}
	return opened, registerMeter(metrics, opened)
}

// explainInUse says what to do about a directory that another process owns.
func explainInUse(err error, dir string) error {
	if errors.Is(err, journal.ErrInUse) {
		return withHint(err, "another regedge runs on %s: stop it, or choose another directory", dir)
	}
	return err
}

// Run serves lookups until ctx is done.
func (c *edgeCommand) Run(ctx context.Context, m *Main) (err error) {
	var closers closing
	defer func() { err = errors.Join(err, closers.close()) }()
	log, logging := c.logger(m, false, &closers)

	front, err := c.serving.open(m, &closers)
	if err != nil {
		return err
	}
	l := lookups{log: log, metrics: newMetrics()}
	if l.registry, err = c.openRegistry(ctx, m, &c.registryFlags, log); err != nil {
		return err
	}
	closers.add(l.registry.Close)
	if l.access, err = c.openAccess(ctx, m, &c.accessFlags, log); err != nil {
		return err
	}
	closers.add(l.access.Close)
	counting, err := c.metering.open(l.metrics, meter.Config{Now: m.Now, Logger: log})
	if err != nil {
		return err
	}
	closers.add(counting.Close)
	l.meter = counting
	services, err := c.serve(ctx, front, l)
	if err != nil {
		return err
	}
	reports, err := c.reportClient()
	if err != nil {
		return err
	}
	if c.needsDocsURL(front.lookups.Addr()) {
		log.Warn(needDocsURL)
	}
	log.Info("serving", "address", front.lookups.Addr().String(), "engine", c.Engine)
	below := []service{logging, {"meter", counting.Run}, l.reporting(reports, nodeAddress(front.lookups.Addr()))}
	return runStack(ctx, append(below, services...)...)
}

// closing closes what was opened, in reverse.
type closing []func() error

func (c *closing) add(close func() error) { *c = append(*c, close) }

func (c *closing) close() error {
	var failed []error
	for i := len(*c) - 1; i >= 0; i-- {
		failed = append(failed, (*c)[i]())
	}
	return errors.Join(failed...)
}
