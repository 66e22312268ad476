package syncproto

import (
	"errors"
	"fmt"
)

const (
	// Version is the version of the messages that this program writes.
	Version = 1
	// newest is the newest version that it reads. A version adds fields only at the end of a message,
	// and puts no values before them that the previous version does not know. So a program can read a
	// message that is one version newer, and skip the end.
	newest = Version + 1
)

// The kinds of messages. The first byte of a message is the version in the upper four bits and
// the kind in the lower four.
const (
	kindHello byte = iota + 1
	kindSync
	kindReply
)

// ErrVersion is returned for a message of a version that this program can't read. The older of
// the two sides has to be upgraded.
var ErrVersion = errors.New("the other side speaks another version of the sync protocol")

// head is the first byte of a message that this program writes.
func head(kind byte) byte { return Version<<4 | kind }

// readHead reads the first byte of a message. newer says that the next version wrote it.
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

// skipRest skips what a newer version added.
func (d *Decoder) skipRest() {
	if !d.failed {
		d.rest = nil
	}
}
