package sqld

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// The layout of sqld's log and of its databases.
const (
	logMagic = "SQLDWAL\x00"
	// logHeader is the length of a log's header: its magic, the checksum before its first frame, the log's id (16
	// bytes), the numbers of the first frame and of frames, a version and the size of pages (4 bytes each), and the
	// server's version. Fields without a size have 8 bytes.
	logHeader  = 64
	logVersion = 2
	pageSize   = 4096
	// frameHeader is the length of a frame's header: its number, its checksum, the numbers of its page and of the
	// database's pages.
	frameHeader = 24
	// positionSize is the length of a replica's position: the log's id (16 bytes), the number of the last frame that it
	// has (8 bytes), and nothing.
	positionSize = 32
)

// serverVersion is in the logs that we begin, as in those of sqld 0.24.
var serverVersion = [4]uint16{0, 0, 24, 32}

// logID is the id of a log: a UUID, its bytes in the order of sqld's files, as a little-endian number.
type logID [16]byte

// newLogID returns an id of version 8 (RFC 9562, section 5.8), which tells our logs from sqld's own, whose ids are of
// version 4.
func newLogID() (id logID) {
	rand.Read(id[:]) // never fails
	id[9] = id[9]&0x0f | 0x80
	id[7] = id[7]&0x3f | 0x80
	return id
}

// ours reports whether we began the log, at a base.
func (id logID) ours() bool { return id[9]>>4 == 8 }

// String is the id in hexadecimal digits.
func (id logID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id logID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *logID) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(id)) {
		return errors.New("a log's id has 32 digits")
	}
	_, err := hex.Decode(id[:], text)
	return err
}

// beginning is where a log begins.
type beginning struct {
	ID    logID
	First uint64 // number of its first frame, at least 1: 0 is what a replica asks for that has nothing
}

// writeLog begins a primary's log, without a frame.
func writeLog(path string, l beginning) error {
	header := make([]byte, 0, logHeader)
	header = append(header, logMagic...)
	header = binary.LittleEndian.AppendUint64(header, 0)
	header = append(header, l.ID[:]...)
	header = binary.LittleEndian.AppendUint64(header, l.First)
	header = binary.LittleEndian.AppendUint64(header, 0)
	header = binary.LittleEndian.AppendUint32(header, logVersion)
	header = binary.LittleEndian.AppendUint32(header, pageSize)
	for _, part := range serverVersion {
		header = binary.LittleEndian.AppendUint16(header, part)
	}
	return writeSynced(path, header)
}

// readLog returns the id of a primary's log, and the number of the next frame. It fails for a file that is missing or
// no log. Earlier frames may be in snapshots.
func readLog(path string) (id logID, next uint64, err error) {
	header, err := readStart(path, logHeader)
	if err != nil {
		return id, 0, err
	}
	if string(header[:len(logMagic)]) != logMagic {
		return id, 0, fmt.Errorf("%s is not a log", path)
	}
	copy(id[:], header[16:])
	return id, binary.LittleEndian.Uint64(header[32:]) + binary.LittleEndian.Uint64(header[40:]), nil
}

// endsWithACommit reports whether a primary's log has exactly the frames that it counts. sqld writes frames first, then
// commits to the database, and only then counts them.
func endsWithACommit(path string) (bool, error) {
	header, err := readStart(path, logHeader)
	if err != nil {
		return false, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return info.Size() == logHeader+int64(binary.LittleEndian.Uint64(header[40:]))*(frameHeader+pageSize), nil
}

// writePosition marks a replica's database as having all frames before the first one of a log.
func writePosition(path string, l beginning) error {
	position := make([]byte, positionSize)
	copy(position, l.ID[:])
	binary.LittleEndian.PutUint64(position[len(l.ID):], l.First-1)
	return writeSynced(path, position)
}

// readPosition returns the log that a replica follows. It fails if the replica has not followed one yet.
func readPosition(path string) (id logID, err error) {
	text, err := readStart(path, len(id))
	if err == nil {
		copy(id[:], text)
	}
	return id, err
}

// readStart reads so many bytes, or fails.
func readStart(path string, bytes int) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text := make([]byte, bytes)
	_, err = io.ReadFull(file, text)
	return text, err
}

func writeSynced(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
