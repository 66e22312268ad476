package main

import (
	"crypto/tls"
	"net"
)

// front is what a node that serves lookups shows to the world.
type front struct {
	lookups net.Listener
	metrics net.Listener // nil without --metrics
	tls     *tls.Config  // nil for plain HTTP
}

// open takes the addresses and reads the certificate. It is the first thing that a
// command does, so that it fails before it has begun anything.
func (s *serving) open(m *Main, closers *closing) (f front, err error) {
	if s.TLSCert != "" {
		if f.tls, err = readTLS(s.TLSCert, s.TLSKey); err != nil {
			return f, err
		}
	}
	if f.lookups, err = m.listen("lookups", "--listen", s.Listen); err != nil {
		return f, err
	}
	closers.add(ignoreClosed(f.lookups))
	f.metrics, err = m.listenForMetrics(s.Metrics, closers)
	return f, err
}

// needDocsURL is said when clients elsewhere are told of pages that they can't reach.
const needDocsURL = "clients on other machines can't follow the links in errors: --docs-url says where they reach this node"

func (s *serving) needsDocsURL(addr net.Addr) bool { return s.DocsURL == "" && everywhere(addr) }

func (s *serving) docsURL(addr net.Addr) string {
	if s.DocsURL != "" {
		return s.DocsURL
	}
	return s.url(addr)
}

// url is the address of the lookups as a client on this machine would write it.
func (s *serving) url(addr net.Addr) string {
	return word(s.TLSCert == "", "http", "https") + "://" + reached(addr)
}

// reached is how this machine reaches what listens on addr: an address that stands for
// all of its addresses can't be asked for.
func reached(addr net.Addr) string {
	if !everywhere(addr) {
		return addr.String()
	}
	_, port, _ := net.SplitHostPort(addr.String())
	return net.JoinHostPort("127.0.0.1", port)
}

func everywhere(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsUnspecified()
}
