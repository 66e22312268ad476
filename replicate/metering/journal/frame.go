package journal

import (
	"cmp"
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
	// maxSearched bounds the records that are searched for after damage. Longer ones are rare, and searching
	// for them costs time at every place where there is none.
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

// reader reads the frames of a file and skips damage between them. It holds at most two of the largest
// frames in memory, however long the file or the damage is.
type reader struct {
	file   fileOf
	from   io.Reader
	at     int64  // offset of the end of the last frame
	buffer []byte // has ahead in it
	ahead  []byte // what was read of the file and is not passed yet
	ended  bool   // the file has nothing behind ahead
	unread int64  // at the end: the bytes after the last frame, except zeros at the end
}

// readAhead is how many bytes a reader reads at once, at least.
const readAhead = 64 << 10

func newReader(file fileOf, r io.Reader) *reader {
	return &reader{file: file, from: r}
}

// next returns the next frame, whose record is valid until the next call; io.EOF at the end.
func (r *reader) next() (frame, error) {
	limit := maxRecord // of a frame that follows the last one
	for gap := int64(0); ; {
		record, kind, err := r.frameAt(r.at+gap, limit)
		if err == nil {
			f := frame{at: r.at + gap, gap: gap, kind: kind, record: record}
			r.at, r.ahead, r.unread = f.end(), r.ahead[frameHead+len(record):], 0
			return f, nil
		}
		if err != errNoFrame {
			return frame{}, err
		}
		if len(r.ahead) == 0 {
			return frame{}, io.EOF
		}
		if r.ahead[0] != 0 {
			r.unread = gap + 1
		}
		r.ahead, gap = r.ahead[1:], gap+1
		zeros, err := r.passZeros()
		if err != nil {
			return frame{}, err
		}
		gap, limit = gap+zeros, maxSearched
	}
}

// errNoFrame says that there is no frame at an offset.
var errNoFrame = errors.New("no frame")

// frameAt reads the frame at an offset, where ahead begins, whose record has at most limit bytes. The end of a
// record, or of a head, may be zeros. It passes nothing.
func (r *reader) frameAt(at int64, limit int) (record []byte, kind byte, err error) {
	if err := r.fill(frameHead); err != nil || len(r.ahead) < frameHead {
		return nil, 0, cmp.Or(err, errNoFrame)
	}
	h := head(binary.LittleEndian.Uint64(r.ahead) ^ r.file.mask(at))
	if !h.plausible(limit) {
		return nil, 0, errNoFrame
	}
	end := frameHead + h.size()
	if err := r.fill(end); err != nil || len(r.ahead) < end {
		return nil, 0, cmp.Or(err, errNoFrame)
	}
	record = r.ahead[frameHead:end]
	if !h.sums(record) {
		return nil, 0, errNoFrame
	}
	return record, h.kind(), nil
}

// passZeros passes zeros, such as a hole of gigabytes has, up to where a frame's head may begin: a head of
// eight zeros is as unlikely as a wrong match of mask and checksum.
func (r *reader) passZeros() (passed int64, err error) {
	for {
		if err := r.fill(frameHead); err != nil || len(r.ahead) < frameHead {
			return passed, err
		}
		n := zerosAt(r.ahead)
		if n < frameHead {
			return passed, nil
		}
		n -= frameHead - 1 // the last ones may begin a head
		r.ahead, passed = r.ahead[n:], passed+int64(n)
	}
}

// zerosAt counts the zeros at the beginning of p.
func zerosAt(p []byte) int {
	n := 0
	for len(p)-n >= 8 && binary.LittleEndian.Uint64(p[n:]) == 0 {
		n += 8
	}
	for n < len(p) && p[n] == 0 {
		n++
	}
	return n
}

// fill reads until ahead has n bytes, or the file ends.
func (r *reader) fill(n int) error {
	for len(r.ahead) < n && !r.ended {
		if cap(r.ahead) < n || cap(r.ahead) == len(r.ahead) {
			if len(r.buffer) < 2*n { // twice, so that ahead is not moved again for every few bytes
				r.buffer = make([]byte, max(readAhead, 2*n))
			}
			r.ahead = r.buffer[:copy(r.buffer, r.ahead)]
		}
		got, err := r.from.Read(r.ahead[len(r.ahead):cap(r.ahead)])
		r.ahead = r.ahead[:len(r.ahead)+got]
		if err == io.EOF {
			r.ended = true
		} else if err != nil {
			return err
		}
	}
	return nil
}
