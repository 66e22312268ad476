package cli

import (
	"cmp"
	"context"

	"regedge/host/doctor"
	"regedge/host/hint"
	"regedge/replicate/metering/writer"
	"regedge/schema"
)

type doctorClient struct {
	operator
	Registry          string `placeholder:"URL" help:"The registry's primary."`
	RegistryToken     string `placeholder:"TOKEN" help:"Token of the registry; at a replica, one that may only read."`
	RegistryTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the token of the registry; it wins over the token itself."`
	doctorFlags
}

// Help is the text below the usage.
func (c *doctorClient) Help() string { return doctorHelp }

// Validate refuses contradicting flags.
func (c *doctorClient) Validate() error { return c.doctorFlags.check() }

// Run examines the way to the writer and to the registry, and the nodes by their reports.
func (c *doctorClient) Run(ctx context.Context, m *Main) error {
	defer m.examining("client")()
	e := c.exam(m, "client")
	token, err := readToken(c.Token, c.TokenFile)
	noteTokenFile(e, err)
	good := e.Writer(ctx, c.Writer, token, doctor.OperatorToken)
	if c.Registry != "" {
		registry, err := readToken(c.RegistryToken, c.RegistryTokenFile)
		if noteTokenFile(e, err); err == nil {
			c.RegistryToken, c.RegistryTokenFile = registry, ""
		}
		e.Token(schema.Registry, registry)
		e.LibSQL(ctx, doctor.Server{Database: schema.Registry, Address: c.Registry, Token: registry, MaxAge: heartbeatLate})
	}
	var nodes []doctor.Finding
	if good {
		nodes, err = c.nodes(ctx, m, token)
		if ctx.Err() != nil {
			return err
		}
		if err != nil { // what was found before is told all the same
			e.Wrong("nodes", cmp.Or(hint.Of(c.explain(err)), "the writer's log says more"), "%v", err)
		}
	}
	return tell(m, append(e.Findings, nodes...), c.JSON)
}

// nodes explains the state of the nodes, by the writer.
func (c *doctorClient) nodes(ctx context.Context, m *Main, token string) ([]doctor.Finding, error) {
	shown := statusCommand{operator: c.operator, Registry: c.Registry, RegistryToken: c.RegistryToken, RegistryTokenFile: c.RegistryTokenFile}
	now, err := shown.collect(ctx, m, writer.NewClient(c.Writer, token, nil)) // the examination says that it waits
	if err != nil {
		return nil, err
	}
	return now.explain(), nil
}
