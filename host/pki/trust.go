package pki

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ErrExists is returned by Create when the folder already holds keys.
var ErrExists = errors.New("the folder holds keys already")

// Databases are the replicated databases: each has a key pair.
var Databases = []string{"registry", "access"}

const (
	keyBlock    = "PRIVATE KEY"
	publicBlock = "PUBLIC KEY"
	certBlock   = "CERTIFICATE"
)

// SigningKeys are the files that make tokens and certificates. Only regedge trust reads them.
var SigningKeys = []string{"ca.key", "registry.key", "access.key"}

// Trust is the folder with a cluster's keys.
type Trust struct {
	dir string
	now func() time.Time
}

// Create makes the keys and the authority in dir, which must not hold any.
func Create(dir string, now func() time.Time) (*Trust, error) {
	t := &Trust{dir, now}
	if _, err := os.Stat(t.path("ca.key")); err == nil {
		return nil, fmt.Errorf("make trust in %s: %w", dir, ErrExists)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make trust: %w", err)
	}
	for _, database := range Databases {
		if err := t.newDatabaseKey(database); err != nil {
			return nil, fmt.Errorf("make key of the %s database: %w", database, err)
		}
	}
	if err := t.newAuthority(); err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	return t, nil
}

// Open opens a folder that Create made.
func Open(dir string, now func() time.Time) (*Trust, error) {
	t := &Trust{dir, now}
	if _, err := os.Stat(t.path("ca.key")); err != nil {
		return nil, fmt.Errorf("open trust: %w", err)
	}
	return t, nil
}

func (t *Trust) path(name string) string { return filepath.Join(t.dir, name) }

// PublicKeyFile is the file for --auth-jwt-key-file of a database's servers.
func (t *Trust) PublicKeyFile(database string) string { return t.path(database + ".pub") }

// AuthorityFile is the certificate of the authority.
func (t *Trust) AuthorityFile() string { return t.path("ca.crt") }

func (t *Trust) newDatabaseKey(database string) error {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	if err := t.writeKey(database+".key", private); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return err
	}
	return t.write(database+".pub", publicBlock, der, 0o644)
}

func (t *Trust) writeKey(name string, key any) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return t.write(name, keyBlock, der, 0o600)
}

func (t *Trust) write(name, block string, der []byte, mode fs.FileMode) error {
	return os.WriteFile(t.path(name), pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}), mode)
}

// read reads the one block of a PEM file.
func (t *Trust) read(name, block string) ([]byte, error) {
	text, err := os.ReadFile(t.path(name))
	if err != nil {
		return nil, err
	}
	found, _ := pem.Decode(text)
	if found == nil || found.Type != block {
		return nil, fmt.Errorf("%s holds no %s", name, block)
	}
	return found.Bytes, nil
}

// Right is what a token allows.
type Right string

// The rights, as sqld writes them.
const (
	ReadOnly  Right = "ro"
	ReadWrite Right = "rw"
)

// Token makes a JSON Web Token (RFC 7519, signed with Ed25519) for the servers of a
// database. It expires after life; with a life of 0 it is valid until the key pair is
// replaced.
func (t *Trust) Token(database string, right Right, life time.Duration) (string, error) {
	der, err := t.read(database+".key", keyBlock)
	if err != nil {
		return "", fmt.Errorf("make token for the %s database: %w", database, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return "", fmt.Errorf("make token for the %s database: %w", database, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return "", fmt.Errorf("make token for the %s database: its key is not of Ed25519", database)
	}
	claims := map[string]any{"a": right, "iat": t.now().Unix()}
	if life > 0 {
		claims["exp"] = t.now().Add(life).Unix()
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"EdDSA","typ":"JWT"}`)) + "." + encode(payload)
	return signed + "." + encode(ed25519.Sign(key, []byte(signed))), nil
}
