package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Missing lists the signing keys that the folder does not hold.
func (t *Trust) Missing() []string {
	return slices.DeleteFunc(slices.Clone(SigningKeys), t.holds)
}

func (t *Trust) holds(name string) bool {
	_, err := os.Stat(t.path(name))
	return !errors.Is(err, fs.ErrNotExist)
}

// AddPublic makes the files that can be derived from the folder's signing keys and are missing: public keys,
// and the authority's certificate, which existing machines' certificates still match. It returns the names
// of these files.
func (t *Trust) AddPublic() (added []string, err error) {
	err = t.alone(func() error {
		added, err = t.addMissing()
		return err
	})
	return added, err
}

func (t *Trust) addMissing() (added []string, err error) {
	for _, name := range SigningKeys {
		public := strings.TrimSuffix(name, ".key") + ".pub"
		if name == "ca.key" {
			public = "ca.crt"
		}
		if t.holds(public) || !t.holds(name) {
			continue
		}
		if err := t.addPublic(public, name); err != nil {
			return added, fmt.Errorf("make %s of %s: %w", public, name, err)
		}
		added = append(added, public)
	}
	return added, nil
}

func (t *Trust) addPublic(public, name string) error {
	der, err := t.read(name, keyBlock)
	if err != nil {
		return err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return err
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return errors.New("the key can't sign")
	}
	f := pemFile{name: public, block: publicBlock, mode: 0o644}
	if public == "ca.crt" {
		f.block = certBlock
		f.der, err = t.signAuthority(key)
	} else {
		f.der, err = x509.MarshalPKIXPublicKey(key.Public())
	}
	if err != nil {
		return err
	}
	if err := f.write(t.path(public) + partial); err != nil {
		return err
	}
	return os.Rename(t.path(public)+partial, t.path(public))
}

// signAuthority makes the authority's certificate for its key.
func (t *Trust) signAuthority(key crypto.Signer) ([]byte, error) {
	template, err := t.template("regedge replication", authorityLife)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	return x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
}
