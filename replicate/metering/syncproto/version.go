package syncproto

import (
	"errors"
	"fmt"
)

const (
	// Version is of the messages that this program writes.
	Version = 1
	// newest is the newest that it reads. A version adds what it has to say at the end of
	// a message, and puts nothing before it that the version before does not know: so a
	// program reads what it knows of a message one version newer, and passes over the rest.
	newest = Version + 1
)

// The kinds of messages. The first byte of a message is its version and its kind, of four
// bits each.
const (
	kindHello byte = iota + 1
	kindSync
	kindReply
)

// ErrVersion is returned for a message of a version that this program can't read: one of
// the two sides has to be upgraded.
var ErrVersion = errors.New("the other side speaks another version of the sync protocol")

// head is the first byte of a message of this program.
func head(kind byte) byte { return Version<<4 | kind }

// readHead reads the first byte of a message: its kind, and whether it comes from a newer
// program.
func (d *Decoder) readHead() (kind byte, newer bool, err error) {
	b := d.Byte()
	version := b >> 4
	switch {
	case d.Failed() || b&0xf < kindHello || b&0xf > kindReply || version == 0:
		d.Fail()
		return 0, false, ErrMalformed
	case version > newest:
		d.Fail()
		return 0, false, fmt.Errorf("%w: %d, and this one reads up to %d", ErrVersion, version, newest)
	}
	return b & 0xf, version > Version, nil
}

// skipRest passes over what a newer program added.
func (d *Decoder) skipRest() {
	if !d.failed {
		d.rest = nil
	}
}
