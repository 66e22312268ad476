package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"regedge/host/server"
)

// exposure are the flags of an API that carries tokens: beyond this machine it is served
// with TLS only.
type exposure struct {
	TLSCert   string `type:"path" placeholder:"FILE" help:"Certificate chain, PEM. It is read again when it changes."`
	TLSKey    string `type:"path" placeholder:"FILE" help:"Key of the certificate, PEM."`
	BehindTLS bool   `name:"behind-tls" help:"A proxy in front of this address speaks TLS: plain HTTP beyond this machine is meant."`
}

func (e *exposure) check(address string) error {
	if (e.TLSCert == "") != (e.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if e.TLSCert == "" && !e.BehindTLS && !isLoopback(address) {
		return fmt.Errorf("%s is reached from other machines, and tokens go over it: give --tls-cert and --tls-key, or say --behind-tls", address)
	}
	return nil
}

// isLoopback reports whether an address to listen on stays within this machine. A name
// other than localhost may not.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// secure wraps a listener in TLS when there is a certificate.
func (e *exposure) secure(listener net.Listener) (net.Listener, error) {
	if e.TLSCert == "" {
		return listener, nil
	}
	config, err := readTLS(e.TLSCert, e.TLSKey)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	config.NextProtos = []string{"http/1.1"}
	return tls.NewListener(listener, config), nil
}

// readTLS reads a certificate and its key.
func readTLS(certFile, keyFile string) (*tls.Config, error) {
	config, err := server.NewTLS(certFile, keyFile, time.Now)
	if errors.Is(err, fs.ErrPermission) {
		return nil, withHint(err, "the user that runs regedge must be able to read the certificate and its key")
	}
	if err != nil {
		return nil, withHint(err, "--tls-cert is a chain in PEM, --tls-key the key that belongs to its first certificate")
	}
	return config, nil
}

// listenTo takes the address of an API.
func (e *exposure) listenTo(m *Main, name, address string) (net.Listener, error) {
	listener, err := m.listen(name, "--listen", address)
	if err != nil {
		return nil, err
	}
	return e.secure(listener)
}
