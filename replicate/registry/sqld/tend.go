package sqld

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// lostAsks is how often in a row a replica has to answer that its database does not exist,
	// lostPause apart, before it is restarted.
	lostAsks  = 3
	lostPause = time.Second
	askLimit  = 2 * time.Second
)

// tend restarts a replica whose next database was fetched, whose file is damaged (see header), that hangs (see
// silence), that is ahead of its primary, or that has lost its database. The last is a defect of sqld 0.24. A primary
// that was killed starts a new log, and its replicas remove their files to copy it. When SQLite removes one of those
// files at the same moment, as it does when a connection closes, sqld drops the database: it answers 404 and does not
// follow the primary until it is restarted. It then logs one of signs. tend verifies this with a request without a
// token, to which a healthy replica with tokens answers 401.
func (s *Server) tend(r *run) {
	file := &header{path: File(s.Dir)}
	defer file.close()
	_ = file.gone()            // remembers that it had a header, however soon it is lost
	var again <-chan time.Time // fires when a copy that came too soon after another may begin
	var damaged os.FileInfo    // the damaged file that is then copied anew
	look := time.NewTicker(lookPause)
	defer look.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hangs := make(chan struct{})
	go func() {
		if s.hangs(ctx, r) {
			close(hangs)
		}
	}()
	for {
		select {
		case <-r.ended:
			return
		case <-look.C:
			if file.gone() {
				s.copyAnew(r, "it has no header")
				return
			}
		case <-hangs:
			s.restart(r, "the replica has answered nothing for more than a minute, and is started again", os.Kill)
			return
		case begin := <-r.relay.fetched():
			// Nothing of the old database is needed any more, so the server is not asked to close it.
			s.restart(r, "starting again with the database that was copied", os.Kill, func() error { return s.placeFetched(begin) })
			return
		case <-r.relay.isAhead():
			if s.untilCopy(time.Now()) <= 0 { // otherwise the primary says it again later
				s.noteCopy(time.Now())
				s.restart(r, "the replica has more than its primary, whose directory was set back: it is removed, and copied anew", os.Kill, s.discard)
				return
			}
		case <-r.damaged:
			if wait := s.untilCopy(time.Now()); again == nil && wait > 0 {
				damaged, _ = os.Stat(file.path)
				again = time.After(wait)
				r.output.say(fmt.Sprintf("the replica's file is damaged again: it is copied anew in %.0f s", wait.Seconds()))
			} else if wait <= 0 {
				s.copyDamaged(r)
				return
			}
		case <-again:
			if now, err := os.Stat(file.path); err == nil && os.SameFile(now, damaged) {
				s.copyDamaged(r)
				return
			}
			again = nil // sqld has copied it meanwhile
		case <-r.output.doubted:
			if s.lost(r, hangs) {
				s.restart(r, "the replica has lost its database, and is started again", os.Interrupt, s.discard)
				return
			}
		}
	}
}

// lost asks the replica until it answers that its database exists, or lostAsks times in a row that it
// does not, or until it counts as hung.
func (s *Server) lost(r *run, hangs <-chan struct{}) bool {
	client := direct(askLimit)
	defer client.CloseIdleConnections()
	for row := 0; row < lostAsks; {
		select {
		case <-r.ended:
			return false
		case <-hangs:
			return false
		case <-time.After(lostPause):
		}
		answer, err := client.Post(r.asked+"/v2/pipeline", "application/json", strings.NewReader(`{"requests":[{"type":"close"}]}`))
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

// restart ends the process by a signal, calls first, and starts the next one, unless the server was
// stopped meanwhile.
func (s *Server) restart(r *run, why string, signal os.Signal, first ...func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != r {
		return
	}
	r.output.say(why)
	r.end(signal)
	for _, do := range append(first, s.start) {
		if err := do(); err != nil {
			r.output.say(err.Error())
			return
		}
	}
}

// signs are the lines that sqld logs when it drops a database, and at each request for it afterwards.
var signs = [][]byte{[]byte("error resetting namespace"), []byte("NamespaceDoesntExist")}
