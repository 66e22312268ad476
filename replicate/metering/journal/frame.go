package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// A frame is the length of its record and a CRC-32C of length and record, 4 bytes each,
// little-endian, and the record.
const (
	frameHead = 8
	// maxRecord bounds a record in bytes, so that a damaged length does not exhaust the
	// memory. The largest record is a batch with every list full.
	maxRecord = 8 << 20
)

// errTorn is returned where a segment can't be read any further.
var errTorn = errors.New("torn record")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends the frame of a record.
func appendFrame(to, record []byte) []byte {
	at := len(to)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(record)))
	sum := crc32.Update(crc32.Checksum(to[at:], castagnoli), castagnoli, record)
	return append(binary.LittleEndian.AppendUint32(to, sum), record...)
}

// reader reads frames and counts the bytes of the valid ones.
type reader struct {
	from   *bufio.Reader
	record []byte
	good   int64 // bytes of whole frames
}

func newReader(r io.Reader) *reader { return &reader{from: bufio.NewReaderSize(r, 1<<16)} }

// next returns the next record, valid until the next call: io.EOF at the end of the file,
// errTorn at a frame that is cut short or whose checksum does not match.
func (r *reader) next() ([]byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		if err == io.ErrUnexpectedEOF {
			return nil, errTorn
		}
		return nil, err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size > maxRecord {
		return nil, errTorn
	}
	if cap(r.record) < int(size) {
		r.record = make([]byte, size)
	}
	r.record = r.record[:size]
	if _, err := io.ReadFull(r.from, r.record); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, errTorn
		}
		return nil, err
	}
	sum := crc32.Update(crc32.Checksum(head[:4], castagnoli), castagnoli, r.record)
	//mutant:checksum-ignored
	if sum != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errTorn
	}
	r.good += frameHead + int64(size)
	return r.record, nil
}
