package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"regedge/host/hint"
	"regedge/host/pki"
	"regedge/host/sqlite"
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
	return `Runs sqld as a replica behind a gate, passes its output on, and starts it again when it has lost its
database, when it hangs, or when something has overwritten its file, which is then copied anew. The
first happens to one replica in some sixty whose primary was killed: it answers "Namespace default
doesn't exist" from then on, and follows no more. It hangs when it has answered nothing for a minute
and a half. What is left of a database that was being removed is removed first, so that it is copied
anew. When sqld ends by itself, so does this command, with an error: an init system starts both again.

The gate takes statements as JSON over HTTP, and no web sockets. It refuses those that name a
function of sqld that reads or writes files. While a push is under way it answers reads itself, from
the release before, so that no answer mixes two releases.

The connection to the primary passes through this process, which ends it after half a minute
without a sign of the other machine; sqld then connects again. A full release is fetched from the
primary as one compressed file, while sqld still has the one before.`
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
	return errors.Join(checkAddress("--listen", c.Listen), c.checkPrimary(), c.sqldFlags.check())
}

// checkPrimary refuses an address that sqld would try for ever without saying what is wrong with it.
func (c *replicaCommand) checkPrimary() error {
	at, err := url.Parse(c.Primary)
	switch {
	case err != nil || at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https":
		return fmt.Errorf("--primary is an address such as https://centre.example.org:5181; got %q", c.Primary)
	case at.Scheme == "http" && c.CA != "":
		return errors.New("--primary begins with https:// where --tls-ca, --tls-cert and --tls-key are given")
	case at.Scheme == "https" && c.CA == "":
		return errors.New("--primary with https:// needs --tls-ca, --tls-cert and --tls-key")
	}
	return nil
}

// Run runs the replica until ctx is done.
func (c *replicaCommand) Run(ctx context.Context, m *Main) (err error) {
	program, err := c.program(c.JWTKey)
	if err != nil {
		return err
	}
	config, err := c.config(program, m)
	if err != nil {
		return err
	}
	beside := sqlite.OpenBeside(sqld.File(c.Dir))
	defer func() { err = errors.Join(err, beside.Close()) }()
	config.Reads.Held = beside
	return c.run(ctx, m, "replica", config)
}

// config is how sqld runs as this replica.
func (c *replicaCommand) config(program string, m *Main) (sqld.Config, error) {
	config := sqld.Config{
		Program: program, Dir: c.Dir, HTTP: c.Listen, Primary: c.Primary, JWTKeyFile: c.JWTKey, TLS: c.tls(), Relay: true,
	}
	if config.TLS != nil {
		var err error
		if config.Link, err = newLink(c.Dir, "relay"); err != nil {
			return config, err
		}
	}
	var err error
	config.Reads, err = c.reads(m)
	return config, err
}

// reads is the gate before sqld's port.
func (c *replicaCommand) reads(m *Main) (*sqld.Reads, error) {
	admit := func(string) bool { return true }
	if c.JWTKey != "" {
		var err error
		if admit, err = pki.Verifier(c.JWTKey, m.Now); err != nil {
			return nil, hint.With(err, "--jwt-key is a public key of regedge trust, such as registry-replica.pub")
		}
	}
	keyFile, token, err := pki.ReadLink(filepath.Join(c.Dir, "link"), m.Now)
	if err != nil {
		return nil, unwritable(err, c.Dir)
	}
	return &sqld.Reads{KeyFile: keyFile, Token: token, Admit: admit}, nil
}
