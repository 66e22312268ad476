package source

import (
	"bufio"
	"errors"
	"io"
)

// maxDocumentBytes is the limit of one JSON document: a company with thousands of directors has
// under 1 MB.
const maxDocumentBytes = 8 << 20

var (
	errStray   = errors.New("text between documents")
	errUnended = errors.New("document cut off")
	errTooBig  = errors.New("document too long")
)

// splitter splits a stream of JSON objects: one per line, one after another, or the elements
// of an array.
type splitter struct {
	in   *bufio.Reader
	line int // of the byte that is read next, from 1
}

func newSplitter(in io.Reader) *splitter {
	return &splitter{in: bufio.NewReaderSize(in, 256<<10), line: 1}
}

// next returns the next object's text and its first line. The error is io.EOF at the end, or
// that of the source. For text that is not an object it is errStray, errUnended or errTooBig,
// and the next call continues after it.
func (s *splitter) next() (text []byte, line int, err error) {
	for {
		c, err := s.read()
		if err != nil {
			return nil, s.line, err
		}
		switch c {
		case ' ', '\t', '\r', '\n', ',', '[', ']':
			continue
		case '{':
			line := s.line
			text, err := s.object()
			return text, line, err
		}
		line := s.line
		s.skipLine()
		return nil, line, errStray
	}
}

// object reads the rest of an object whose first brace was read.
func (s *splitter) object() ([]byte, error) {
	text := []byte{'{'}
	depth, quoted, escaped, long := 1, false, false, false
	for depth > 0 {
		c, err := s.read()
		if err == io.EOF {
			return nil, errUnended
		}
		if err != nil {
			return nil, err
		}
		if long = long || len(text) >= maxDocumentBytes; !long {
			text = append(text, c)
		}
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
	}
	if long {
		return nil, errTooBig
	}
	return text, nil
}

func (s *splitter) read() (byte, error) {
	c, err := s.in.ReadByte()
	if err == nil && c == '\n' {
		s.line++
	}
	return c, err
}

func (s *splitter) skipLine() {
	for {
		if c, err := s.read(); err != nil || c == '\n' {
			return
		}
	}
}
