package pki

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ReadLink makes a key pair for a single token with which one process on this machine reads another's
// libSQL server. It writes the public key into dir and keeps the private one nowhere.
func ReadLink(dir string, now func() time.Time) (keyFile, token string, err error) {
	t := &Trust{dir: dir, now: now}
	name := replicaKey("reads")
	if err = os.MkdirAll(dir, 0o700); err == nil {
		if err = t.newKeyPair(name); err == nil {
			token, err = t.Token("reads", ReadOnly, 0)
		}
	}
	if gone := os.Remove(t.path(name + ".key")); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err != nil {
		return "", "", fmt.Errorf("make the key of a link: %w", err)
	}
	return filepath.Join(dir, name+".pub"), token, nil
}

// Verifier returns a function that reports whether a token is signed with one of the keys in a file, as
// ReplicaKeyFile names it, and has not ended. The file may hold several keys.
func Verifier(file string, now func() time.Time) (func(token string) bool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read public key: %w", err)
	}
	var keys []ed25519.PublicKey
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		key, ok := parsed.(ed25519.PublicKey)
		if err != nil || !ok {
			return nil, fmt.Errorf("read public key %s: a key is not of Ed25519", file)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s holds no public key", file)
	}
	return func(token string) bool {
		parts := strings.Split(token, ".")
		if len(parts) != 3 {
			return false
		}
		signature, err := base64.RawURLEncoding.DecodeString(parts[2])
		if err != nil {
			return false
		}
		if end, ends := Ends(token); ends && !end.After(now()) {
			return false
		}
		for _, key := range keys {
			if ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), signature) {
				return true
			}
		}
		return false
	}, nil
}
