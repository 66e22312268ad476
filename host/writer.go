package main

import (
	"context"
	"errors"
	"log/slog"

	"regedge/replicate/metering/writer"
)

type writerCommand struct {
	Listen string `default:"127.0.0.1:8081" placeholder:"ADDR" help:"Address of the API and the dashboard (${default})."`
	ledgerFlags
	accessFlags
	beating
	Restored bool `env:"-" help:"The ledger came back from a backup: grant nothing until every node has reported."`
	secret
	exposure
	dashboardFlags
}

// Validate refuses to show tokens to the network.
func (c *writerCommand) Validate() error {
	return errors.Join(c.exposure.check(c.Listen), c.beating.check(), c.dashboardFlags.check())
}

// Run serves the writer's API and the dashboard until ctx is done.
func (c *writerCommand) Run(ctx context.Context, m *Main) (err error) {
	log := slog.New(slog.NewJSONHandler(m.Stderr, nil))
	var closers closing
	defer func() { err = errors.Join(err, closers.close()) }()
	config := writer.Config{Restored: c.Restored, Now: m.Now, Logger: log}
	if config.OperatorToken, err = c.read(); err != nil {
		return err
	}
	if err := c.openDatabases(&config, &closers); err != nil {
		return err
	}
	central, err := writer.Open(ctx, config)
	if err != nil {
		return err
	}
	listed, err := c.releases(&closers)
	if err != nil {
		return err
	}
	pages, err := c.dashboard(central, config, c.TLSCert != "" || c.BehindTLS, listed)
	if err != nil {
		return err
	}
	listener, err := c.listenTo(m, "writer", c.Listen)
	if err != nil {
		return err
	}
	beats, err := c.beats(&c.accessFlags, config.Access, m, log, &closers)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String())
	services := append([]service{{"writer", central.Run}}, beats...)
	return runStack(ctx, append(services, serveAPI("api", listener, pages.Handler(), log))...)
}

func (c *writerCommand) openDatabases(config *writer.Config, closers *closing) (err error) {
	if config.Ledger, err = c.ledgerFlags.openWritable(); err != nil {
		return err
	}
	closers.add(config.Ledger.Close)
	if config.Access, err = c.accessFlags.openWritable(); err != nil {
		return err
	}
	closers.add(config.Access.Close)
	return nil
}
