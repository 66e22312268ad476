package server

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// streams filters an HTTP/2 connection on its way to net/http. It rewrites the header of each request,
// because net/http answers some by itself: with a reset, or a page of its own without a request id. It
// replaces such a header by one that only asks our handler for a refusal, which then has a problem
// document, a line in the log and a counter, as over HTTP/1.1. A target with a broken escape, which
// HTTP/1.1 passes to the handler, is carried in a field of its own. Other frames pass unchanged.
//
// It costs 1.9 µs for a request with eight fields (BenchmarkStreams, 2026-11).
type streams struct {
	net.Conn
	limit int // bytes of a header, as RFC 9113, section 10.5.1, counts them

	raw   []byte // read, and not yet passed on
	ready []byte // to be passed on: the first used bytes of raw, or frames of our own
	used  int
	pass  int  // bytes still to be passed on unread
	begun bool // the preface was passed on
	ended bool // the rest is discarded
	long  bool // the last header took more than keptBytes

	patience time.Duration // how long the rest of a header may take
	until    time.Time     // when that has to be there; zero if nothing is missing

	decoder *hpack.Decoder
	fields  []hpack.HeaderField
	size    int
	encoder *hpack.Encoder
	block   bytes.Buffer // what encoder writes
	frames  bytes.Buffer
	framer  *http2.Framer // writes frames
	newest  uint32        // stream

	counted *counted // nil where nothing counts
	spare   int      // frames that may come without a request; see frameBurst
}

const (
	frameHeaderBytes = 9
	// frameBytes is the most that net/http takes in a frame (RFC 9113, section 4.2).
	frameBytes = 16 << 10
	// blockFactor times limit bounds the encoded header that is buffered.
	blockFactor = 2
	// tableBytes is the size of the client's dynamic table (RFC 7541): net/http announces no other.
	tableBytes = 4 << 10
	readBytes  = 1 << 10
	// keptBytes bounds the memory that a header leaves behind: after a long one, thousands of idle connections would
	// keep much.
	keptBytes = 4 << 10

	// A client may send frameBurst frames that belong to no request, such as PING and SETTINGS, and with each request
	// framesPerRequest more, which it needs for its windows and cancellations. Each further one holds up the
	// connection for frameInterval: one that sent PING without pause took 0.9 of a core (2026-11).
	frameBurst, framesPerRequest = 1000, 8
	frameInterval                = 10 * time.Millisecond
)

// The names of the fields that ask for a refusal, and that carry a target. They are random, so no client can know
// them.
var (
	refusalField = http.CanonicalHeaderKey("x-" + rand.Text())
	targetField  = http.CanonicalHeaderKey("x-" + rand.Text())
)

func newStreams(conn net.Conn, limit int) *streams {
	s := &streams{Conn: conn, limit: limit, counted: countedOf(conn), spare: frameBurst, patience: patienceOf(DefaultReadHeaderTimeout)}
	s.decoder = hpack.NewDecoder(tableBytes, s.keep)
	s.makeWriters()
	return s
}

// patienceOf is how long the rest of a header may take. A client that is held up can't hurry.
func patienceOf(readHeaderTimeout time.Duration) time.Duration {
	return readHeaderTimeout + longestHolds
}

func (s *streams) makeWriters() {
	s.block, s.frames = bytes.Buffer{}, bytes.Buffer{}
	s.encoder = hpack.NewEncoder(&s.block)
	s.encoder.SetMaxDynamicTableSize(0)
	s.framer = http2.NewFramer(&s.frames, nil)
	s.framer.AllowIllegalWrites = true // refusing them is up to net/http
}

// staticField is a header of one static-table field, which leaves a decoder's state as it is.
var staticField = []byte{0x82}

// forget frees the memory of a long header once it was passed on.
func (s *streams) forget() {
	s.long, s.raw, s.ready, s.fields = false, bytes.Clone(s.raw), nil, nil
	s.makeWriters()
	s.decoder.SetEmitEnabled(false)
	_ = s.decode(staticField) // the decoder keeps the last block that it was given
}

// NetConn returns the connection with TLS.
func (s *streams) NetConn() net.Conn { return s.Conn }

// Read implements net.Conn. After an error, such as that of a deadline, it can be called again.
func (s *streams) Read(p []byte) (int, error) {
	for len(s.ready) == 0 {
		s.raw = append(s.raw[:0], s.raw[s.used:]...)
		s.used = 0
		if s.long {
			s.forget()
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// next makes the next part ready: the preface, a header, or the received part of another frame.
func (s *streams) next() error {
	least := frameHeaderBytes
	switch {
	case !s.begun:
		least = len(http2.ClientPreface)
	case s.pass > 0 || s.ended:
		least = 1
	}
	if err := s.fill(least); err != nil {
		return err
	}
	switch {
	case !s.begun:
		s.begun = true
		s.forward(least)
	case s.ended:
		s.used = len(s.raw)
	case s.pass > 0:
		s.forward(s.pass)
	case http2.FrameType(s.raw[3]) == http2.FrameHeaders:
		return s.header()
	default:
		s.forward(frameHeaderBytes + frameLength(s.raw))
		if s.spare--; s.spare < 0 {
			s.spare = 0
			s.counted.hold(frameInterval)
		}
	}
	return nil
}

// fill reads until raw has n bytes.
func (s *streams) fill(n int) error {
	for len(s.raw) < n {
		if held := s.counted.wait(); held > 0 && !s.until.IsZero() { // the client could not hurry
			s.until = s.until.Add(held)
			if err := s.Conn.SetReadDeadline(s.until); err != nil {
				return err
			}
		}
		had := len(s.raw)
		s.raw = append(s.raw, make([]byte, max(readBytes, n-had))...)
		got, err := s.Conn.Read(s.raw[had:])
		s.raw = s.raw[:had+got]
		if got == 0 && err != nil {
			return err
		}
	}
	return nil
}

// fillInTime is fill for the rest of a header. All of it has to come within patience: it takes memory, and a connection
// waits longer for its next request.
func (s *streams) fillInTime(n int) error {
	if len(s.raw) < n && s.until.IsZero() {
		s.until = time.Now().Add(s.patience)
		if err := s.Conn.SetReadDeadline(s.until); err != nil {
			return err
		}
	}
	return s.fill(n)
}

// forward passes on the next n bytes, of which not all may have arrived.
func (s *streams) forward(n int) {
	s.used = min(n, len(s.raw))
	s.ready, s.pass = s.raw[:s.used], n-s.used
}

// frameLength is the length of the payload of the frame that begins raw.
func frameLength(raw []byte) int { return int(raw[0])<<16 | int(raw[1])<<8 | int(raw[2]) }

// header reads a HEADERS frame with those that continue it, and makes the header ready.
func (s *streams) header() error {
	block, used, err := s.readBlock()
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() && !s.until.IsZero() {
		block, used, err = nil, len(s.raw), nil
	}
	if !s.until.IsZero() {
		s.until = time.Time{}
		_ = s.Conn.SetReadDeadline(s.until)
	}
	if err != nil {
		return err
	}
	s.used, s.long = used, used > keptBytes
	s.fields, s.size = s.fields[:0], 0
	s.decoder.SetEmitEnabled(true)
	if block == nil || !s.decode(block) {
		s.end()
		return nil
	}
	first := http2.FrameHeader{Flags: http2.Flags(s.raw[4]), StreamID: streamOf(s.raw)}
	if first.StreamID > s.newest {
		s.newest = first.StreamID
		s.spare = min(s.spare+framesPerRequest, frameBurst)
		s.encode(first, s.request())
	} else {
		s.encode(first, nil) // trailers, which nobody reads
	}
	return nil
}

// streamOf is the stream of the frame that begins raw.
func streamOf(raw []byte) uint32 {
	return (uint32(raw[5])<<24 | uint32(raw[6])<<16 | uint32(raw[7])<<8 | uint32(raw[8])) &^ (1 << 31)
}

// readBlock reads the frames of a header, and returns its block and the bytes of the frames. The block is nil if the
// frames are not what RFC 9113, section 6.2, allows, or more than we keep.
func (s *streams) readBlock() (block []byte, used int, err error) {
	stream := streamOf(s.raw)
	for {
		if err := s.fillInTime(used + frameHeaderBytes); err != nil {
			return nil, 0, err
		}
		frame := s.raw[used:]
		length, kind, flags := frameLength(frame), http2.FrameType(frame[3]), http2.Flags(frame[4])
		expected := kind == http2.FrameHeaders && used == 0 || kind == http2.FrameContinuation && used > 0 && streamOf(frame) == stream
		if !expected || length > frameBytes || used+length > blockFactor*s.limit {
			return nil, used, nil
		}
		if err := s.fillInTime(used + frameHeaderBytes + length); err != nil {
			return nil, 0, err
		}
		payload := s.raw[used+frameHeaderBytes:][:length]
		if used == 0 {
			if payload = withoutPadding(payload, flags); payload == nil {
				return nil, used, nil
			}
		}
		block = append(block, payload...)
		used += frameHeaderBytes + length
		if flags.Has(http2.FlagHeadersEndHeaders) {
			return block, used, nil
		}
	}
}

// withoutPadding removes padding and priority from the payload of a HEADERS frame. It returns nil if they do not fit
// in it.
func withoutPadding(payload []byte, flags http2.Flags) []byte {
	padding, skip := 0, 0
	if flags.Has(http2.FlagHeadersPadded) {
		if skip = 1; len(payload) < skip {
			return nil
		}
		padding = int(payload[0])
	}
	if flags.Has(http2.FlagHeadersPriority) {
		skip += 5
	}
	if len(payload) < skip+padding {
		return nil
	}
	return payload[skip : len(payload)-padding : len(payload)]
}

func (s *streams) decode(block []byte) bool {
	_, err := s.decoder.Write(block)
	return err == nil && s.decoder.Close() == nil
}

// keep takes a field from the decoder, until their total size is too large.
func (s *streams) keep(f hpack.HeaderField) {
	if s.size += int(f.Size()); s.size > s.limit {
		s.decoder.SetEmitEnabled(false)
		return
	}
	s.fields = append(s.fields, f)
}

// encode makes a header ready.
func (s *streams) encode(first http2.FrameHeader, fields []hpack.HeaderField) {
	s.block.Reset()
	s.frames.Reset()
	for _, f := range fields {
		_ = s.encoder.WriteField(f) // into memory
	}
	fragment := s.block.Next(frameBytes)
	_ = s.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: first.StreamID, BlockFragment: fragment, EndStream: first.Flags.Has(http2.FlagHeadersEndStream), EndHeaders: s.block.Len() == 0,
	})
	for s.block.Len() > 0 {
		fragment = s.block.Next(frameBytes)
		_ = s.framer.WriteContinuation(first.StreamID, s.block.Len() == 0, fragment)
	}
	s.ready = s.frames.Bytes()
}

// end makes ready a frame for which net/http ends the connection with an error, since nothing can be read after a
// header that can't be decoded, or has not come.
func (s *streams) end() {
	s.ended = true
	s.ready = []byte{0, 0, 0, byte(http2.FrameHeaders), byte(http2.FlagHeadersEndHeaders), 0, 0, 0, 0}
}

// request returns the fields of a request as net/http gets them.
func (s *streams) request() []hpack.HeaderField {
	code, carried := judge(s.fields, s.size > s.limit)
	switch {
	case code != "":
		method := http.MethodGet
		for _, f := range s.fields {
			if f.Name == ":method" && knownMethod(f.Value) == f.Value && f.Value != http.MethodConnect {
				method = f.Value
			}
		}
		s.fields = append(s.fields[:0], hpack.HeaderField{Name: ":method", Value: method}, hpack.HeaderField{Name: ":scheme", Value: "https"},
			hpack.HeaderField{Name: ":authority", Value: "refused"}, hpack.HeaderField{Name: ":path", Value: "/"},
			hpack.HeaderField{Name: strings.ToLower(refusalField), Value: code})
	case carried >= 0:
		target := s.fields[carried].Value
		s.fields[carried].Value = "/"
		s.fields = append(s.fields, hpack.HeaderField{Name: strings.ToLower(targetField), Value: target})
	}
	return s.fields
}
