package sqld

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A primary's log crosses the network compressed: pages of the registry take a third. The gate compresses each piece of
// an answer by itself, as a frame of Zstandard (RFC 8878), so that it needs no memory for a replica that waits.
const (
	// pieceCoding is the content coding (RFC 9110, section 8.4.1), which a relay asks for.
	pieceCoding = "zstd"
	// pieceWindow bounds the memory that a piece takes when it is unpacked, in bytes.
	pieceWindow = 1 << 20
)

// pieceEncoder compresses pieces, for all calls.
var pieceEncoder = sync.OnceValue(func() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // of these options
	}
	return encoder
})

// wantsPieces reports whether a call asks for a compressed answer.
func wantsPieces(call *http.Request) bool {
	return strings.Contains(call.Header.Get("Accept-Encoding"), pieceCoding)
}

// pieces is an answer that is compressed.
type pieces struct{ http.ResponseWriter }

// inPieces compresses an answer.
func inPieces(w http.ResponseWriter) http.ResponseWriter {
	w.Header().Set("Content-Encoding", pieceCoding)
	return pieces{w}
}

// Write implements http.ResponseWriter.
func (w pieces) Write(p []byte) (int, error) {
	if _, err := w.ResponseWriter.Write(pieceEncoder().EncodeAll(p, nil)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Unwrap is for http.ResponseController.
func (w pieces) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// unpack replaces the body of an answer that is compressed.
func unpack(answer *http.Response) error {
	if answer.Header.Get("Content-Encoding") != pieceCoding {
		return nil
	}
	decoder, err := zstd.NewReader(answer.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(pieceWindow))
	if err != nil {
		return err
	}
	answer.Header.Del("Content-Encoding")
	answer.Body = unpacked{decoder.IOReadCloser(), answer.Body}
	return nil
}

// unpacked is a body that was compressed.
type unpacked struct {
	io.ReadCloser
	packed io.Closer
}

// Close implements io.Closer.
func (u unpacked) Close() error {
	_ = u.ReadCloser.Close() // frees memory
	return u.packed.Close()
}
