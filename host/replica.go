package main

import (
	"context"
	"errors"

	"regedge/replicate/registry/sqld"
)

// replicaCommand reads its addresses from sqld's own environment variables, so that one
// file of variables serves both.
type replicaCommand struct {
	Dir     string `required:"" type:"path" env:"-" placeholder:"DIR" help:"Directory of the replica."`
	Listen  string `required:"" env:"SQLD_HTTP_LISTEN_ADDR" placeholder:"ADDR" help:"Address of its queries."`
	Primary string `required:"" env:"SQLD_PRIMARY_GRPC_URL" placeholder:"URL" help:"The primary that it follows."`
	JWTKey  string `name:"jwt-key" type:"existingfile" env:"-" placeholder:"FILE" help:"Public key of the tokens that only read: NAME-replica.pub of regedge trust. Without it anybody who reaches the address may read."`
	sqldFlags
}

// Help is the text below the usage.
func (c *replicaCommand) Help() string {
	return `Runs sqld as a replica, passes its output on, and starts it again when it has lost its
database. That happens to one replica in some sixty whose primary was killed: it answers
"Namespace default doesn't exist" from then on, and follows no more. What is left of a
database that was being removed is removed first, so that it is copied anew. When sqld ends
by itself, so does this command, with an error: an init system starts both again.`
}

// Validate refuses an incomplete set of TLS files.
func (c *replicaCommand) Validate() error {
	given := 0
	for _, file := range []string{c.CA, c.Cert, c.Key} {
		if file != "" {
			given++
		}
	}
	if given != 0 && given != 3 {
		return errors.New("--tls-ca, --tls-cert and --tls-key go together")
	}
	return nil
}

// Run runs the replica until ctx is done.
func (c *replicaCommand) Run(ctx context.Context, m *Main) error {
	program, err := c.program(c.JWTKey)
	if err != nil {
		return err
	}
	config := sqld.Config{
		Program: program, Dir: c.Dir, HTTP: c.Listen, Primary: c.Primary, JWTKeyFile: c.JWTKey, TLS: c.tls(), Log: m.Stderr,
	}
	return c.run(ctx, m, "replica", config)
}
