package cli

import (
	"fmt"
	"os"
	"os/exec"

	"regedge/host/hint"
	"regedge/replicate/registry/sqld"
)

// sqldFlags are the flags of both commands that run sqld.
type sqldFlags struct {
	CA      string `name:"tls-ca" type:"existingfile" env:"-" placeholder:"FILE" help:"Authority that primary and replicas trust."`
	Cert    string `name:"tls-cert" type:"existingfile" env:"-" placeholder:"FILE" help:"Certificate of this machine; regedge trust machine makes it."`
	Key     string `name:"tls-key" type:"existingfile" env:"-" placeholder:"FILE" help:"Its key."`
	Metrics string `placeholder:"ADDR" help:"Address of the Prometheus metrics, which say when the certificates end; none by default."`
	Pprof   bool   `help:"Serve Go's profiles of this process, not of sqld, at /debug/pprof/ of --metrics."`
	Sqld    string `default:"sqld" env:"-" placeholder:"PROGRAM" help:"The libSQL server (${default})."`
}

// check refuses profiles without an address.
func (f *sqldFlags) check() error { return (&metricsFlags{f.Metrics, f.Pprof}).check() }

// program finds sqld, and checks that this process may read the files, which sqld's own error does
// not name, and no signing key beside them.
func (f *sqldFlags) program(jwtKey string) (string, error) {
	if err := refuseSigningKeys(jwtKey, f.CA, f.Cert, f.Key); err != nil {
		return "", err
	}
	program, err := exec.LookPath(f.Sqld)
	if err != nil {
		return "", hint.With(fmt.Errorf("no libSQL server: %w", err), "install sqld on the PATH, or say where it is with --sqld")
	}
	for _, file := range []string{jwtKey, f.CA, f.Cert, f.Key} {
		if err := readable(file); err != nil {
			return "", err
		}
	}
	return program, nil
}

// tls are the files of replication, nil without flags.
func (f *sqldFlags) tls() *sqld.TLSFiles {
	if f.CA == "" {
		return nil
	}
	return &sqld.TLSFiles{CA: f.CA, Cert: f.Cert, Key: f.Key}
}

// readable returns an error for a file that can't be read; no file is fine.
func readable(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return hint.With(err, "let the user that this runs as read it")
	}
	return file.Close()
}
