package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"regedge/host/hint"
	"regedge/replicate/registry/sqld"
)

// replicaCommand reads its addresses from sqld's own environment variables, so that one
// file of variables serves both.
type replicaCommand struct {
	Dir     string `required:"" type:"path" env:"-" placeholder:"DIR" help:"Directory of the replica."`
	Listen  string `required:"" env:"SQLD_HTTP_LISTEN_ADDR" placeholder:"ADDR" help:"Address of its queries."`
	Primary string `required:"" env:"SQLD_PRIMARY_GRPC_URL" placeholder:"URL" help:"The primary that it follows."`
	JWTKey  string `name:"jwt-key" type:"existingfile" env:"-" placeholder:"FILE" help:"Public key of the tokens. Without it anybody who reaches the address may read, and write at the primary."`
	CA      string `name:"tls-ca" type:"existingfile" env:"-" placeholder:"FILE" help:"Authority of the primary's certificate."`
	Cert    string `name:"tls-cert" type:"existingfile" env:"-" placeholder:"FILE" help:"Certificate of this machine; regedge trust machine makes it."`
	Key     string `name:"tls-key" type:"existingfile" env:"-" placeholder:"FILE" help:"Its key."`
	Sqld    string `default:"sqld" env:"-" placeholder:"PROGRAM" help:"The libSQL server (${default})."`
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
	program, err := exec.LookPath(c.Sqld)
	if err != nil {
		return hint.With(fmt.Errorf("no libSQL server: %w", err), "install sqld on the PATH, or say where it is with --sqld")
	}
	for _, file := range []string{c.JWTKey, c.CA, c.Cert, c.Key} {
		if err := readable(file); err != nil { // sqld's own error names none
			return hint.With(err, "let the user that this runs as read it")
		}
	}
	config := sqld.Config{
		Program: program, Dir: c.Dir, HTTP: c.Listen, Primary: c.Primary, JWTKeyFile: c.JWTKey, Log: m.Stderr,
	}
	if c.CA != "" {
		config.TLS = &sqld.TLSFiles{CA: c.CA, Cert: c.Cert, Key: c.Key}
	}
	return (&sqld.Server{Config: config}).Run(ctx)
}

// readable returns an error for a file that can't be read; no file is fine.
func readable(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return file.Close()
}
