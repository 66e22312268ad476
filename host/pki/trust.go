package pki

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"regedge/replicate/registry/libsql"
)

// ErrExists is returned by Create when the folder already holds keys.
var ErrExists = errors.New("the folder holds keys already")

// ErrMeanwhile is returned by Create and Replace when another run made or replaced the keys after this one began.
var ErrMeanwhile = errors.New("another run has just made the keys: use them, or look who else makes keys here before you run this again")

// ErrBusy is returned when another run has been making keys or certificates in the folder for longer than that takes.
var ErrBusy = errors.New("another run that makes keys or certificates there does not end: see with ps whether it was stopped, and end it")

// ErrKeptElsewhere is returned by Create when the folder holds an authority without its key, as at an edge,
// or when ca.key is kept elsewhere.
var ErrKeptElsewhere = errors.New("the folder holds an authority, ca.crt, whose key is elsewhere: make the keys in another folder")

// ErrKeyMissing is returned by Create when the folder holds a public key without its private key.
var ErrKeyMissing = errors.New("is there without its private key: put that back from a copy, or make the keys in another folder")

// ErrName is returned for a machine's name that can't name its files.
var ErrName = errors.New("a machine's name must do as the name of its files, and not be one of the folder's own: ca, registry, access, registry-replica, access-replica")

// ErrHost is returned for a host that is neither a name nor an address.
var ErrHost = errors.New("a host is a name, such as centre.example.org, or an address, without scheme and port")

// ErrHostless is returned when a certificate with hosts would be replaced by one without.
var ErrHostless = errors.New("the certificate that is there has hosts, and the new one would have none")

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
	dir  string
	now  func() time.Time
	link bool // made by Link: its certificates never expire
	// opened is the folder that Open found, nil after Create.
	opened os.FileInfo
}

// Create makes the keys and the authority in dir, which must hold no authority yet. A database's key pair that is there
// already, from a killed run or a copy, is kept: its tokens are in use.
func Create(dir string, now func() time.Time) (*Trust, error) {
	t := &Trust{dir: dir, now: now}
	_, absent := os.Stat(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make trust: %w", err)
	}
	before := t.holds("ca.key")
	found, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("make trust: %w", err)
	}
	if err := t.alone(t.create); err != nil {
		if errors.Is(err, ErrExists) && !(before && t.isIn(found)) {
			err = fmt.Errorf("%w: %w", err, ErrMeanwhile)
		}
		return nil, err
	}
	if absent != nil {
		if err := syncFolder(filepath.Dir(dir)); err != nil {
			return nil, fmt.Errorf("make trust: %w", err)
		}
	}
	return t, nil
}

// isIn reports whether a folder is still the one of the keys.
func (t *Trust) isIn(folder os.FileInfo) bool {
	now, err := os.Stat(t.dir)
	return err == nil && os.SameFile(folder, now)
}

// create is Create in a folder that is there, and locked.
func (t *Trust) create() error {
	if _, err := os.Stat(t.path("ca.key")); err == nil {
		return fmt.Errorf("make trust in %s: %w", t.dir, ErrExists)
	}
	if _, err := os.Stat(t.AuthorityFile()); err == nil {
		return fmt.Errorf("make trust in %s: %w", t.dir, ErrKeptElsewhere)
	}
	for _, database := range Databases {
		switch {
		case t.holds(database + ".key"):
			continue
		case t.holds(database + ".pub"):
			return fmt.Errorf("make trust in %s: %s.pub %w", t.dir, database, ErrKeyMissing)
		}
		if err := t.newKeyPair(database); err != nil {
			return fmt.Errorf("make key of the %s database: %w", database, err)
		}
	}
	if _, err := t.addReplicaKeys(); err != nil {
		return err
	}
	if _, err := t.addMissing(); err != nil {
		return err
	}
	if err := t.newAuthority(); err != nil {
		return fmt.Errorf("make authority: %w", err)
	}
	return nil
}

// Open opens a folder that Create made.
func Open(dir string, now func() time.Time) (*Trust, error) {
	t := &Trust{dir: dir, now: now}
	if _, err := os.Stat(t.path("ca.key")); err != nil {
		return nil, fmt.Errorf("open trust: %w", err)
	}
	var err error
	if t.opened, err = os.Stat(dir); err != nil {
		return nil, fmt.Errorf("open trust: %w", err)
	}
	return t, nil
}

// Machines lists the machines for which the folder holds certificates.
func (t *Trust) Machines() (names []string, err error) {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return nil, fmt.Errorf("list trust: %w", err)
	}
	for _, entry := range entries {
		if name, found := strings.CutSuffix(entry.Name(), ".crt"); found && name != "ca" {
			names = append(names, name)
		}
	}
	return names, nil
}

// Aside is the path to which Replace moves the old folder. It is beside the folder itself, since a symbolic link may
// lead to another disk.
func (t *Trust) Aside() string {
	dir, err := filepath.EvalSymlinks(t.dir)
	if err != nil {
		dir = filepath.Clean(t.dir)
	}
	return dir + ".replaced-" + t.now().UTC().Format("20060102T150405Z")
}

// Replace puts a folder with new keys and a new authority in place of the old one, which it renames to aside. After an
// error the old folder is back in its place, or at aside if the error says so. It returns ErrMeanwhile if the folder is
// another than Open found.
func (t *Trust) Replace(aside string) (*Trust, error) {
	if err := t.alone(func() error { return t.replace(aside) }); err != nil {
		return nil, fmt.Errorf("replace trust: %w", err)
	}
	return Open(t.dir, t.now)
}

func (t *Trust) replace(aside string) error {
	about, err := os.Stat(t.dir)
	if err != nil {
		return err
	}
	if t.opened != nil && !t.isIn(t.opened) {
		return ErrMeanwhile
	}
	dir, err := filepath.EvalSymlinks(t.dir)
	if err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh) // does nothing once fresh was renamed
	if _, err := Create(fresh, t.now); err != nil {
		return err
	}
	if err := os.Chmod(fresh, about.Mode().Perm()); err != nil {
		return err
	}
	if err := os.Rename(dir, aside); err != nil {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		if back := os.Rename(aside, dir); back != nil {
			err = fmt.Errorf("%w; its files are in %s", err, aside)
		}
		return err
	}
	if err := syncFolder(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("%w; the files before are in %s", err, aside)
	}
	return nil
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
	err = t.alone(func() error {
		added, err = t.addReplicaKeys()
		return err
	})
	return added, err
}

func (t *Trust) addReplicaKeys() (added bool, err error) {
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
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return err
	}
	return t.writePair(name+".key", private, pemFile{name + ".pub", publicBlock, der, 0o644})
}

// pemFile is a file with one PEM block, to be written.
type pemFile struct {
	name, block string
	der         []byte
	mode        fs.FileMode
}

// partial ends the name of a file that is not whole yet.
const partial = ".partial"

// writePair writes a key and the file that belongs to it. Both replace the old ones only once both are on disk, so that
// a full disk leaves the old pair.
func (t *Trust) writePair(name string, key any, of pemFile) (err error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	var paths []string
	defer func() {
		for _, path := range paths {
			if err != nil {
				os.Remove(path + partial)
			}
		}
	}()
	for _, f := range []pemFile{{name, keyBlock, der, 0o600}, of} {
		path, err := linked(t.path(f.name))
		if err != nil {
			return err
		}
		paths = append(paths, path)
		if err := f.write(path + partial); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if err := os.Rename(path+partial, path); err != nil {
			return err
		}
	}
	return nil
}

// linked returns the target of a symbolic link, so that writing keeps the link; or path itself if it is none.
func linked(path string) (string, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return filepath.EvalSymlinks(path)
}

// write writes a new file to disk.
func (f *pemFile) write(path string) (err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a run that was killed
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pem.Encode(file, &pem.Block{Type: f.block, Bytes: f.der}); err != nil {
		return err
	}
	return file.Sync()
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
	return libsql.SignToken(key, claims)
}
