package main

import (
	"context"
	"errors"
	"log/slog"

	"regedge/replicate/metering/meter"
)

type meterCommand struct {
	metering
	Listen         string `default:"127.0.0.1:8090" placeholder:"ADDR" help:"Address of the meter (${default})."`
	MeterToken     string `placeholder:"TOKEN" help:"What a component must show: the variable meter_token of Spin."`
	MeterTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the meter token; it wins over the token itself."`
	Metrics        string `placeholder:"ADDR" help:"Address of the Prometheus metrics; none by default."`
	exposure
}

// Validate refuses to show tokens to the network.
func (c *meterCommand) Validate() error { return c.check(c.Listen) }

// Run serves the meter's contract until ctx is done.
func (c *meterCommand) Run(ctx context.Context, m *Main) (err error) {
	log := slog.New(slog.NewJSONHandler(m.Stderr, nil))
	var closers closing
	defer func() { err = errors.Join(err, closers.close()) }()
	shown, err := fileToken(c.MeterToken, c.MeterTokenFile)
	if err != nil {
		return err
	}
	if shown == "" {
		return withHint(errors.New("a meter token is needed"), "set REGEDGE_METER_TOKEN, or give --meter-token-file")
	}
	metrics, err := m.listenForMetrics(c.Metrics, &closers)
	if err != nil {
		return err
	}
	registry := newMetrics()
	counting, err := c.open(registry, meter.Config{Now: m.Now, Logger: log})
	if err != nil {
		return err
	}
	closers.add(counting.Close)
	listener, err := c.listenTo(m, "meter", c.Listen)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String())
	services := []service{{"meter", counting.Run}}
	if metrics != nil {
		services = append(services, serveMetrics(metrics, registry, log))
	}
	return runStack(ctx, append(services, serveAPI("api", listener, counting.Handler(shown), log))...)
}
