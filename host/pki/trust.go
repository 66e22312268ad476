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

// ErrKeptElsewhere is returned by Create when the folder holds an authority without its key, as at an edge,
// or when ca.key is kept elsewhere.
var ErrKeptElsewhere = errors.New("the folder holds an authority, ca.crt, whose key is elsewhere: make the keys in another folder")

// ErrName is returned for a machine's name that can't name its files.
var ErrName = errors.New("a machine's name must do as the name of its files, and not be one of the folder's own: ca, registry, access, registry-replica, access-replica")

// ErrLife is returned for a token that would have ended already.
var ErrLife = errors.New("a token must be good for some time")

// Databases are the replicated databases: each has one key pair for its primary's tokens and one for
// its replicas' tokens.
var Databases = []string{"registry", "access"}

const (
	keyBlock    = "PRIVATE KEY"
	publicBlock = "PUBLIC KEY"
	certBlock   = "CERTIFICATE"
)

// SigningKeys are the files that make tokens and certificates. Only regedge trust reads them.
var SigningKeys = []string{"ca.key", "registry.key", "access.key", "registry-replica.key", "access-replica.key"}

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
	if _, err := os.Stat(t.AuthorityFile()); err == nil {
		return nil, fmt.Errorf("make trust in %s: %w", dir, ErrKeptElsewhere)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make trust: %w", err)
	}
	for _, database := range Databases {
		if err := t.newKeyPair(database); err != nil {
			return nil, fmt.Errorf("make key of the %s database: %w", database, err)
		}
	}
	if _, err := t.AddReplicaKeys(); err != nil {
		return nil, err
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

// PrimaryKeyFile is the file for --auth-jwt-key-file of a database's primary: the public key of the
// tokens that write.
func (t *Trust) PrimaryKeyFile(database string) string { return t.path(database + ".pub") }

// ReplicaKeyFile is the file for --auth-jwt-key-file of a database's replicas: the public key of the
// read-only tokens. The primary must not accept those: even a read takes locks there.
func (t *Trust) ReplicaKeyFile(database string) string { return t.path(replicaKey(database) + ".pub") }

// replicaKey is the name of the key pair of a database's replicas.
func replicaKey(database string) string { return database + "-replica" }

// AddReplicaKeys makes the key pairs of the replicas that the folder does not hold, and reports whether
// any was missing.
func (t *Trust) AddReplicaKeys() (added bool, err error) {
	for _, database := range Databases {
		name := replicaKey(database)
		if _, err := os.Stat(t.path(name + ".key")); err == nil {
			continue
		}
		if err := t.newKeyPair(name); err != nil {
			return added, fmt.Errorf("make key of the %s database's replicas: %w", database, err)
		}
		added = true
	}
	return added, nil
}

// AuthorityFile is the certificate of the authority.
func (t *Trust) AuthorityFile() string { return t.path("ca.crt") }

func (t *Trust) newKeyPair(name string) error {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	if err := t.writeKey(name+".key", private); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return err
	}
	return t.write(name+".pub", publicBlock, der, 0o644)
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

// Right is the access that a token allows.
type Right string

// The rights, as sqld writes them. ReadOnly is valid only at replicas, ReadWrite only at the primary.
const (
	ReadOnly  Right = "ro"
	ReadWrite Right = "rw"
)

// ErrNoReplicaKey is returned by Token when the folder was made before replicas had keys of their own.
var ErrNoReplicaKey = errors.New("the folder holds no key of the replicas' tokens")

// Token makes a JSON Web Token (RFC 7519, signed with Ed25519) for the primary of a database, or for
// its replicas. It expires after life; with a life of 0 it is valid until the key pair is
// replaced. It returns ErrLife for a negative one.
func (t *Trust) Token(database string, right Right, life time.Duration) (string, error) {
	if life < 0 {
		return "", fmt.Errorf("make token for the %s database: %w, not %v", database, ErrLife, life)
	}
	name := database
	if right == ReadOnly {
		name = replicaKey(database)
	}
	der, err := t.read(name+".key", keyBlock)
	if errors.Is(err, fs.ErrNotExist) && right == ReadOnly {
		err = ErrNoReplicaKey
	}
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
