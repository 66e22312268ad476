package cli

import (
	"context"
	"errors"
	"net/url"

	"regedge/replicate/registry/sqld"
)

// primaryCommand reads its addresses from sqld's own environment variables, as replicaCommand does.
type primaryCommand struct {
	Dir         string `required:"" type:"path" env:"-" placeholder:"DIR" help:"Directory of the primary."`
	Listen      string `required:"" env:"SQLD_HTTP_LISTEN_ADDR" placeholder:"ADDR" help:"Address of its queries, for the writer and push; keep it on the loopback."`
	Replication string `required:"" env:"SQLD_GRPC_LISTEN_ADDR" placeholder:"ADDR" help:"Address that replicas follow."`
	Mirror      string `placeholder:"URL" help:"Where replicas find compressed databases besides here: object storage, a CDN, a web server. Each has the name of its hash below this address."`
	Upload      string `name:"mirror-upload" placeholder:"COMMAND" help:"Shell command that puts the file $$REGEDGE_FILE there by the name $$REGEDGE_NAME."`
	JWTKey      string `required:"" name:"jwt-key" type:"existingfile" env:"-" placeholder:"FILE" help:"Public key of the tokens that write: NAME.pub of regedge trust."`
	sqldFlags
}

// Help is the text below the usage.
func (c *primaryCommand) Help() string {
	return `Runs sqld as a primary behind a gate. Replicas reach the gate, which passes on what copies the
database, and refuses the calls by which sqld's replicas forward statements: with those, whoever
has the certificate of an edge could lock the database, and write to it. A database that push
hands over as a file is compressed once, and sent to the replicas as it is. When sqld ends by
itself, so does this command, with an error: an init system starts both again. A sqld that
hangs, or accepts no writes for five minutes, is started again from here.

With many edges let a mirror send the compressed databases, for example

    --mirror https://bucket.example.org/registry
    --mirror-upload 'rclone copyto "$REGEDGE_FILE" "bucket:registry/$REGEDGE_NAME"'

A release becomes current once it is uploaded, or after five minutes. Replicas verify what a mirror
sends, and take from the primary what it lacks. Who can read the mirror and knows a name can read
the register.`
}

// Validate refuses a primary that anybody could replicate.
func (c *primaryCommand) Validate() error {
	if c.CA == "" || c.Cert == "" || c.Key == "" {
		return errors.New("--tls-ca, --tls-cert and --tls-key are needed: regedge trust makes them")
	}
	if _, err := c.mirror(); err != nil {
		return err
	}
	return errors.Join(checkAddress("--listen", c.Listen), checkAddress("--replication", c.Replication), c.sqldFlags.check())
}

// mirror reads the flags of a mirror. It is nil without them.
func (c *primaryCommand) mirror() (*sqld.Mirror, error) {
	if c.Mirror == "" {
		if c.Upload != "" {
			return nil, errors.New("--mirror-upload needs --mirror: the address at which replicas find what it uploads")
		}
		return nil, nil
	}
	at, err := url.Parse(c.Mirror)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" {
		return nil, errors.New("--mirror is an address such as https://bucket.example.org/registry")
	}
	return &sqld.Mirror{URL: at, Upload: c.Upload}, nil
}

// Run runs the primary until ctx is done.
func (c *primaryCommand) Run(ctx context.Context, m *Main) error {
	program, err := c.program(c.JWTKey)
	if err != nil {
		return err
	}
	config, err := c.config(program)
	if err != nil {
		return err
	}
	return c.run(ctx, m, "primary", config)
}

// config is how sqld runs as this primary.
func (c *primaryCommand) config(program string) (config sqld.Config, err error) {
	config = sqld.Config{
		Program: program, Dir: c.Dir, HTTP: c.Listen, GRPC: c.Replication, JWTKeyFile: c.JWTKey, TLS: c.tls(),
	}
	if config.Mirror, err = c.mirror(); err != nil {
		return config, err
	}
	config.Link, err = newLink(c.Dir, "link")
	return config, err
}
