package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tursodatabase/libsql-client-go/libsql"

	"regedge/host/answer"
	"regedge/host/sqlite"
	"regedge/schema"
)

// isRemote reports whether a database flag names a libSQL server rather than a file.
func isRemote(name string) bool {
	u, err := url.Parse(name)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "libsql")
}

// openWritable opens a database that this process owns: a file, made for its owner alone
// when missing, or a libSQL server.
func openWritable(name, token string) (*sql.DB, error) {
	if isRemote(name) {
		return openRemote(name, token)
	}
	return schema.OpenPrivate(name)
}

func openRemote(address, token string) (*sql.DB, error) {
	var options []libsql.Option
	if token != "" {
		options = append(options, libsql.WithAuthToken(token))
	}
	connector, err := libsql.NewConnector(address, options...)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", address, err)
	}
	return sql.OpenDB(connector), nil
}

// reading is a database that is only read, by a server that lives on.
type reading interface {
	answer.Database
	Refresh() error
	Close() error
}

// connections is how many statements run at once: they are bound by the processor, with
// some more for those that wait for the disk.
func connections() int { return 2 * runtime.GOMAXPROCS(0) }

// holdReads is how much later a lookup may see what was committed, to save locks: long
// enough for a hundred lookups of a busy node, and nothing beside the two seconds within
// which a key is to be revoked.
const holdReads = 10 * time.Millisecond

// remembers says of which database the results are kept while it does not change: every
// request asks the access database for its key, and the registry for something else.
func remembers(kind schema.Database) bool { return kind == schema.Access }

// openReading opens a database file for lookups, after a look at its schema's version.
func openReading(ctx context.Context, kind schema.Database, name string) (reading, error) {
	if err := checkFile(ctx, kind, name); err != nil {
		return nil, err
	}
	return sqlite.Open(sqlite.Config{Path: name, Connections: connections(), Hold: holdReads, Remember: remembers(kind)})
}

func checkFile(ctx context.Context, kind schema.Database, path string) error {
	db, err := schema.OpenFile(path, true)
	if errors.Is(err, fs.ErrNotExist) {
		makes := map[schema.Database]string{schema.Registry: "import", schema.Access: "writer"}
		return withHint(err, "regedge %s makes the %s database; or try regedge dev, which makes its own", makes[kind], kind)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(schema.CheckReadable(ctx, db, kind), db.Close()); err != nil {
		return fmt.Errorf("open database %s: %w", path, err)
	}
	return nil
}

// registryFlags name the registry database.
type registryFlags struct {
	Registry          string `required:"" placeholder:"FILE|URL" help:"The registry database."`
	RegistryToken     string `placeholder:"TOKEN" help:"Token of the registry, when it is a libSQL server."`
	RegistryTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the token of the registry; it wins over the token itself."`
}

// accessFlags name the access database.
type accessFlags struct {
	Access          string `required:"" placeholder:"FILE|URL" help:"The access database, which the writer keeps."`
	AccessToken     string `placeholder:"TOKEN" help:"Token of the access database, when it is a libSQL server."`
	AccessTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the token of the access database; it wins over the token itself."`
}

// ledgerFlags name the ledger.
type ledgerFlags struct {
	Database          string `required:"" placeholder:"FILE|URL" help:"The ledger."`
	DatabaseToken     string `placeholder:"TOKEN" help:"Token of the ledger, when it is a libSQL server."`
	DatabaseTokenFile string `type:"path" placeholder:"FILE" help:"File that holds the token of the ledger; it wins over the token itself."`
}

func (f *registryFlags) open(ctx context.Context) (reading, error) {
	return openReading(ctx, schema.Registry, f.Registry)
}

func (f *accessFlags) open(ctx context.Context) (reading, error) {
	return openReading(ctx, schema.Access, f.Access)
}

func (f *accessFlags) openWritable() (*sql.DB, error) {
	token, err := fileToken(f.AccessToken, f.AccessTokenFile)
	if err != nil {
		return nil, err
	}
	return openWritable(f.Access, token)
}

func (f *ledgerFlags) openWritable() (*sql.DB, error) {
	token, err := fileToken(f.DatabaseToken, f.DatabaseTokenFile)
	if err != nil {
		return nil, err
	}
	return openWritable(f.Database, token)
}

// fileToken is the token of a libSQL server: from a flag, which the environment stands
// for, or from a file.
func fileToken(token, file string) (string, error) {
	if file == "" {
		return token, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
