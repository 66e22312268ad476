package dashboard

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// cost is the cost of one guess of a password.
type cost struct {
	memoryKiB, passes uint32
	lanes             uint8
}

// standardCost is the second recommended option of RFC 9106, section 4, but with one lane: the same work
// on one core leaves the others to lookups.
var standardCost = cost{memoryKiB: 64 << 10, passes: 3, lanes: 1}

// maxCost bounds what a stored hash may ask for.
var maxCost = cost{memoryKiB: 1 << 20, passes: 16, lanes: 16}

const (
	saltBytes = 16
	hashBytes = 32
)

// Bounds of a password's length, in characters. A longer one is an attack.
const minPassword, maxPassword = 12, 200

// passwords hashes and compares passwords, one at a time.
type passwords struct {
	random func([]byte)
	cost   cost // of new hashes
	lane   *lane
	// decoy is compared for an unknown e-mail address: it takes the same time and never matches.
	decoy string
	// computed counts the hashes, so that a test can see that a decoy costs one too.
	computed atomic.Int64
}

func newPasswords(random func([]byte), c cost) *passwords {
	p := &passwords{random: random, cost: c, lane: newLane()}
	var salt [saltBytes]byte
	var hash [hashBytes]byte
	random(salt[:])
	random(hash[:])
	p.decoy = encodeHash(c, salt[:], hash[:])
	return p
}

// outdated reports whether a stored form differs from new ones in its cost.
func (p *passwords) outdated(stored string) bool {
	c, _, _, err := decodeHash(stored)
	return err == nil && c != p.cost
}

const hashForm = "$argon2id$v=%d$m=%d,t=%d,p=%d$"

func encodeHash(c cost, salt, hash []byte) string {
	base := base64.RawStdEncoding
	return fmt.Sprintf(hashForm, argon2.Version, c.memoryKiB, c.passes, c.lanes) +
		base.EncodeToString(salt) + "$" + base.EncodeToString(hash)
}

var errHashForm = errors.New("not an argon2id hash")

func decodeHash(stored string) (c cost, salt, hash []byte, err error) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 {
		return c, nil, nil, errHashForm
	}
	head := strings.Join(parts[:4], "$") + "$"
	var version int
	if _, err := fmt.Sscanf(head, hashForm, &version, &c.memoryKiB, &c.passes, &c.lanes); err != nil ||
		fmt.Sprintf(hashForm, argon2.Version, c.memoryKiB, c.passes, c.lanes) != head {
		return c, nil, nil, errHashForm
	}
	if c.lanes < 1 || c.lanes > maxCost.lanes || c.passes < 1 || c.passes > maxCost.passes ||
		c.memoryKiB < 8 || c.memoryKiB > maxCost.memoryKiB {
		return c, nil, nil, errHashForm
	}
	salt, saltErr := base64.RawStdEncoding.Strict().DecodeString(parts[4])
	hash, hashErr := base64.RawStdEncoding.Strict().DecodeString(parts[5])
	if saltErr != nil || hashErr != nil || len(salt) < 8 || len(salt) > 64 || len(hash) < 16 || len(hash) > 64 {
		return c, nil, nil, errHashForm
	}
	return c, salt, hash, nil
}

// fitPassword returns why a new password of a user with this e-mail address and account is refused, or
// "". Length makes a password hard to guess; the other checks only stop the obvious.
func fitPassword(password, email, account string) string {
	length := utf8.RuneCountInString(password)
	distinct := map[rune]bool{}
	for _, c := range password {
		distinct[c] = true
	}
	name, _, _ := strings.Cut(email, "@")
	switch {
	case !utf8.ValidString(password) || length > maxPassword:
		return fmt.Sprintf("The password may have %d characters at most.", maxPassword)
	case length < minPassword:
		return fmt.Sprintf("The password needs %d characters or more. A few words in a row will do.", minPassword)
	case len(distinct) < 5:
		return "The password repeats the same few characters."
	case strings.EqualFold(password, email) || len(name) >= minPassword && strings.EqualFold(password, name):
		return "The password is the e-mail address."
	case guessable(password, email, account):
		return "This password would be guessed soon: it is a common one, a sequence, or made of your name or address."
	}
	return ""
}
