package sqld

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Config is the configuration of a server: a primary if GRPC is set, a replica if Primary is.
type Config struct {
	Program, Dir string    // path of the program, and the folder of the database
	HTTP         string    // host:port for queries
	GRPC         string    // host:port for replication
	Primary      string    // URL of the primary's GRPC
	JWTKeyFile   string    // public key of the tokens; without it the server asks for none
	TLS          *TLSFiles // for replication, on both sides
	// Link, with TLS, is the certificate by which the server and what stands before it recognise each other, which
	// nobody else may have. At a primary it puts a gate on GRPC that passes nothing but replication; a replica with
	// Relay needs it.
	Link *TLSFiles
	// Mirror, at a primary with Link, is where replicas find its bases as well; may be nil.
	Mirror *Mirror
	// Reads, at a replica, puts a gate on HTTP that passes nothing but statements that touch no files.
	Reads *Reads
	// Relay, at a replica, notices when its primary is gone without a word; see relay.
	Relay bool
	// Traffic counts what passes the gate on GRPC, or the relay; may be nil.
	Traffic *Traffic
	// Bound limits the connections to the gates on GRPC and HTTP; nil for any number.
	Bound func(net.Listener) net.Listener
	Log   io.Writer // receives the server's output; may be nil
	// Enter, if set, is called on the thread that starts the process, which inherits what it changes:
	// a network namespace. No other goroutine runs on that thread.
	Enter func() error
}

// TLSFiles are PEM files: the authority that both sides trust, and the server's own certificate with
// its key.
type TLSFiles struct{ CA, Cert, Key string }

// The log of a database of at least largeBytes is cut at logMegabytes (MB) instead of sqld's own 200. sqld keeps each
// part as a snapshot, and merges 33 of them into one, so that with larger parts a few pushes would take more room than
// the registry.
const (
	largeBytes   = 1 << 30
	logMegabytes = 5
)

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
		if info, err := os.Stat(File(c.Dir)); err == nil && info.Size() >= largeBytes {
			list = append(list, "--max-log-size", strconv.Itoa(logMegabytes))
		}
	}
	if t := c.TLS; t != nil {
		list = append(list, side+"-tls", side+"-ca-cert-file", t.CA, side+"-cert-file", t.Cert, side+"-key-file", t.Key)
	}
	return list
}

// File is the path of a server's database.
func File(dir string) string { return filepath.Join(dir, "dbs", "default", "data") }

// OfServer reports whether a path leads to the database of a server. Only that server may write to it: what others
// write is not in its log, so replicas never get it, and later pushes fail because of it.
func OfServer(path string) bool {
	path, err := filepath.EvalSymlinks(path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return false
	}
	dir := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	return path == File(dir) && exists(filepath.Join(dir, "metastore"))
}

// Files are the paths of what a server keeps, for a metric of its size.
func Files(dir string) map[string]string {
	file := File(dir)
	return map[string]string{
		"database": file, "wal": file + "-wal", "log": primaryLog(dir),
		"snapshots": filepath.Join(filepath.Dir(file), "snapshots"), "base": filepath.Join(dir, baseFolder),
		"base in work": filepath.Join(dir, baseInWork), "fetched": fetchedPath(dir), "handed over": filepath.Join(dir, seedFolder),
	}
}

// position is the path of the file in which a replica records how far it has copied its primary's
// log.
func position(dir string) string { return filepath.Join(filepath.Dir(File(dir)), "client_wal_index") }

// primaryLog is the path of the log that a primary replicates from. A replica has none.
func primaryLog(dir string) string { return filepath.Join(filepath.Dir(File(dir)), "wallog") }
