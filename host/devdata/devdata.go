// Package devdata is the data directory of `regedge dev`: the three databases, the state of
// its node, and a file of secrets. It is made on the first start.
package devdata

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"regedge/host/edge"
	"regedge/host/hint"
	"regedge/host/service"
	"regedge/replicate/metering/journal"
	"regedge/schema"
	"regedge/schema/sample"
)

// Names within the directory.
const (
	registryFile = "registry.db"
	accessFile   = "access.db"
	ledgerFile   = "ledger.db"
	secretsFile  = "dev.json"
	nodeFolder   = "node"
)

const otherDir = "--data DIR chooses another"

// Data is an open data directory. Its secrets are kept in a file that only its owner can
// read, because a developer wants to see them again; only dev keeps secrets.
type Data struct {
	dir      string
	registry string // path of the registry database
	// Node is the state directory of dev's node. Its lock guards the whole directory.
	Node journal.Dir

	Secrets
}

// Secrets are the credentials that dev shows its developer.
type Secrets struct {
	OperatorToken string `json:"operator_token"`
	NodeToken     string `json:"node_token"`
	LiveKey       string `json:"live_key"`
	// OwnerPassword and OperatorPassword are the passwords of the dashboard's two sign-ins.
	OwnerPassword    string `json:"owner_password"`
	OperatorPassword string `json:"operator_password"`
	// Sampled says that the sample was imported completely.
	Sampled bool `json:"sampled"`
}

// Open locks the directory for this process, and makes it if needed. registry is the path of a registry
// database; "" means one in the directory, into which the first start imports the embedded sample,
// reporting to out; an interrupted import is resumed. What must be closed is added to closers.
func Open(ctx context.Context, dir, registry string, now func() time.Time, out io.Writer, closers *service.Closers) (*Data, error) {
	d := &Data{dir: dir, registry: registry}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, hint.With(fmt.Errorf("make data directory: %w", err), otherDir)
	}
	var err error
	if d.Node, err = journal.OpenDir(d.StateDir()); err != nil {
		if explained := edge.ExplainState(err, dir); hint.Of(explained) != "" {
			return nil, explained
		}
		return nil, hint.With(err, otherDir)
	}
	closers.Add(service.IgnoreClosed(d.Node))
	if err := d.load(); err != nil {
		return nil, err
	}
	// A new ledger would know neither the node nor the key.
	if d.NodeToken != "" && !exists(d.LedgerFile()) {
		return nil, d.startOver(fmt.Errorf("the ledger %s is gone, and with it the accounts and keys", d.LedgerFile()))
	}
	if registry != "" {
		return d, nil
	}
	d.registry = d.path(registryFile)
	if d.Sampled && exists(d.registry) {
		return d, nil
	}
	if d.Sampled {
		fmt.Fprintf(out, "%s is gone: making it again from the data in the program.\n", d.registry)
	} else {
		fmt.Fprintf(out, "First start: making %s from the data in the program.\n", dir)
	}
	if _, err := sample.Import(ctx, d.registry, now); err != nil {
		return nil, err
	}
	d.Sampled = true
	return d, d.save()
}

func (d *Data) startOver(err error) error { return hint.With(err, "remove %s to start over", d.dir) }

// ExplainOpen adds a hint to an error of opening one of dev's databases, if the file is damaged.
func (d *Data) ExplainOpen(err error) error {
	if errors.Is(err, schema.ErrNoDatabase) || errors.Is(err, schema.ErrEmpty) || errors.Is(err, sqlite3.CORRUPT) {
		return d.startOver(err)
	}
	return err
}

// exists reports whether something is in a file.
func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

func (d *Data) path(name string) string { return filepath.Join(d.dir, name) }

// StateDir is the state directory of the node.
func (d *Data) StateDir() string { return d.path(nodeFolder) }

// AccessFile is the path of the access database.
func (d *Data) AccessFile() string { return d.path(accessFile) }

// LedgerFile is the path of the ledger.
func (d *Data) LedgerFile() string { return d.path(ledgerFile) }

// SecretsFile is the path of the file of secrets.
func (d *Data) SecretsFile() string { return d.path(secretsFile) }

// OpenDatabases opens the two databases of lookups for reading.
func (d *Data) OpenDatabases(ctx context.Context, closers *service.Closers) (registry, access edge.Database, err error) {
	if registry, err = edge.OpenFile(ctx, schema.Registry, d.registry); err != nil {
		if d.registry == d.path(registryFile) {
			err = d.ExplainOpen(err)
		}
		return nil, nil, err
	}
	closers.Add(registry.Close)
	if access, err = edge.OpenFile(ctx, schema.Access, d.AccessFile()); err != nil {
		return nil, nil, d.ExplainOpen(err)
	}
	closers.Add(access.Close)
	return registry, access, nil
}

// load reads the secrets, or makes the first of them.
func (d *Data) load() error {
	content, err := os.ReadFile(d.SecretsFile())
	if errors.Is(err, fs.ErrNotExist) {
		d.OperatorToken = rand.Text() + rand.Text()
		return d.save()
	}
	if err == nil {
		err = json.Unmarshal(content, &d.Secrets)
	}
	if err != nil {
		return d.startOver(fmt.Errorf("read %s: %w", d.SecretsFile(), err))
	}
	return nil
}

// save writes the secrets atomically.
func (d *Data) save() error {
	content, err := json.MarshalIndent(&d.Secrets, "", "  ")
	if err != nil {
		return fmt.Errorf("save secrets: %w", err)
	}
	draft := d.path(secretsFile + ".new")
	if err := os.WriteFile(draft, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("save secrets: %w", err)
	}
	if err := os.Rename(draft, d.SecretsFile()); err != nil {
		return fmt.Errorf("save secrets: %w", err)
	}
	return nil
}
