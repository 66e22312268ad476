package dashboard

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/argon2"
)

const (
	// hashPlaces bounds how many requests wait for the lane, the one in it included.
	hashPlaces = 16
	// hashTimeout is how long a request waits for the lane.
	hashTimeout = 5 * time.Second
)

// errBusy says that too many wait for the hashing lane.
var errBusy = errors.New("too many sign-ins at once")

// lane computes one hash at a time, so that a crowd at the sign-in takes at most 64 MiB and one core
// from the lookups and the writer beside it.
type lane struct {
	places chan struct{} // taken by those that wait and the one that computes
	one    chan struct{}
}

func newLane() *lane {
	return &lane{places: make(chan struct{}, hashPlaces), one: make(chan struct{}, 1)}
}

// turn is a request's place in the lane's queue. Hashing needs one.
type turn struct {
	of *passwords
}

// enter takes a place, or returns errBusy at once. It comes before anything expensive, such as counting
// the attempt in the ledger. leave gives the place back.
func (p *passwords) enter() (*turn, error) {
	select {
	case p.lane.places <- struct{}{}:
		return &turn{p}, nil
	default:
		return nil, errBusy
	}
}

func (t *turn) leave() { <-t.of.lane.places }

// hash is the stored form of a password: argon2id with its parameters and salt.
func (t *turn) hash(ctx context.Context, password string) (string, error) {
	p := t.of
	salt := make([]byte, saltBytes)
	p.random(salt)
	hash, err := t.compute(ctx, password, salt, p.cost, hashBytes)
	if err != nil {
		return "", err
	}
	return encodeHash(p.cost, salt, hash), nil
}

// matches compares a password with its stored form. An unreadable stored form matches nothing.
func (t *turn) matches(ctx context.Context, stored, password string) (bool, error) {
	c, salt, want, err := decodeHash(stored)
	if err != nil {
		return false, fmt.Errorf("read stored password: %w", err)
	}
	got, err := t.compute(ctx, password, salt, c, uint32(len(want)))
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

func (t *turn) compute(ctx context.Context, password string, salt []byte, c cost, length uint32) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, hashTimeout)
	defer cancel()
	select {
	case t.of.lane.one <- struct{}{}:
	case <-ctx.Done():
		return nil, errBusy
	}
	defer func() { <-t.of.lane.one }()
	t.of.computed.Add(1)
	return argon2.IDKey([]byte(password), salt, c.passes, c.memoryKiB, c.lanes, length), nil
}
