package sqld

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"regedge/replicate/registry/libsql"
)

const (
	// checkedKeys is the file with the public keys whose tokens a primary accepts.
	checkedKeys = "tokens.pub"
	// checkedDisk is the file that is written to find out whether the disk hangs.
	checkedDisk = "disk.check"
	// tokenLife is how long the token of one check is good.
	tokenLife = time.Minute
	busyPause = 100 * time.Millisecond
)

// restartHung restarts a primary that hangs, or that accepts no writes any more because of a defect of sqld 0.24.
// There, one connection waits to write while another one waits to checkpoint; when the transaction before both reaches
// its limit of 5 s and is ended, the first is told that the database is locked. It keeps its place in the queue of
// writers. If it is closed by then, every later write waits for it for ever, while reads and health checks are
// answered. A primary whose disk hangs is left alone, as in hangs: it would begin a new log for nothing.
func (s *Server) restartHung(r *run) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hangs, stuck := make(chan bool, 1), make(chan bool, 1)
	go func() { hangs <- s.hangs(ctx, r) }()
	go func() {
		disk, limits := diskCheck{dir: s.Dir}, s.writeless.or(writeless)
		stuck <- limits.await(ctx, func() bool {
			return r.writes.stuck(ctx, r.asked, limits.limit) && disk.answers(limits.limit)
		})
	}()
	select {
	case <-r.ended:
	case <-hangs:
		s.restart(r, "the primary has answered nothing for more than a minute, and is started again", os.Interrupt)
	case <-stuck:
		s.restart(r, "the primary has accepted no write for minutes, and is started again", os.Interrupt)
	}
}

// diskCheck asks the disk of a directory whether it writes.
type diskCheck struct {
	dir     string
	pending chan struct{} // closed when the last write to the disk has ended; nil if none was begun
}

// answers reports whether the disk completes a write within limit, with or without an error. There is one write at a
// time. It must not be called concurrently.
func (d *diskCheck) answers(limit time.Duration) bool {
	if d.pending == nil {
		d.pending = make(chan struct{})
		go func(done chan struct{}) {
			defer close(done)
			_ = writeThrough(filepath.Join(d.dir, checkedDisk))
		}(d.pending)
	}
	select {
	case <-d.pending:
		d.pending = nil
		return true
	case <-time.After(limit):
		return false
	}
}

// writeThrough writes a file to disk, and removes it.
func writeThrough(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write([]byte{0})
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(path))
}

// writeCheck asks a primary whether it accepts writes.
type writeCheck struct {
	log  string             // path of the primary's log, which every write makes longer
	key  ed25519.PrivateKey // nil where no token is asked for
	seen os.FileInfo        // the log at the last check
}

// letCheck prepares a primary for checks: if it asks for tokens, it is made to accept also those of a key that only
// this process has. If the key file is not PEM, another key can't be put beside its own, and nothing is checked.
func letCheck(config *Config) (*writeCheck, error) {
	w := &writeCheck{log: primaryLog(config.Dir)}
	if config.JWTKeyFile == "" {
		return w, nil
	}
	keys, err := os.ReadFile(config.JWTKeyFile)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(keys); block == nil {
		return nil, nil
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	own := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	file := filepath.Join(config.Dir, checkedKeys)
	if err := os.WriteFile(file, append(append(bytes.TrimSpace(keys), '\n'), own...), 0o600); err != nil {
		return nil, fmt.Errorf("write the keys of the primary's tokens: %w", err)
	}
	w.key, config.JWTKeyFile = private, file
	return w, nil
}

// stuck reports whether nothing was written since the last check and a transaction that would write does not begin
// within limit. It is false for a nil *writeCheck. It must not be called concurrently.
func (w *writeCheck) stuck(ctx context.Context, url string, limit time.Duration) bool {
	if w == nil {
		return false
	}
	now, err := os.Stat(w.log)
	before := w.seen
	if w.seen = now; err != nil || before == nil || !sameLog(before, now) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return w.begin(ctx, url) != nil && ctx.Err() == context.DeadlineExceeded
}

func sameLog(before, now os.FileInfo) bool {
	return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

// begin begins a transaction that would write, and rolls it back. sqld 0.24 accepts a token that may only read for
// this. If it is told that the database is locked, it tries again on the same connection, so that its place in the
// queue of writers is not left to a closed connection; see restartHung.
func (w *writeCheck) begin(ctx context.Context, url string) error {
	token := ""
	if w.key != nil {
		var err error
		if token, err = libsql.SignToken(w.key, map[string]any{"a": "ro", "exp": time.Now().Add(tokenLife).Unix()}); err != nil {
			return err
		}
	}
	db, err := libsql.Open(url, token)
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		if err == nil {
			_, err = conn.ExecContext(ctx, "ROLLBACK")
			return err
		}
		if !strings.Contains(err.Error(), "database is locked") {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(busyPause):
		}
	}
}
