package server

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificateCheckInterval is the minimum time between checks of the files. A renewed certificate is
// used within a minute, without a restart.
const certificateCheckInterval = time.Minute

// NewTLS reads a certificate chain and its key, in PEM. The configuration reloads them when the
// certificate's file changes. If they cannot be read then, the earlier certificate stays in use.
func NewTLS(certFile, keyFile string, now func() time.Time) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, now: now}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("read TLS certificate: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

type certificate struct {
	certFile, keyFile string
	now               func() time.Time

	mu       sync.Mutex
	current  *tls.Certificate
	modified time.Time // of the certificate's file
	checked  time.Time
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Sub(c.checked) >= certificateCheckInterval {
		c.load() // on failure, keep the current one
	}
	return c.current, nil
}

// load reads the files if the certificate's has changed.
func (c *certificate) load() error {
	c.checked = c.now()
	info, err := os.Stat(c.certFile)
	if err != nil {
		return err
	}
	if c.current != nil && info.ModTime().Equal(c.modified) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.current, c.modified = &pair, info.ModTime()
	return nil
}
