package sqld

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// lostAsks is how often in a row a replica has to say that its database does not exist,
	// a pause apart, before it is started again.
	lostAsks  = 3
	lostPause = time.Second
	askLimit  = 2 * time.Second
)

// tend starts a replica again that has lost its database. A primary that was killed begins
// another log, which its replicas have to copy anew; for that they remove their files, and
// when SQLite removes one of them at the same moment, as it does at the end of a
// connection, sqld 0.24 gives the database up: it answers 404 and follows no more until it
// is started again. Its output says so; then it is asked, without a token, to which one
// that is well answers 401.
func (s *Server) tend(r *run) {
	for {
		select {
		case <-r.ended:
			return
		case <-r.output.doubted:
		}
		if s.lost(r) {
			s.again(r)
			return
		}
	}
}

// lost asks the replica until it says that its database exists, or says often enough in a
// row that it does not.
func (s *Server) lost(r *run) bool {
	client := &http.Client{Timeout: askLimit}
	defer client.CloseIdleConnections()
	for row := 0; row < lostAsks; {
		select {
		case <-r.ended:
			return false
		case <-time.After(lostPause):
		}
		answer, err := client.Post(s.URL()+"/v2/pipeline", "application/json", strings.NewReader(`{"requests":[{"type":"close"}]}`))
		if err != nil {
			row = 0
			continue
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusNotFound {
			return false
		}
		row++
	}
	return true
}

// again starts the server again, unless it was stopped meanwhile.
func (s *Server) again(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != r {
		return
	}
	r.output.say("the replica has lost its database, and is started again")
	r.end(os.Interrupt)
	err := s.discard()
	if err == nil {
		err = s.start()
	}
	if err != nil {
		r.output.say(err.Error())
	}
}

// signs are what sqld writes when it gives a database up, and at each request for it then.
var signs = [][]byte{[]byte("error resetting namespace"), []byte("NamespaceDoesntExist")}

// output passes on what a process writes, and looks for signs in it.
type output struct {
	doubted chan struct{} // holds one once a sign was seen

	mu   sync.Mutex
	to   io.Writer // nil for nowhere
	tail []byte    // of what was written, too short for a sign
}

func newOutput(to io.Writer) *output { return &output{to: to, doubted: make(chan struct{}, 1)} }

// Write never fails: a process must not end because its log does.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to != nil {
		_, _ = o.to.Write(p)
	}
	seen := append(o.tail, p...)
	keep := 0
	for _, sign := range signs {
		if bytes.Contains(seen, sign) {
			select {
			case o.doubted <- struct{}{}:
			default:
			}
		}
		keep = max(keep, len(sign)-1)
	}
	o.tail = append(o.tail[:0], seen[max(0, len(seen)-keep):]...)
	return len(p), nil
}

// say writes a line of our own.
func (o *output) say(line string) { fmt.Fprintf(o, "regedge: %s\n", line) }
