package dashboard

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// finishedKept is how long a form that began or ended a session, or used up an invitation, may be sent again.
	finishedKept = time.Minute
	// maxFinished bounds how many of them are kept.
	maxFinished = 1000
)

// finished keeps the answers to forms that began or ended a session, or used up an invitation. When such a form is sent
// twice, as by two clicks, the second finds its session or its invitation gone: it gets the first answer.
type finished struct {
	mu    sync.Mutex
	forms map[[sha256.Size]byte]ending
}

// ending is a form's answer. Only the same form, with its token and all its fields, finds it.
type ending struct {
	at     time.Time
	to     answer
	secret string // of the session that began, empty for none
	left   bool   // the visitor's session ended
}

// sentForm identifies a form that was sent, by its path and all its fields.
func sentForm(v *visit) [sha256.Size]byte {
	return sha256.Sum256([]byte(v.r.URL.Path + "\n" + v.r.PostForm.Encode()))
}

func (f *finished) put(v *visit, now time.Time, to answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for form, e := range f.forms {
		if now.Sub(e.at) >= finishedKept {
			delete(f.forms, form)
		}
	}
	if f.forms == nil || len(f.forms) >= maxFinished {
		f.forms = map[[sha256.Size]byte]ending{}
	}
	f.forms[sentForm(v)] = ending{now, to, v.began, v.left}
}

func (f *finished) get(v *visit, now time.Time) (ending, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, found := f.forms[sentForm(v)]
	return e, found && now.Sub(e.at) < finishedKept
}

// again returns the answer to a form that was sent before, unless the session it began has ended.
func (d *Dashboard) again(v *visit) (answer, bool, error) {
	e, found := d.finished.get(v, d.now())
	if !found {
		return answer{}, false, nil
	}
	if e.secret == "" {
		if e.left {
			d.leaveSession(v)
		}
		return e.to, true, nil
	}
	who, _, err := d.findSession(v.r.Context(), e.secret)
	if who == nil || err != nil {
		return answer{}, false, err
	}
	d.enterSession(v, e.secret)
	return e.to, true, nil
}
