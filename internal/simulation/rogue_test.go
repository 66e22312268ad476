package simulation

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/ncruces/go-sqlite3"

	"regedge/handler/charge"
	"regedge/replicate/metering/syncproto"
	"regedge/replicate/metering/writer"
)

// rogue is a node whose edge is in the hands of somebody else. It sends what it likes under its valid token,
// within what an edge of a ledger that was not restored can say. Its name begins like those of edges, with a
// number below zero.
type rogue struct {
	sim   *sim
	token string
	// known is what the writer last replied to it.
	known  syncproto.Reply
	epochs []uint64
	// invalid counts by writer the messages that no edge sends, since a new token; lastInvalid is the time
	// of the last one by the writer's clock, allInvalid counts them in all.
	invalid     map[*writerProcess]int
	lastInvalid int64
	allInvalid  int
	// claimed says that it has claimed a restore, retired that its node is no more.
	claimed, retired bool
}

const rogueName = "edge--1"

// rogueKeys are the keys of which it reports usage, so that the usage of edges can be told from it.
const rogueKeys = 8_000

// ofRogue reports whether a key is one of rogueKeys.
func ofRogue(key int64) bool { return key%keysOfAccount == rogueKeys }

// act has the rogue send a message. It is added first, and when the ledger was restored it is retired, since
// it would never declare its leases.
func (r *rogue) act() {
	s := r.sim
	switch {
	case s.restored || s.depth > 0 || r.retired:
		return
	case (r.claimed || s.countedTwice) && s.random.IntN(16) == 0: // an operator sees that the ledger waits for it
		r.retire()
		return
	case r.token == "":
		r.getToken()
		return
	}
	nonsense := s.random.IntN(3) > 0
	for range 2*fencedAfter + s.random.IntN(fencedAfter) {
		s.count(rogueMessages)
		if s.random.IntN(10) == 0 {
			r.claim()
		}
		message, valid := r.message(), true
		if nonsense && message.Sync != nil {
			b := message.Sync.Batch
			b.Usage, valid = append(b.Usage, r.usage(syncproto.MaxCount+1+s.random.Int64N(1<<61))), false
		}
		if r.send(message, valid); r.token == "" {
			return
		}
	}
}

// getToken has an operator add the node, or give it a new token.
func (r *rogue) getToken() {
	r.sim.centre.operateAllowing(writer.ErrTaken, func(ctx context.Context, o *writer.Client) error {
		n, err := o.AddNode(ctx, rogueName)
		if errors.Is(err, writer.ErrTaken) {
			n, err = o.NewNodeToken(ctx, rogueName)
		}
		if errors.Is(err, writer.ErrRetired) { // the operator did not get the answer
			r.retired = true
			return nil
		}
		r.token = n.Token
		return err
	})
}

// message makes a message of the form that an edge sends.
func (r *rogue) message() (m syncproto.Message) {
	s := r.sim
	m.Number = s.random.Uint64()
	if r.known.Session == 0 || s.random.IntN(5) == 0 {
		m.Hello = &syncproto.Hello{Boot: s.random.Uint64N(3), Sealed: s.random.Uint64N(4), NowMillis: s.clock.Load()}
		if len(r.epochs) > 0 {
			m.Hello.Epoch = r.epochs[s.random.IntN(len(r.epochs))]
		}
		if m.Hello.Epoch == r.known.Epoch && s.random.IntN(2) == 0 {
			m.Hello.Sealed = r.known.Applied
		}
		return m
	}
	m.Sync = &syncproto.Sync{Session: r.known.Session, Seen: r.known.Upto, NowMillis: s.clock.Load() + s.jump()*s.random.Int64N(2)}
	if s.random.IntN(8) == 0 {
		m.Sync.Session += s.random.Uint64N(8)
	}
	if m.Sync.Batch = r.batch(); s.random.IntN(8) == 0 { // nobody asked for it
		m.Sync.Declared, m.Sync.DeclaredLast = r.declaration().Declared, true
	}
	for range s.random.IntN(3) {
		m.Sync.Wants = append(m.Sync.Wants, syncproto.Want{Pool: r.pool(), Target: 1 + s.random.Int64N(1<<s.random.IntN(40)), Urgent: s.random.IntN(2) == 0})
	}
	m.Sync.Rates = []syncproto.Rate{{Subject: 1 + s.random.Int64N(accounts), Minute: syncproto.Minute(s.clock.Load()), Count: s.random.Int64N(1 << 40)}}
	return m
}

// batch reports usage and returns units, of any account and any epoch.
func (r *rogue) batch() *syncproto.Batch {
	s := r.sim
	b := &syncproto.Batch{Seq: r.known.Applied + 1, Of: r.known.Epoch}
	if s.random.IntN(6) == 0 {
		b.Seq = r.known.Applied + s.random.Uint64N(4)
	}
	switch s.random.IntN(4) {
	case 0:
		if len(r.epochs) > 0 { // else its writer has not answered yet, or came back from a backup
			b.Of = r.epochs[s.random.IntN(len(r.epochs))]
		}
	case 1:
		b.Of = s.edges[s.random.IntN(len(s.edges))].epoch
	}
	for range s.random.IntN(4) {
		u := r.usage(1 + s.random.Int64N(1<<s.random.IntN(30)))
		if s.random.IntN(2) == 0 && s.paidByLeases(u.Account) {
			u.Count = -u.Count
		}
		b.Usage = append(b.Usage, u)
	}
	for range s.random.IntN(3) {
		b.Returns = append(b.Returns, syncproto.Return{Pool: r.pool(), Units: s.random.Int64N(1 << s.random.IntN(40)), Close: s.random.IntN(3) == 0})
	}
	return b
}

func (r *rogue) usage(count int64) syncproto.Usage {
	account := 1 + r.sim.random.Int64N(accounts)
	return syncproto.Usage{Account: account, Key: account*keysOfAccount + rogueKeys, Hour: syncproto.Hour(r.sim.clock.Load()),
		Endpoint: charge.Companies, Outcome: charge.Found, Count: count}
}

func (r *rogue) pool() syncproto.Pool {
	p := syncproto.Pool{Kind: syncproto.Credits, Subject: 1 + r.sim.random.Int64N(accounts)}
	if r.sim.random.IntN(3) == 0 {
		p.Kind, p.Window = syncproto.Volume, syncproto.Month(r.sim.clock.Load())
	}
	return p
}

// fencedAfter is after how many invalid messages in a row a node is fenced.
const fencedAfter = 5

// offencesLastMillis is after what time without any they are forgotten.
const offencesLastMillis = 10 * 60 * 1000

// send sends a message, and checks that one which no edge sends is refused, and its node fenced after some.
func (r *rogue) send(m syncproto.Message, valid bool) {
	s := r.sim
	w := s.centre.up()
	if w == nil {
		return
	}
	if s.mayAwait() && valid && m.Sync != nil {
		s.noteClaims(m.Sync)
	}
	now := s.centre.now().UnixMilli()
	if now-r.lastInvalid > offencesLastMillis {
		clear(r.invalid)
	}
	status, body := s.centre.post(w, r.token, m.Encode())
	s.detail("the rogue sends %+v %+v, batch %+v: %d", m.Hello, m.Sync, batchOf(m), status)
	switch {
	case !valid && status == http.StatusOK:
		s.fail("a message that no edge sends is taken: %+v", m.Sync.Batch)
	case !valid && status == http.StatusBadRequest:
		r.invalid[w]++
		r.allInvalid++
		if r.lastInvalid = now; r.invalid[w] > fencedAfter {
			s.fail("a node sends %d messages that no edge sends, and is not fenced", r.invalid[w])
		}
	case status == http.StatusForbidden:
		s.count(rogueFenced)
		if r.allInvalid < fencedAfter {
			s.fail("a node is fenced after %d messages that no edge sends", r.allInvalid)
		}
		r.token = ""
		clear(r.invalid)
	case status == http.StatusOK:
		reply, err := syncproto.DecodeReply(body)
		s.must(err, "read the writer's reply")
		r.learn(reply)
	}
	s.centre.checkProcess(w)
}

func batchOf(m syncproto.Message) *syncproto.Batch {
	if m.Sync == nil {
		return nil
	}
	return m.Sync.Batch
}

// learn keeps what a reply says of the rogue's epochs.
func (r *rogue) learn(reply *syncproto.Reply) {
	if reply.Status == syncproto.Stranger {
		r.known.Session = 0
		return
	}
	if reply.Epoch != r.known.Epoch {
		r.epochs = append(r.epochs, reply.Epoch)
	}
	r.known = *reply
}

// retire has an operator retire the rogue's node, if there is one.
func (r *rogue) retire() {
	s := r.sim
	s.disturbed++
	r.retired = s.centre.operateAllowing(writer.ErrNotFound, func(ctx context.Context, o *writer.Client) error {
		_, err := o.RetireNode(ctx, rogueName, false)
		return err
	})
}

// post sends a message to a writer, and returns the status and the body of its answer.
func (c *centre) post(w *writerProcess, token string, message []byte) (status int, body []byte) {
	failed, begun := w.session.failed, time.Now()
	answer := c.serve(w, token, message)
	if took := c.sim.settleTime(begun); took > promptly && !w.session.disturbed(failed, begun) {
		c.sim.fail("an edge waits %v for the writer", took)
	}
	return answer.Code, answer.Body.Bytes()
}

// serve has a writer answer a message.
func (c *centre) serve(w *writerProcess, token string, message []byte) *httptest.ResponseRecorder {
	request, err := http.NewRequest(http.MethodPost, "http://writer"+writer.SyncPath, bytes.NewReader(message))
	c.sim.must(err, "make a request")
	request.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	c.sim.pass()
	w.writer.Handler().ServeHTTP(answer, request)
	c.sim.pass()
	return answer
}

const selectUnpaid = `SELECT spent - (SELECT ifnull(sum(spent), 0) FROM lease WHERE kind = 1 AND subject = account.id) FROM account WHERE id = ?`

// paidByLeases reports whether all that an account spent is in leases that the ledger has. What was spent under
// leases that were closed since can be taken back by any edge.
func (s *sim) paidByLeases(account int64) bool {
	unpaid := int64(0)
	s.must(s.centre.ledger.ask(selectUnpaid, func(row *sqlite3.Stmt) { unpaid = row.ColumnInt64(0) }, account), "read leases")
	return unpaid == 0
}
