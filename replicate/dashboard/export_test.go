package dashboard

import "golang.org/x/crypto/argon2"

// Hashes is how many hashes of passwords were computed.
func (d *Dashboard) Hashes() int64 { return d.passwords.computed.Load() }

// CheapPasswords makes hashes cost next to nothing: what is tested is when they are made.
func (d *Dashboard) CheapPasswords() {
	d.passwords = newPasswords(d.config.Random, cost{memoryKiB: 64, passes: 1, lanes: 1})
}

// DearPasswords makes hashes cost what they do in use.
func (d *Dashboard) DearPasswords() { d.passwords = newPasswords(d.config.Random, standardCost) }

// HashAt is the stored form of a password at another cost.
func (d *Dashboard) HashAt(password string, passes, memoryKiB uint32, lanes uint8) string {
	salt := []byte("a salt for tests")
	c := cost{memoryKiB: memoryKiB, passes: passes, lanes: lanes}
	return encodeHash(c, salt, argon2.IDKey([]byte(password), salt, passes, memoryKiB, lanes, hashBytes))
}
