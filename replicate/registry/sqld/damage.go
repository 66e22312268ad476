package sqld

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"time"
)

// A replica's damaged file is copied anew from the primary. sqld notices damage only where it writes to
// the file itself, and otherwise goes on for ever. SQLite keeps no checksums of pages, so there are two
// signs: the header is gone, or a statement found an invalid page.

// lookPause is the time between two looks at the header of a replica's file.
const lookPause = 500 * time.Millisecond

// copyPause is the least time between two copies that statements caused: a copy of a whole country loads the
// primary for some seconds. See untilCopy.
var copyPause = time.Minute

const (
	// maxDoublings of copyPause make half an hour.
	maxDoublings = 5
	// calmAfter is how long without a copy it takes until the pause is a single copyPause again.
	calmAfter = 2 * time.Hour
)

// headerText begins every database file (https://sqlite.org/fileformat.html, section 1.3).
const headerText = "SQLite format 3\x00"

// header looks at the beginning of a replica's file.
type header struct {
	path string
	file *os.File // kept open, since closing it would end this process's other locks of it
	good bool     // whether it had its header once: a new file is empty at first
}

// gone reports whether the file has lost its header. A missing or replaced file does not count: sqld removes and
// replaces it too.
func (h *header) gone() bool {
	now, err := os.Stat(h.path)
	if err != nil {
		h.close()
		return false
	}
	if h.file != nil {
		if open, err := h.file.Stat(); err != nil || !os.SameFile(open, now) {
			h.close()
		}
	}
	if h.file == nil {
		if h.file, err = os.Open(h.path); err != nil {
			h.file = nil
			return false
		}
	}
	begin := make([]byte, len(headerText))
	n, err := h.file.ReadAt(begin, 0)
	if err != nil && err != io.EOF {
		return false
	}
	if string(begin[:n]) == headerText {
		h.good = true
		return false
	}
	return n > 0 || h.good
}

func (h *header) close() {
	if h.file != nil {
		_ = h.file.Close()
	}
	h.file, h.good = nil, false
}

// The signs of damage in an answer of sqld: to a statement, and to a request that failed before. In a
// row's values quotes are escaped, so that no data looks like the first ones.
var (
	damagedStatement = [][]byte{[]byte(`"code":"SQLITE_CORRUPT"`), []byte(`"code":"SQLITE_NOTADB"`)}
	damagedDatabase  = [][]byte{[]byte("file is not a database"), []byte("database disk image is malformed")}
)

// longestSign bounds the signs above, in bytes.
const longestSign = 40

// watchAnswer passes the body of an answer on, and calls found if there is a sign of damage in it.
func watchAnswer(answer *http.Response, found func()) {
	signs := damagedStatement
	if answer.StatusCode >= http.StatusInternalServerError {
		signs = damagedDatabase
	}
	answer.Body = &watchedBody{ReadCloser: answer.Body, signs: signs, found: found}
}

type watchedBody struct {
	io.ReadCloser
	signs [][]byte
	found func()
	seam  []byte // the end of the previous read, and the beginning of this one
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.seam = append(b.seam, p[:min(n, longestSign)]...)
	for _, sign := range b.signs {
		if bytes.Contains(b.seam, sign) || bytes.Contains(p[:n], sign) {
			b.found()
			break
		}
	}
	if n > longestSign {
		b.seam = append(b.seam[:0], p[n-longestSign:n]...)
	} else if over := len(b.seam) - longestSign; over > 0 {
		b.seam = append(b.seam[:0], b.seam[over:]...)
	}
	return n, err
}

// copyAnew ends the process, removes the database and starts the process again, which copies it from the
// primary.
func (s *Server) copyAnew(r *run, because string) {
	s.restart(r, "the replica's file is damaged ("+because+"): it is removed, and copied anew", os.Kill, s.discard)
}

// copyDamaged is copyAnew because of a statement.
func (s *Server) copyDamaged(r *run) {
	s.noteCopy(time.Now())
	s.copyAnew(r, "a statement found it so")
}

// noteCopy counts a copy, for untilCopy.
func (s *Server) noteCopy(now time.Time) {
	if now.Sub(s.copied) > calmAfter {
		s.copies = 0
	}
	s.copied, s.copies = now, s.copies+1
}

// untilCopy is how long a copy that a statement caused has to wait: twice as long after each, since a copy does
// not help if the primary's own file is damaged. The copy is then made in any case, since the statement that found
// the damage is not repeated by itself.
func (s *Server) untilCopy(now time.Time) time.Duration {
	if s.copies == 0 || now.Sub(s.copied) > calmAfter {
		return 0
	}
	return s.copied.Add(copyPause << min(s.copies-1, maxDoublings)).Sub(now)
}
