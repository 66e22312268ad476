package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// authorityLife is longer than any machine stays in use.
	authorityLife = 20 * 365 * 24 * time.Hour
	// certificateLife is how long a machine's certificate is valid.
	certificateLife = 2 * 365 * 24 * time.Hour
	// clockSkew lets a machine whose clock is behind use a new certificate.
	clockSkew = time.Hour
	// serverName is the name that an sqld replica verifies in its primary's certificate,
	// whatever address it connects to.
	serverName = "sqld"
)

// A link's certificates are valid at any time. They are made at a process's start, when the clock may still be wrong by
// hours, as after a boot without NTP, and nobody makes others until the process starts again.
var (
	always = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	never  = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC) // RFC 5280, section 4.1.2.5
)

// newAuthority makes the authority's key and certificate.
func (t *Trust) newAuthority() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := t.signAuthority(key)
	if err != nil {
		return err
	}
	return t.writePair("ca.key", key, pemFile{"ca.crt", certBlock, der, 0o644})
}

func (t *Trust) template(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	begins, ends := always, never
	if !t.link {
		begins, ends = t.now().Add(-clockSkew), t.now().Add(life)
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: begins, NotAfter: ends}, nil
}

// Certificate makes NAME.crt and NAME.key in the folder, replacing older ones, and returns
// their paths. hosts are the names and addresses at which a primary is reached; an edge,
// which only connects, has none. It returns ErrName for a name that is not a valid file name, or
// whose files are the folder's own where upper and lower case are one, ErrHost for a host that is none, and ErrHostless when the certificate
// that is there has hosts and the new one would have none: replicas could no longer verify the primary.
func (t *Trust) Certificate(name string, hosts ...string) (cert, key string, err error) {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") || slices.Contains(SigningKeys, strings.ToLower(name)+".key") {
		return "", "", fmt.Errorf("make certificate of %q: %w", name, ErrName)
	}
	err = t.alone(func() error {
		if err := t.checkHosts(name, hosts); err != nil {
			return err
		}
		return t.certify(name, hosts)
	})
	if err != nil {
		return "", "", fmt.Errorf("make certificate of %s: %w", name, err)
	}
	return t.path(name + ".crt"), t.path(name + ".key"), nil
}

// Link makes, in dir, an authority with a single certificate for both ends of a connection within this machine. It
// replaces what dir held, never expires, and is made anew at each start. The authority's key is deleted, so that nobody
// gets another certificate.
func Link(dir string) (authority, cert, key string, err error) {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return "", "", "", fmt.Errorf("make certificates of a link: %w", err)
	}
	t := &Trust{dir: dir, link: true}
	if err := t.newAuthority(); err != nil {
		return "", "", "", fmt.Errorf("make certificates of a link: %w", err)
	}
	cert, key, err = t.Certificate("link", "127.0.0.1")
	return t.AuthorityFile(), cert, key, errors.Join(err, os.Remove(t.path("ca.key")))
}

func (t *Trust) certify(name string, hosts []string) error {
	template, err := t.template(name, certificateLife)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.DNSNames = append(template.DNSNames, serverName)
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	authority, authorityKey, err := t.authority()
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), authorityKey)
	if err != nil {
		return err
	}
	return t.writePair(name+".key", key, pemFile{name + ".crt", certBlock, der, 0o644})
}

// Hosts returns the names and addresses of a machine's certificate, as Certificate took them; none when there is
// no certificate.
func (t *Trust) Hosts(name string) ([]string, error) {
	der, err := t.read(name+".crt", certBlock)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	hosts := slices.DeleteFunc(slices.Clone(cert.DNSNames), func(host string) bool { return host == serverName })
	for _, address := range cert.IPAddresses {
		hosts = append(hosts, address.String())
	}
	return hosts, nil
}

// hostName is a name that a certificate may have, also of one label.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

func (t *Trust) checkHosts(name string, hosts []string) error {
	for _, host := range hosts {
		if net.ParseIP(host) == nil && !hostName.MatchString(host) {
			return fmt.Errorf("%w: got %q", ErrHost, host)
		}
	}
	if len(hosts) > 0 {
		return nil
	}
	if before, err := t.Hosts(name); err == nil && len(before) > 0 { // one that can't be read is replaced
		return fmt.Errorf("%w: %s", ErrHostless, strings.Join(before, ", "))
	}
	return nil
}

func (t *Trust) authority() (*x509.Certificate, any, error) {
	der, err := t.read("ca.crt", certBlock)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	if der, err = t.read("ca.key", keyBlock); err != nil {
		return nil, nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	return cert, key, err
}
