package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"regedge/handler"
	"regedge/handler/ident"
	"regedge/replicate/dashboard"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

type devCommand struct {
	serving
	WriterListen string `default:"127.0.0.1:8081" placeholder:"ADDR" help:"Address of the dashboard and of the writer's API, for the operator's commands (${default})."`
	Data         string `default:"data" type:"path" placeholder:"DIR" help:"Directory of the databases; made on the first start (${default})."`
}

// Validate refuses to show tokens and passwords to the network: dev serves the writer
// without TLS.
func (c *devCommand) Validate() error {
	if !isLoopback(c.WriterListen) {
		return fmt.Errorf("--writer-listen %s is reached from other machines, and tokens go over it in the clear: only regedge writer can be open to them", c.WriterListen)
	}
	return c.serving.Validate()
}

// Run serves everything from one directory until ctx is done.
func (c *devCommand) Run(ctx context.Context, m *Main) (err error) {
	var closers closing
	defer func() { err = errors.Join(err, closers.close()) }()
	log, logging := c.logger(m, true, &closers)

	n := devNode{devCommand: c, main: m, lookups: lookups{log: log, metrics: newMetrics()}}
	if n.front, err = c.open(m, &closers); err != nil {
		return err
	}
	if n.api, err = m.listen("writer", "--writer-listen", c.WriterListen); err != nil {
		return err
	}
	closers.add(ignoreClosed(n.api))
	if n.home, err = openHome(ctx, m, c.Data, &closers); err != nil {
		return err
	}
	central, err := n.home.openWriter(ctx, m, log, &closers)
	if err != nil {
		return err
	}
	if err := n.home.openLookups(ctx, &n.lookups, &closers); err != nil {
		return err
	}
	if err := n.openDashboard(central); err != nil {
		return err
	}
	n.client = &http.Client{Transport: writer.InProcess(n.pages.Handler())}
	return runStack(ctx, logging, service{"writer", central.Run},
		serveAPI("api", n.api, n.pages.Handler(), log), service{"node", n.run})
}

// devNode is the edge node within dev. It stands on the writer, which it reaches without
// a network.
type devNode struct {
	*devCommand
	main    *Main
	home    *home
	lookups lookups
	client  *http.Client
	pages   *dashboard.Dashboard
	front   front
	api     net.Listener
}

// openDashboard makes the dashboard; it and the reference link to each other.
func (n *devNode) openDashboard(central *writer.Writer) (err error) {
	if n.DashboardURL == "" {
		n.DashboardURL = "http://" + n.api.Addr().String()
	}
	flags := dashboardFlags{DashboardURL: n.DashboardURL, ReferenceURL: n.docsURL(n.front.lookups.Addr()), TrustedProxy: n.TrustedProxy}
	n.pages, err = flags.dashboard(central, n.home.writer, false, nil)
	return err
}

func (n *devNode) run(ctx context.Context) (err error) {
	if err := n.home.prepare(ctx, writer.NewClient(inProcess, n.home.OperatorToken, n.client), n.pages); err != nil {
		return err
	}
	counting, err := openMeter(n.lookups.metrics, meter.Config{
		State: n.home.path(nodeFolder), Files: n.home.node,
		Writer: meter.OverHTTP(inProcess, n.home.NodeToken, n.client),
		Now:    n.main.Now, Logger: n.lookups.log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, counting.Close()) }()
	n.lookups.meter = counting
	services, err := n.serve(ctx, n.front, n.lookups)
	if err != nil {
		return err
	}
	if err := n.greet(ctx); err != nil {
		return err
	}
	reports := n.lookups.reporting(writer.NewClient(inProcess, n.home.NodeToken, n.client), n.url(n.front.lookups.Addr()))
	return runStack(ctx, append([]service{{"meter", counting.Run}, reports}, services...)...)
}

// inProcess is the address of a writer that is reached without a network.
const inProcess = "http://writer.internal"

// ignoreClosed closes what another part may have closed before.
func ignoreClosed(c io.Closer) func() error {
	return func() error {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrClosed) {
			return err
		}
		return nil
	}
}

// openLookups opens the two databases for reading.
func (h *home) openLookups(ctx context.Context, l *lookups, closers *closing) (err error) {
	if l.registry, err = openReading(ctx, schema.Registry, h.path(registryFile)); err != nil {
		return err
	}
	closers.add(l.registry.Close)
	if l.access, err = openReading(ctx, schema.Access, h.path(accessFile)); err != nil {
		return err
	}
	closers.add(l.access.Close)
	return nil
}

// exampleStatement finds a company of the official data that has something to show.
const exampleStatement = `
SELECT c.cin, c.company_name FROM company c
ORDER BY c.company_name LIKE '%MADE-UP%', c.status <> 'ACTIVE', NOT EXISTS (
  SELECT 1 FROM appointment a JOIN director d ON d.din = a.din
  WHERE a.cin = c.cin AND a.cessation IS NULL), c.email IS NULL, c.cin
LIMIT 1`

// greet prints what a developer needs: addresses, keys, and a line to paste.
func (n *devNode) greet(ctx context.Context) error {
	var example handler.Result
	if err := n.lookups.registry.Query(ctx, exampleStatement, nil, &example); err != nil {
		return fmt.Errorf("find an example: %w", err)
	}
	if example.Rows() == 0 {
		return withHint(errors.New("the registry has no company"), "remove %s to make it anew", n.Data)
	}
	cin, name := example.Values[0].Text, example.Values[1].Text
	h := n.home
	base, api, key := n.url(n.front.lookups.Addr()), n.api.Addr(), h.LiveKey
	fmt.Fprintf(n.main.Stdout, `regedge is running on the files in %s. Ctrl-C stops it.

  Lookups      %s
  Sandbox key  %s
  Live key     %s

  Dashboard    %s
  as owner     %s  %s
  as operator  %s  %s

Look up %s:

  curl -H 'Authorization: Bearer %s' %s/v1/companies/%s

Manage accounts, keys and credits from another shell:

  export REGEDGE_WRITER=http://%s REGEDGE_TOKEN=%s
  %s account list

%sKey, token and passwords are kept in %s, readable by you alone.
`, n.Data, base, ident.SandboxKey, key,
		n.DashboardURL, demoOwner, h.OwnerPassword, demoOperator, h.OperatorPassword,
		name, key, base, cin, api, h.OperatorToken, programName(), n.notice(), h.path(secretsFile))
	return nil
}

// notice is what dev says when other machines reach it.
func (n *devNode) notice() string {
	if n.needsDocsURL(n.front.lookups.Addr()) {
		return "Note: " + needDocsURL + ".\n\n"
	}
	return ""
}

// programName is how the program was called, as far as it can be typed again. What go
// run builds lies in a folder of that name.
func programName() string {
	if path, err := os.Executable(); err == nil && strings.Contains(path, "go-build") {
		return "go run ./host"
	}
	return "regedge"
}
