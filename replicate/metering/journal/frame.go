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
	// maxRecord bounds a record, so that a damaged length does not take the memory: the
	// largest is a batch with every list full.
	maxRecord = 8 << 20
)

// errTorn is the end of what can be read of a segment before the file's end.
var errTorn = errors.New("torn record")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends the frame of a record.
func appendFrame(to, record []byte) []byte {
	at := len(to)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(record)))
	sum := crc32.Update(crc32.Checksum(to[at:], castagnoli), castagnoli, record)
	return append(binary.LittleEndian.AppendUint32(to, sum), record...)
}

// reader reads frames and knows how far the readable ones reach.
type reader struct {
	from   *bufio.Reader
	record []byte
	good   int64 // bytes of whole frames
}

func newReader(r io.Reader) *reader { return &reader{from: bufio.NewReaderSize(r, 1<<16)} }

// next returns the next record, valid until the next call. io.EOF at the end of the
// file, errTorn where it can't be read on.
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
