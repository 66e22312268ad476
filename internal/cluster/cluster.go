package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"regedge/host/pki"
	"regedge/internal/testkit"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/sqld"
)

// Config is the configuration of a cluster.
type Config struct {
	Dir           string // keeps the files of all processes; made if missing
	Regedge, Sqld string // paths of the programs
	EdgeFlags     []string
	// Log returns the writer for the output of a process; nil discards all output.
	Log func(name string) io.Writer
	// Lookups are the addresses on which the first edges answer lookups, Writer is the writer's.
	// Missing addresses get free ports.
	Lookups []string
	Writer  string
	// Host is the IP address that the centre listens on, 127.0.0.1 if empty.
	Host string
}

// Cluster is a running cluster.
type Cluster struct {
	Config
	OperatorToken string
	Primaries     map[string]*sqld.Server // by database
	WriterProcess *testkit.Process
	Client        *writer.Client // of the writer's API, with the operator's token
	Edges         []*Edge
	trust         *pki.Trust
	reserved      []func() // each releases a port
}

// Start starts the centre: the primaries and the writer. After an error nothing is left running.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	if config.Log == nil {
		config.Log = func(string) io.Writer { return io.Discard }
	}
	c := &Cluster{Config: config, OperatorToken: rand.Text(), Primaries: make(map[string]*sqld.Server)}
	if err := c.startCentre(ctx); err != nil {
		c.Stop()
		return nil, fmt.Errorf("start the centre: %w", err)
	}
	return c, nil
}

func (c *Cluster) startCentre(ctx context.Context) (err error) {
	if c.trust, err = pki.Create(c.path("trust"), time.Now); err != nil {
		return err
	}
	tls, err := c.certificate("primary", "127.0.0.1")
	if err != nil {
		return err
	}
	centre := Place{Host: c.Host}
	for _, database := range pki.Databases {
		s := &sqld.Server{Config: sqld.Config{
			Program: c.Sqld, Dir: c.path("primary-" + database), TLS: tls,
			JWTKeyFile: c.trust.PrimaryKeyFile(database), Log: c.Log("primary-" + database),
		}}
		if s.HTTP, err = c.address(centre); err != nil {
			return err
		}
		if s.GRPC, err = c.address(centre); err != nil {
			return err
		}
		if s.Link, err = c.link(database); err != nil {
			return err
		}
		c.Primaries[database] = s
		token, err := c.Token(database, pki.ReadWrite)
		if err != nil {
			return err
		}
		if err := s.Start(); err != nil {
			return err
		}
		if err := s.Await(ctx, token); err != nil {
			return err
		}
	}
	return c.startWriter(ctx)
}

func (c *Cluster) startWriter(ctx context.Context) (err error) {
	if c.Writer == "" {
		if c.Writer, err = c.address(Place{Host: c.Host}); err != nil {
			return err
		}
	}
	registry, err := c.trust.Token("registry", pki.ReadWrite, writerTokenLife)
	if err != nil {
		return err
	}
	access, err := c.trust.Token("access", pki.ReadWrite, writerTokenLife)
	if err != nil {
		return err
	}
	c.WriterProcess = &testkit.Process{
		Program: c.Regedge, Log: c.Log("writer"),
		Args: []string{
			"writer", "--listen", c.Writer, "--database", c.path("ledger.db"), "--backup", c.path("ledger-backup.db"),
			"--access", c.Primaries["access"].URL(), "--registry", c.Primaries["registry"].URL(),
		},
		Env: []string{"REGEDGE_TOKEN=" + c.OperatorToken, "REGEDGE_ACCESS_TOKEN=" + access, "REGEDGE_REGISTRY_TOKEN=" + registry},
	}
	if c.Host != "" {
		c.WriterProcess.Args = append(c.WriterProcess.Args, "--behind-tls") // a network within this machine
	}
	if err := c.WriterProcess.Start(); err != nil {
		return err
	}
	c.Client = writer.NewClient(c.WriterURL(), c.OperatorToken, nil)
	return c.WriterProcess.Await(ctx, c.WriterURL()+"/readyz")
}

// writerTokenLife is how long the writer's tokens for the primaries are good.
const writerTokenLife = 365 * 24 * time.Hour

// WriterURL is the base URL of the writer's API.
func (c *Cluster) WriterURL() string { return "http://" + c.Writer }

// Token makes a token for a database that does not expire.
func (c *Cluster) Token(database string, right pki.Right) (string, error) {
	return c.trust.Token(database, right, 0)
}

func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }

func (c *Cluster) certificate(name string, hosts ...string) (*sqld.TLSFiles, error) {
	cert, key, err := c.trust.Certificate(name, hosts...)
	return &sqld.TLSFiles{CA: c.trust.AuthorityFile(), Cert: cert, Key: key}, err
}

// link makes the certificate between a primary's gate and its server, as regedge primary does.
func (c *Cluster) link(database string) (*sqld.TLSFiles, error) {
	ca, cert, key, err := pki.Link(c.path("link-" + database))
	return &sqld.TLSFiles{CA: ca, Cert: cert, Key: key}, err
}

// Stop stops all processes, the edges first. The files in Dir stay.
func (c *Cluster) Stop() {
	for _, e := range c.Edges {
		if e.Process != nil {
			e.Stop()
		}
		for _, s := range e.Replicas {
			s.Stop()
		}
		for _, b := range e.besides {
			_ = b.Close() // it has read only
		}
		for _, g := range e.gates {
			g.close()
		}
	}
	if c.WriterProcess != nil {
		c.WriterProcess.Stop()
	}
	for _, s := range c.Primaries {
		s.Stop()
	}
	for _, release := range c.reserved {
		release()
	}
}

// PushArgs returns the arguments and the environment with which regedge push pushes a file.
func (c *Cluster) PushArgs(file string) (args, env []string, err error) {
	token, err := c.Token("registry", pki.ReadWrite)
	return []string{"push", file, "--registry", c.Primaries["registry"].URL(), "--releases", c.path("releases")},
		[]string{"REGEDGE_REGISTRY_TOKEN=" + token}, err
}

// LogFiles returns a Config.Log that appends the output of each process to a file of its own in a
// folder.
func LogFiles(dir string) (func(string) io.Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return func(name string) io.Writer {
		f, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return io.Discard
		}
		return f
	}, nil
}
