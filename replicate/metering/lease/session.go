package lease

import "regedge/replicate/metering/syncproto"

// contactMillis is how long after the last reply an edge counts as connected: several
// times the longest pause between two syncs.
const contactMillis = 5_000

// refusalMillis is how long after an exchange began the edge may say that an account is empty.
// Units may have been added or returned since, so it is as short as the pause between two syncs:
// a refusal may have to wait for the next one.
const refusalMillis = 1_000

// setBackMillis is by how much the edge's clock must go back to be noticed: requests read it
// before they get the lock, so that their times come a little out of order.
const setBackMillis = 250

// session is the conversation with the writer in this run of the process. None of it is
// durable.
type session struct {
	boot     uint64 // random number of this run
	id       uint64 // 0 before Hello was answered in this run, and after the session ended
	seen     uint64 // version of the newest news
	complete bool   // the news of all leases of the epoch have arrived in this session
	skipped  bool   // rows of a restored ledger that lacks batches were not taken
	contact  int64  // time of the last reply, Unix milliseconds
	sent     int64  // time of the last message of Sync
	answered int64  // time of the last message of Sync that was answered
	// syncs counts the messages of Sync; answeredSync was the count at the last one that was answered.
	syncs, answeredSync uint64
	awaited             bool // a request waits for the next one that is answered
	// sentSeen and sentApplied are seen and outbox.applied as of the last message of Sync.
	sentSeen, sentApplied uint64
	latest                int64 // the newest reading of this edge's clock
	met                   bool  // a reply arrived in this run, since the clock was last set back
	live                  int64 // edges in contact with the writer, at least 1
}

// begin starts the session that a reply to Hello opened.
func (s *session) begin(id uint64) { s.id, s.seen, s.complete, s.skipped = id, 0, false, false }

func (s *session) open() bool { return s.id != 0 }

// contradicts reports whether a reply to Sync takes back what replies of this session said before the message was
// sent. If so, it is not the writer that has answered. In a new session the writer says again all that it knows.
func (s *EdgeState) contradicts(r *syncproto.Reply) bool {
	if !s.session.open() || r.Session != s.session.id {
		return false
	}
	before := s.standing.status
	return r.Applied < s.session.sentApplied || r.Upto < s.session.sentSeen ||
		r.Status == syncproto.OK && before != syncproto.OK || before == syncproto.Retired && r.Status != syncproto.Retired
}

// ofOtherEpoch reports whether a reply of this session names another epoch. A session has one, and the writer
// gives a new one with a new session: a batch that was sent in the session of an earlier epoch would count
// there, and again in the new one.
func (s *EdgeState) ofOtherEpoch(r *syncproto.Reply) bool {
	return s.session.open() && r.Session == s.session.id && r.Epoch != s.standing.epoch
}

// ofLater reports whether a reply of this session follows what was never seen or made here: the machine was put back to
// an earlier moment with its memory. The next Hello shows the writer an older copy.
func (s *EdgeState) ofLater(r *syncproto.Reply) bool {
	return s.session.open() && r.Session == s.session.id && r.Status != syncproto.Stranger && !s.outbox.abandoned() &&
		(r.Applied > s.outbox.sealed || r.Since > s.session.seen)
}

// Connected reports whether the writer replied within the last seconds, so that what it
// said of other edges still holds.
func (s *EdgeState) Connected(now int64) bool {
	return s.session.met && s.session.open() && within(now-s.session.contact, contactMillis)
}

// mayRefuse reports whether the writer's word that an account is empty still holds. The writer must have been
// asked after the account's newest charge here, which may have taken the last unit. Otherwise "nothing here" and
// "nothing elsewhere" need not be true at the same moment: the owner may have bought credits in between.
func (s *EdgeState) mayRefuse(now int64, a *account) bool {
	//mutant:refusal-not-asked-since
	if s.session.answeredSync <= a.lastTaken {
		s.session.awaited = true
		return false
	}
	//mutant:refusal-believed-for-five-seconds
	if now-s.session.answered > refusalMillis {
		return false
	}
	return s.Connected(now) && now >= s.session.answered
}

// noteTime notices that the clock was set back. From then on it is unknown how old the writer's statements are.
func (s *session) noteTime(now int64) {
	if now < s.latest-setBackMillis {
		s.met, s.latest = false, now
	}
	s.latest = max(s.latest, now)
}

// within reports whether an age is at most limit. A negative one says nothing: the clock was set
// back meanwhile.
func within(age, limit int64) bool { return age >= 0 && age <= limit }

// Greeting reports whether the edge has to say Hello before it can sync.
func (s *EdgeState) Greeting() bool { return !s.session.open() || s.settled() }

// Settled reports whether the next Hello asks for a new epoch.
func (s *EdgeState) Settled() bool { return s.session.open() && s.settled() }

// Hello is the message that opens a session. It asks for a new epoch only in a session in
// which the writer took everything of the old one: another writer's ledger may have been
// restored from a backup, and has to see the old epoch first.
func (s *EdgeState) Hello(now int64) *syncproto.Hello {
	h := &syncproto.Hello{Boot: s.session.boot, Generation: s.standing.generation, NowMillis: now}
	if s.Settled() {
		h.Boot += s.standing.epoch * oddStep // a different number for the successor of each epoch
		return h
	}
	h.Epoch, h.Sealed, h.Acked, h.Granted = s.standing.epoch, s.outbox.sealed, s.outbox.acked, min(s.leases.granted, syncproto.MaxUnits)
	return h
}

// oddStep spreads consecutive numbers over all 64 bits: 2^64 divided by the golden ratio.
const oddStep = 0x9E3779B97F4A7C15

// settled reports whether a superseded epoch has nothing left to report or return.
func (s *EdgeState) settled() bool {
	if s.standing.status != syncproto.Superseded || s.session.open() && !s.session.complete {
		return false
	}
	if !s.outbox.empty() || len(s.usage.current)+len(s.usage.carried[s.standing.epoch]) > 0 {
		return false
	}
	for _, a := range s.leases.accounts.all() {
		for _, l := range []*lease{&a.credits, &a.volume} {
			if l.open() {
				return false
			}
		}
	}
	return true
}

// openSession begins the session of a reply to Hello, which confirms the state directory.
func (s *EdgeState) openSession(now int64, r *syncproto.Reply) {
	s.session.begin(r.Session)
	s.outbox.applied = r.Applied
	s.declaration = declaration{}
	s.leases.forgetDry()
	s.noteContact(now, r)
	if !s.usage.confirmed {
		s.usage.confirm(s.standing.epoch)
		s.logConfirm()
	}
}

// noteContact applies the fields that every reply has.
func (s *EdgeState) noteContact(now int64, r *syncproto.Reply) {
	s.session.contact, s.session.met, s.session.live = now, true, r.Live
	if r.Generation != s.standing.generation {
		s.standing.generation = r.Generation
		s.logStanding()
	}
}
