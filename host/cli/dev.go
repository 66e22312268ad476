package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"regedge/handler"
	"regedge/handler/ident"
	"regedge/host/devdata"
	"regedge/host/edge"
	"regedge/host/hint"
	"regedge/host/server"
	"regedge/host/service"
	"regedge/replicate/dashboard"
	"regedge/replicate/metering/meter"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

type devCommand struct {
	edgeFlags
	WriterListen string `default:"127.0.0.1:8081" placeholder:"ADDR" help:"Address of the dashboard and of the writer's API, for the operator's commands (${default})."`
	Registry     string `placeholder:"FILE" help:"Registry database of your own, from regedge import, to serve in place of the sample."`
	Data         string `default:"data" type:"path" placeholder:"DIR" help:"Directory of the databases; made on the first start (${default})."`
}

// Validate refuses to serve tokens and passwords to the network: dev's writer has no TLS.
func (c *devCommand) Validate() error {
	if err := checkAddress("--writer-listen", c.WriterListen); err != nil {
		return err
	}
	if !isLoopback(c.WriterListen) {
		return fmt.Errorf("--writer-listen %s is reached from other machines, and tokens go over it in the clear: only regedge writer can be open to them", c.WriterListen)
	}
	if isRemote(c.Registry) { // such as REGEDGE_REGISTRY of the operators' commands
		return hint.With(fmt.Errorf("--registry or REGEDGE_REGISTRY is a file here, not %s: regedge edge serves a registry of a libSQL server", c.Registry),
			"with the variable set for other commands: REGEDGE_REGISTRY= regedge dev, or --registry FILE")
	}
	return c.edgeFlags.Validate()
}

// Run serves everything from one directory until ctx is done.
func (c *devCommand) Run(ctx context.Context, m *Main) (err error) {
	var closers service.Closers
	defer func() {
		err = explainFull(errors.Join(err, closers.Close()), "run the same command again", "--data")
		if ctx.Err() != nil && errors.Is(err, context.Canceled) { // in whatever was under way
			err = errors.New("stopped before it was ready")
		}
	}()
	if c.Registry != "" { // before anything is made
		if err := edge.CheckFile(ctx, schema.Registry, c.Registry); err != nil {
			return err
		}
	}
	log, logging := c.logger(m, true, &closers)

	listening, err := c.open(m, log, &closers)
	if err != nil {
		return err
	}
	api, err := m.listen("writer", "--writer-listen", c.WriterListen)
	if err != nil {
		return err
	}
	api = server.Bound(api, log)
	closers.Add(service.IgnoreClosed(api))
	if c.DashboardURL == "" { // the pages link to it
		c.DashboardURL = "http://" + api.Addr().String()
	}
	n := devNode{devCommand: c, main: m, addr: listening.lookups.Addr(), api: api.Addr()}
	if n.config, err = c.config(listening, log); err != nil {
		return err
	}
	tracer, tracing, err := c.tracer(ctx, "dev", log, n.config.Metrics)
	if err != nil {
		return err
	}
	if tracer != nil { // an interface that holds a nil pointer is not nil
		n.config.Tracer, n.tracer = tracer, tracer
	}
	if n.data, err = devdata.Open(ctx, c.Data, c.Registry, m.Now, m.Stdout, &closers); err != nil {
		return err
	}
	centre, err := n.openWriter(ctx, &closers)
	if err != nil {
		return err
	}
	if n.config.Registry, n.config.Access, err = n.data.OpenDatabases(ctx, &closers); err != nil {
		return err
	}
	n.client = &http.Client{Transport: writer.InProcess(n.pages.Handler())}
	services := append([]service.Service{logging}, tracing...)
	return service.Run(ctx, append(services, service.Service{Name: "writer", Run: centre.Run}, n.hooks,
		service.HTTP("api", api, n.pages.Handler(), log), service.Service{Name: "node", Run: n.run})...)
}

// devNode is the edge node within dev. It calls the writer without a network.
type devNode struct {
	*devCommand
	main   *Main
	data   *devdata.Data
	config edge.Config
	client *http.Client  // of the writer
	tracer server.Tracer // nil without --traces
	pages  *dashboard.Dashboard
	hooks  service.Service
	addr   net.Addr // of the lookups
	api    net.Addr // of writer and dashboard
}

// openWriter opens the writer on the directory's ledger, and the dashboard. The dashboard
// and the reference link to each other.
func (n *devNode) openWriter(ctx context.Context, closers *service.Closers) (*writer.Writer, error) {
	flags := dashboardFlags{DashboardURL: n.DashboardURL, ReferenceURL: n.docsURL(n.addr), TrustedProxy: n.TrustedProxy, PrivateWebhooks: true}
	config := writer.Config{OperatorToken: n.data.OperatorToken, Client: flags.client(), Now: n.main.Now, Logger: n.config.Log, Metrics: newMetrics(), Tracer: n.tracer}
	var err error
	if config.Ledger, err = openWritable(n.data.LedgerFile(), "", ""); err != nil {
		return nil, n.data.ExplainOpen(err)
	}
	closers.Add(config.Ledger.Close)
	if config.Access, err = openWritable(n.data.AccessFile(), "", ""); err != nil {
		return nil, n.data.ExplainOpen(err)
	}
	closers.Add(config.Access.Close)
	centre, err := writer.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	closers.Add(centre.Close)
	if n.hooks, err = flags.notices(centre, config, nil); err != nil {
		return nil, err
	}
	n.pages, err = flags.dashboard(centre, config, false, false, nil)
	return centre, err
}

// run prepares the data of the first start through the writer, and serves lookups.
func (n *devNode) run(ctx context.Context) (err error) {
	operator := writer.NewClient(inProcess, n.data.OperatorToken, n.client)
	if err := n.data.Provision(ctx, operator, n.pages); err != nil {
		return err
	}
	keyWorks, err := n.data.KeyWorks(ctx, operator)
	if err != nil {
		return err
	}
	n.config.Meter, err = edge.OpenMeter(n.config.Metrics, meter.Config{
		State: n.data.StateDir(), Files: n.data.Node,
		Writer: meter.OverHTTP(inProcess, n.data.NodeToken, n.client),
		Now:    n.main.Now, Logger: n.config.Log, Tracer: n.tracer,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.config.Meter.Close()) }()
	node, err := edge.New(ctx, n.config)
	if err != nil {
		return err
	}
	if err := n.greet(ctx, keyWorks); err != nil {
		return err
	}
	report := node.Report(edge.Reporter{
		Client: writer.NewClient(inProcess, n.data.NodeToken, n.client), Address: n.url(n.addr), Renew: func(string, string) {},
		Version: thisBuild().Version, Commit: thisBuild().Commit, Component: thisBuild().Component,
	})
	first := []service.Service{{Name: "meter", Run: n.config.Meter.Run}, report}
	return service.Run(ctx, append(first, node.Services()...)...)
}

// inProcess stands for the address of a writer in this process, which is called without a network.
const inProcess = "http://writer.internal"

// exampleStatement finds a company of the official data with as many fields as possible, since a live key does
// not see the sandbox's made-up ones. It looks at only some, since a registry may have millions.
const exampleStatement = `
SELECT c.cin, c.company_name FROM (SELECT * FROM company ORDER BY cin LIMIT 1000) c
ORDER BY c.company_name LIKE '%MADE-UP%', c.status <> 'ACTIVE', NOT EXISTS (
  SELECT 1 FROM appointment a JOIN director d ON d.din = a.din
  WHERE a.cin = c.cin AND a.cessation IS NULL), c.email IS NULL, c.cin
LIMIT 1`

// greet prints what a developer needs: addresses, keys, and a line to paste.
func (n *devNode) greet(ctx context.Context, keyWorks bool) error {
	var example handler.Result
	if err := n.config.Registry.Query(ctx, exampleStatement, nil, &example); err != nil {
		return fmt.Errorf("find an example: %w", err)
	}
	d := n.data
	base, key := n.url(n.addr), d.LiveKey
	cin, name := handler.SandboxCompany, "a made-up company" // for a registry without companies
	exampleKey := ident.SandboxKey
	if example.Rows() > 0 {
		cin, name, exampleKey = example.Values[0].Text, example.Values[1].Text, key
	}
	if !keyWorks {
		key = "none: it was revoked or replaced. Make another with " + programName() + " key add ACCOUNT"
		exampleKey = ident.SandboxKey
	}
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
		n.DashboardURL, devdata.Owner, d.OwnerPassword, devdata.Operator, d.OperatorPassword,
		name, exampleKey, base, cin, n.api, d.OperatorToken, programName(), n.notice(), d.SecretsFile())
	return nil
}

// notice warns when other machines reach the lookups and links would lead them astray.
func (n *devNode) notice() string {
	if n.needsDocsURL(n.addr) {
		return "Note: " + needDocsURL + ".\n\n"
	}
	return ""
}

// programName is how the program was started, as a user can type it again.
func programName() string {
	path, err := os.Executable()
	if err != nil {
		return "regedge"
	}
	return typedName(path)
}

// typedName returns what to type to start the program at a path: only its name if a shell finds that. go run
// puts its build into a folder named go-build.
func typedName(path string) string {
	if strings.Contains(path, "go-build") {
		return "go run ./host"
	}
	this, err := os.Stat(path)
	if err != nil {
		return "regedge"
	}
	if found, err := exec.LookPath("regedge"); err == nil {
		if other, err := os.Stat(found); err == nil && os.SameFile(this, other) {
			return "regedge"
		}
	}
	return forShell(path)
}
