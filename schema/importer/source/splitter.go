package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxDocumentBytes is the limit of one JSON document: a company with thousands of directors has
// under 1 MB.
const maxDocumentBytes = 8 << 20

// maxNested is how deep a document may be nested. Real ones have four levels. Checking its syntax takes the more stack the
// deeper it is, of which a process has a bounded amount.
const maxNested = 1000

var (
	errStray   = errors.New("text between documents")
	errUnended = errors.New("document cut off")
	errTooBig  = errors.New("document too long")
	errTooDeep = errors.New("document nested too deep")
)

// splitter splits a stream of JSON objects: one per line, one after another, or the elements
// of an array.
type splitter struct {
	in    *bufio.Reader
	rest  []byte // text to read again, before in
	line  int    // line of the next byte, from 1
	again int    // number of parts read again
}

// maxAgain bounds the parts that are read again after a document that was cut off,
// each of maxDocumentBytes at most.
const maxAgain = 1000

func newSplitter(in io.Reader) *splitter {
	return &splitter{in: bufio.NewReaderSize(in, 256<<10), line: 1}
}

// next returns the next object's text and its first line. The error is io.EOF at the end, or
// that of the source. For text that is not an object it is errStray, errUnended, errTooBig or
// errTooDeep, and the next call continues after it.
func (s *splitter) next() (text []byte, line int, err error) {
	for {
		c, err := s.read()
		if err != nil {
			return nil, s.line, err
		}
		switch c {
		case ' ', '\t', '\r', '\n', ',', '[', ']', utf8Mark[0], utf8Mark[1], utf8Mark[2]: // the mark of another file that was appended
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

// resume goes back to the second line of an unterminated document if another one begins there, so that only
// the first line is lost. It reports whether it did.
func (s *splitter) resume(text []byte, line int) bool {
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	if !bytes.HasPrefix(rest, []byte("{")) || s.again == maxAgain {
		return false
	}
	s.again++
	s.rest, s.line = append(rest, s.rest...), line+1
	return true
}

// object reads the rest of an object whose first brace was read.
func (s *splitter) object() ([]byte, error) {
	text, line := []byte{'{'}, s.line
	depth, nested, deepest := 1, 1, 1 // of braces, and with brackets
	quoted, escaped, long := false, false, false
	for depth > 0 {
		c, err := s.read()
		if err == io.EOF {
			if !long {
				s.resume(text, line)
			}
			return nil, errUnended
		}
		if err != nil {
			return nil, err
		}
		if !long {
			text = append(text, c)
			if long = len(text) > maxDocumentBytes; long && s.resume(text, line) {
				return nil, errUnended
			}
		}
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{':
			depth, nested = depth+1, nested+1
		case c == '[':
			nested++
		case c == '}':
			depth, nested = depth-1, nested-1
		case c == ']':
			nested--
		}
		deepest = max(deepest, nested)
	}
	switch {
	case long:
		return nil, errTooBig
	case deepest > maxNested:
		return nil, errTooDeep
	}
	return text, nil
}

func (s *splitter) read() (byte, error) {
	var c byte
	var err error
	if len(s.rest) > 0 {
		c, s.rest = s.rest[0], s.rest[1:]
	} else {
		c, err = s.in.ReadByte()
	}
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
