package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// A frame is a head of 8 bytes and a record. The head is the length of the record (3 bytes), the
// kind of the frame (1 byte) and a CRC-32C of these 4 bytes and the record, little-endian. In a
// file the head is masked by a number that follows from the file and the frame's offset in it: a
// frame that was written to another file or another place is no frame, and whatever is not a
// frame looks like random bytes, so that a search for the next one is seldom misled.
const (
	frameHead = 8
	// maxRecord bounds a record in bytes, so that a damaged length does not exhaust the
	// memory. The largest record is a batch with every list full.
	maxRecord = 8 << 20
	// maxSearched bounds the records that a search behind damage finds: longer ones are seldom, and
	// cost time at places where none is.
	maxSearched = 1 << 20
)

// Kinds of frames. The numbers are stored and never change.
const (
	frameRecord   byte = 1 // a record of the journal, or a batch of the archive
	frameSnapshot byte = 2 // a record of the snapshot at the beginning of a segment
	frameEnd      byte = 3 // the snapshot is complete
	frameSynced   byte = 4 // how many bytes of the segment were durable: 8 bytes, little-endian
	frameClosed   byte = 5 // everything in the segment is durable, and the next one follows
)

// fileOf is the number by which the frames of a file are masked, 0 for frames in memory.
type fileOf uint64

func segmentFile(number uint64) fileOf { return fileOf(number) }
func archiveFile(day int32) fileOf     { return fileOf(1<<63 | uint64(uint32(day))) }

// mask is the value that masks the head of a frame at an offset: the finalizer of splitmix64.
func (f fileOf) mask(at int64) uint64 {
	if f == 0 {
		return 0
	}
	x := uint64(f)*0x9E3779B97F4A7C15 + uint64(at)
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	//mutant:frame-not-bound-to-its-place
	return x ^ x>>31
}

// place masks the head of a frame for its place in the file, or takes the mask off again.
func (f fileOf) place(frame []byte, at int64) {
	binary.LittleEndian.PutUint64(frame, binary.LittleEndian.Uint64(frame)^f.mask(at))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends the frame of a record, without a mask.
func appendFrame(to []byte, kind byte, record []byte) []byte {
	at := len(to)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(record))|uint32(kind)<<24)
	sum := crc32.Update(crc32.Checksum(to[at:], castagnoli), castagnoli, record)
	return append(binary.LittleEndian.AppendUint32(to, sum), record...)
}

// head is an unmasked head.
type head uint64

func (h head) size() int  { return int(h & 0xFFFFFF) }
func (h head) kind() byte { return byte(h >> 24) }

// plausible reports whether it can be the head of a record of at most limit bytes.
func (h head) plausible(limit int) bool {
	return h.kind() >= frameRecord && h.kind() <= frameClosed && h.size() <= limit
}

// sums reports whether the checksum matches head and record.
func (h head) sums(record []byte) bool {
	var first [4]byte
	binary.LittleEndian.PutUint32(first[:], uint32(h))
	//mutant:checksum-ignored
	return crc32.Update(crc32.Checksum(first[:], castagnoli), castagnoli, record) == uint32(h>>32)
}

// frame is one valid frame of a file.
type frame struct {
	at     int64 // its offset
	gap    int64 // the damaged bytes before it, 0 for none
	kind   byte
	record []byte
}

func (f *frame) end() int64 { return f.at + frameHead + int64(len(f.record)) }

// reader reads the frames of a file and skips damage between them.
type reader struct {
	file   fileOf
	from   *bufio.Reader
	record []byte
	at     int64  // offset of what is read next
	rest   []byte // the bytes from there on, once damage was found; else nil
	unread int64  // at the end: the bytes behind the last frame, without the zeros at the end
}

func newReader(file fileOf, r io.Reader) *reader {
	return &reader{file: file, from: bufio.NewReaderSize(r, 1<<16)}
}

// next returns the next frame, whose record is valid until the next call; io.EOF at the end.
func (r *reader) next() (frame, error) {
	if r.rest == nil {
		f, read, err := r.stream()
		if err != errNoFrame {
			return f, err
		}
		more, err := io.ReadAll(r.from)
		if err != nil {
			return frame{}, err
		}
		r.rest = append(read, more...)
	}
	return r.search()
}

// errNoFrame says that there is no frame at an offset.
var errNoFrame = errors.New("no frame")

// stream reads the frame that follows the last one. After errNoFrame it returns what it read.
func (r *reader) stream() (f frame, read []byte, err error) {
	var first [frameHead]byte
	if n, err := io.ReadFull(r.from, first[:]); err == io.ErrUnexpectedEOF {
		return frame{}, first[:n], errNoFrame
	} else if err != nil {
		return frame{}, nil, err
	}
	h := head(binary.LittleEndian.Uint64(first[:]) ^ r.file.mask(r.at))
	if !h.plausible(maxRecord) {
		return frame{}, first[:], errNoFrame
	}
	if cap(r.record) < h.size() {
		r.record = make([]byte, h.size())
	}
	r.record = r.record[:h.size()]
	n, err := io.ReadFull(r.from, r.record)
	if err == io.EOF || err == io.ErrUnexpectedEOF || err == nil && !h.sums(r.record) {
		return frame{}, append(first[:], r.record[:n]...), errNoFrame
	}
	if err != nil {
		return frame{}, nil, err
	}
	f = frame{at: r.at, kind: h.kind(), record: r.record}
	r.at = f.end()
	return f, nil, nil
}

// search finds the next frame in rest.
func (r *reader) search() (frame, error) {
	rest := bytes.TrimRight(r.rest, "\x00")
	limit := maxRecord // of a frame that follows the last one
	for gap := 0; gap < len(rest); gap++ {
		// The end of a record, or of a head, may be zeros: all of rest is searched.
		if record, kind, ok := r.frameAt(gap, limit); ok {
			f := frame{at: r.at + int64(gap), gap: int64(gap), kind: kind, record: record}
			r.at, r.rest = f.end(), r.rest[gap+frameHead+len(record):]
			return f, nil
		}
		limit = maxSearched
	}
	r.unread = int64(len(rest))
	return frame{}, io.EOF
}

// frameAt returns the record of the frame at an index of rest, if there is one.
func (r *reader) frameAt(index, limit int) (record []byte, kind byte, ok bool) {
	if len(r.rest)-index < frameHead {
		return nil, 0, false
	}
	h := head(binary.LittleEndian.Uint64(r.rest[index:]) ^ r.file.mask(r.at+int64(index)))
	end := index + frameHead + h.size()
	if !h.plausible(limit) || end > len(r.rest) {
		return nil, 0, false
	}
	record = r.rest[index+frameHead : end]
	return record, h.kind(), h.sums(record)
}
