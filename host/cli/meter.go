package cli

import (
	"context"
	"errors"

	"regedge/host/hint"
	"regedge/host/service"
	"regedge/replicate/metering/meter"
)

type meterCommand struct {
	meterFlags
	Listen         string `default:"127.0.0.1:8090" placeholder:"ADDR" help:"Address of the meter (${default})."`
	MeterToken     string `placeholder:"TOKEN" help:"What a component must show: the variable meter_token of Spin."`
	MeterTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the meter token; it wins over the token itself."`
	metricsFlags
	tlsFlags
}

// Validate refuses to serve tokens to the network in the clear.
func (c *meterCommand) Validate() error {
	return errors.Join(c.tlsFlags.check(c.Listen), c.metricsFlags.check())
}

// Run serves the meter's contract (docs/design.md, "The meter's contract") until ctx is done.
func (c *meterCommand) Run(ctx context.Context, m *Main) (err error) {
	log := m.logLines()
	var closers service.Closers
	defer func() { err = errors.Join(err, closers.Close()) }()
	if err := refuseSigningKeys(c.TLSCert, c.TLSKey, c.TokenFile, c.MeterTokenFile); err != nil {
		return err
	}
	shared, err := readToken(c.MeterToken, c.MeterTokenFile)
	if err != nil {
		return err
	}
	if shared == "" {
		return hint.With(errors.New("a meter token is needed"), "set REGEDGE_METER_TOKEN, or give --meter-token-file")
	}
	token, err := c.bearerToken(nodeTokenFrom)
	if err != nil {
		return err
	}
	metricsListener, err := m.listenForMetrics(c.Metrics, &closers)
	if err != nil {
		return err
	}
	metrics := newMetrics()
	opened, err := c.openMeter(metrics, token, meter.Config{Now: m.Now, Logger: log})
	if err != nil {
		return err
	}
	closers.Add(opened.Close)
	listener, err := c.tlsFlags.listen(m, "meter", c.Listen, metrics, log)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String())
	services := []service.Service{{Name: "meter", Run: opened.Run}}
	if metricsListener != nil {
		services = append(services, service.Metrics(metricsListener, metrics, c.Pprof, log))
	}
	return service.Run(ctx, append(services, service.HTTP("api", listener, opened.Handler(shared), log))...)
}
