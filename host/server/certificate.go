package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateCheckInterval is the minimum time between checks of the files. A renewed certificate is
// used within a minute, without a restart.
const certificateCheckInterval = time.Minute

// certificatePatience is a handshake's timeout for reading the files.
const certificatePatience = time.Second

// NewTLS reads a certificate chain and its key, in PEM. The configuration reloads them when the
// certificate's file changes. If they cannot be read then, the earlier certificate stays in use, log gets
// the reason once, and they are tried again each minute.
func NewTLS(certFile, keyFile string, now func() time.Time, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, now: now, log: log, checked: now()}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("read TLS certificate: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

type certificate struct {
	certFile, keyFile string
	now               func() time.Time
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	checked time.Time
	reading bool // the files are being read

	// Owned by the reading goroutine.
	modified time.Time // of the certificate's file
	failure  string    // of the last reading
}

// get returns the certificate in use. The handshake that starts a reload waits for it,
// with a timeout, in case the disk hangs.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if read := c.reread(); read != nil {
		select {
		case <-read:
		case <-time.After(certificatePatience):
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current, nil
}

// reread starts a reload if it is due, and returns a channel that is closed at its end; else nil.
func (c *certificate) reread() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading || c.now().Sub(c.checked) < certificateCheckInterval {
		return nil
	}
	c.reading, c.checked = true, c.now()
	read := make(chan struct{})
	go func() {
		defer close(read)
		before := c.modified
		err := c.load() // on failure, the current one stays
		c.logRead(err, !c.modified.Equal(before))
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reading = false
	}()
	return read
}

// logRead logs a new certificate, and why there is none, once for each reason.
func (c *certificate) logRead(err error, renewed bool) {
	var failure string
	if err != nil {
		failure = err.Error()
	}
	switch {
	case err != nil && failure != c.failure:
		c.log.Error("the TLS certificate can't be read again: the one before stays in use until it ends", "file", c.certFile, "error", err)
	case renewed:
		c.log.Info("the TLS certificate was renewed", "file", c.certFile)
	}
	c.failure = failure
}

// load reads the files if the certificate's has changed.
func (c *certificate) load() error {
	info, err := os.Stat(c.certFile)
	if err != nil {
		return err
	}
	if info.ModTime().Equal(c.modified) {
		return nil
	}
	if key, err := os.Stat(c.keyFile); err == nil && (!info.Mode().IsRegular() || !key.Mode().IsRegular()) {
		return fmt.Errorf("%s and %s are not both files", c.certFile, c.keyFile) // opening a pipe could block
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.modified = &pair, info.ModTime()
	return nil
}
