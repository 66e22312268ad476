package simulation

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing/synctest"
	"time"

	"regedge/replicate/metering/syncproto"
)

// refusedKey is the key of which a rogue node reports usage that the ledger's database refuses.
const refusedKey = accounts*keysOfAccount + rogueKeys + 1

// crowdHangs is how long a statement hangs while messages gather that are then committed together. An edge
// may wait longer for the writer.
const crowdHangs = promptly / 2

// crowd has the writer commit a message that its database refuses together with one of an edge. The edge is
// answered as if nothing else had come.
func (s *sim) crowd(e *edge) {
	r := s.rogue
	if r.retired || s.restored || s.depth > 0 || s.centre.former != nil ||
		e.process == nil || e.process.crashIn > 0 || e.process.syncing || e.sending {
		return
	}
	s.calm = true
	defer func() { s.calm = false }()
	if !r.greet() {
		return
	}
	w := s.centre.current
	w.session.hangs, w.session.refuses = crowdHangs, refusedKey
	defer func() { w.session.hangs, w.session.refuses = 0, 0 }()
	answers := make([]*httptest.ResponseRecorder, 2)
	var both sync.WaitGroup
	for i, key := range []int64{accounts*keysOfAccount + rogueKeys, refusedKey} {
		u := r.usage(1)
		u.Account, u.Key = accounts, key
		m := syncproto.Message{Number: s.random.Uint64(), Sync: &syncproto.Sync{
			Session: r.known.Session, Seen: r.known.Upto, NowMillis: s.clock.Load(),
			Batch: &syncproto.Batch{Seq: r.known.Applied + 1 + uint64(i), Of: r.known.Epoch, Usage: []syncproto.Usage{u}},
		}}
		if i == 0 && s.mayAwait() {
			s.noteClaims(m.Sync)
		}
		both.Go(func() { answers[i] = s.centre.serve(w, r.token, m.Encode()) })
		s.pass()
		synctest.Wait() // until the first hangs, and the second is queued behind it
		s.pass()
	}
	begun := time.Now()
	e.exchange()
	both.Wait()
	s.settleTime(begun)
	s.centre.checkProcess(w)
	r.judgeCrowd(w, answers[0], answers[1].Code)
}

// greet gets the rogue a session, and a token before.
func (r *rogue) greet() bool {
	for range 2 { // it may have been fenced
		if r.token == "" {
			r.getToken()
		}
		hello := &syncproto.Hello{Boot: r.sim.random.Uint64(), Epoch: r.known.Epoch, Sealed: r.known.Applied, NowMillis: r.sim.clock.Load()}
		if r.retired {
			return false
		}
		if r.send(syncproto.Message{Number: r.sim.random.Uint64(), Hello: hello}, true); r.token != "" {
			return r.known.Session != 0 && r.sim.centre.current != nil
		}
	}
	return false
}

// judgeCrowd looks at the answers that a rogue node got: to a batch, and to the next one, which was refused.
func (r *rogue) judgeCrowd(w *writerProcess, first *httptest.ResponseRecorder, refused int) {
	s := r.sim
	s.detail("the rogue's messages of a crowd: %d, %d", first.Code, refused)
	if first.Code == http.StatusForbidden {
		r.token = ""
		clear(r.invalid)
		return
	}
	if refused == http.StatusBadRequest { // whatever became of the first
		r.invalid[w]++
		r.allInvalid++
		r.lastInvalid = s.centre.now().UnixMilli()
	}
	if first.Code != http.StatusOK {
		return
	}
	reply, err := syncproto.DecodeReply(first.Body.Bytes())
	s.must(err, "read the writer's reply")
	r.learn(reply)
	if reply.Status == syncproto.Stranger || reply.Status == syncproto.Retired { // whose session ends when the ledger is loaded again
		return
	}
	s.count(rowOfLedgerRefused)
	if refused != http.StatusBadRequest {
		s.fail("a message that the ledger can't store is answered %d", refused)
	}
}
