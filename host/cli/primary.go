package cli

import (
	"context"
	"errors"

	"regedge/replicate/registry/sqld"
)

// primaryCommand reads its addresses from sqld's own environment variables, as replicaCommand does.
type primaryCommand struct {
	Dir         string `required:"" type:"path" env:"-" placeholder:"DIR" help:"Directory of the primary."`
	Listen      string `required:"" env:"SQLD_HTTP_LISTEN_ADDR" placeholder:"ADDR" help:"Address of its queries, for the writer and push; keep it on the loopback."`
	Replication string `required:"" env:"SQLD_GRPC_LISTEN_ADDR" placeholder:"ADDR" help:"Address that replicas follow."`
	JWTKey      string `required:"" name:"jwt-key" type:"existingfile" env:"-" placeholder:"FILE" help:"Public key of the tokens that write: NAME.pub of regedge trust."`
	sqldFlags
}

// Help is the text below the usage.
func (c *primaryCommand) Help() string {
	return `Runs sqld as a primary behind a gate. Replicas reach the gate, which passes on what copies the
database, and refuses the calls by which sqld's replicas forward statements: with those, whoever
has the certificate of an edge could lock the database, and write to it. A database that push
hands over as a file is compressed once, and sent to the replicas as it is. When sqld ends by
itself, so does this command, with an error: an init system starts both again.`
}

// Validate refuses a primary that anybody could replicate.
func (c *primaryCommand) Validate() error {
	if c.CA == "" || c.Cert == "" || c.Key == "" {
		return errors.New("--tls-ca, --tls-cert and --tls-key are needed: regedge trust makes them")
	}
	return errors.Join(checkAddress("--listen", c.Listen), checkAddress("--replication", c.Replication), c.sqldFlags.check())
}

// Run runs the primary until ctx is done.
func (c *primaryCommand) Run(ctx context.Context, m *Main) error {
	program, err := c.program(c.JWTKey)
	if err != nil {
		return err
	}
	config := sqld.Config{
		Program: program, Dir: c.Dir, HTTP: c.Listen, GRPC: c.Replication, JWTKeyFile: c.JWTKey, TLS: c.tls(), Log: m.Stderr,
	}
	if config.Link, err = newLink(c.Dir, "link", m); err != nil {
		return err
	}
	return c.run(ctx, m, "primary", config)
}
