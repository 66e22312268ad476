// Package history records the calls of clients and operators of a running cluster, with their answers,
// and checks that the history is linearizable: that all calls can be ordered, each at a moment between
// its beginning and its end, so that a simple sequential model gives the same answers.
//
// There are two models of the promises in docs/design.md, "Guarantees": the credits of an account
// (Balances, for G1, G5 and G6), and whether a key is admitted (Keys, for G8). Where a guarantee
// allows a state from before the call began, the call counts as begun that much earlier.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Stale is the maximum age of the state behind an answer. An edge relies on a 402 for a second after it
// asked, and a superseded writer notices within another second (G5); edges learn of an access change
// within two (G8).
const Stale = 2 * time.Second

// checkLimit is the time limit of the search for an order, per part of a subject's calls.
const checkLimit = time.Minute

// Kind is the kind of a call and its answer. The comments of the models say what each means there.
type Kind int

// Call is a call with its answer. Times are since the start of the history.
type Call struct {
	Client  int   // calls of one client do not overlap
	Subject int64 // account or key
	Kind    Kind
	Units   int64 // credits
	Begin   time.Duration
	End     time.Duration
}

// History collects calls. It is safe for concurrent use.
type History struct {
	start time.Time
	mu    sync.Mutex
	calls []Call
}

// New begins a history.
func New() *History { return &History{start: time.Now()} }

// Now is the time since the start.
func (h *History) Now() time.Duration { return time.Since(h.start) }

// Add records a call that ends now.
func (h *History) Add(c Call) {
	c.End = h.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// Calls is a copy of what was recorded.
func (h *History) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Model is a sequential model of one subject.
type Model struct {
	name  string
	kinds map[Kind]string
	init  any
	// step returns the next state, and whether the call's answer is possible in the given state.
	step func(state any, c Call) (possible bool, next any)
	// early is how much earlier calls of a kind count as begun. These calls change nothing, so
	// overlapping ones go into different parts: otherwise every order of them would have to be tried.
	early map[Kind]time.Duration
}

// Check returns an error for each subject whose calls have no order. A drawing of its calls is
// written to a file, which the error names.
func (m Model) Check(calls []Call) (err error) {
	of := map[int64][]Call{}
	for _, c := range calls {
		if m.kinds[c.Kind] != "" {
			c.Begin -= m.early[c.Kind]
			of[c.Subject] = append(of[c.Subject], c)
		}
	}
	for subject, list := range of {
		for _, part := range m.parts(list) {
			if failed := m.checkPart(subject, part); failed != nil {
				err = errors.Join(err, failed)
				break
			}
		}
	}
	return err
}

// parts divides a subject's calls: each part has all calls that change something, and some of the others
// that do not overlap.
func (m Model) parts(calls []Call) (parts [][]Call) {
	var changes []Call
	var looks [][]Call
	slices.SortFunc(calls, func(a, b Call) int { return cmp.Compare(a.Begin, b.Begin) })
	for _, c := range calls {
		if m.early[c.Kind] == 0 {
			changes = append(changes, c)
			continue
		}
		free := slices.IndexFunc(looks, func(l []Call) bool { return l[len(l)-1].End < c.Begin })
		if free < 0 {
			free, looks = len(looks), append(looks, nil)
		}
		looks[free] = append(looks[free], c)
	}
	for _, l := range looks {
		parts = append(parts, append(slices.Clone(changes), l...))
	}
	if len(parts) == 0 {
		return [][]Call{changes}
	}
	return parts
}

func (m Model) checkPart(subject int64, calls []Call) error {
	list := make([]porcupine.Operation, len(calls))
	for i, c := range calls {
		list[i] = porcupine.Operation{ClientId: c.Client, Input: c, Call: int64(c.Begin), Return: int64(c.End)}
	}
	model := porcupine.Model{
		Init:              func() any { return m.init },
		Step:              func(state, input, _ any) (bool, any) { return m.step(state, input.(Call)) },
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%s %d", m.kinds[input.(Call).Kind], input.(Call).Units) },
	}
	result, info := porcupine.CheckOperationsVerbose(model, list, checkLimit)
	switch result {
	case porcupine.Illegal:
		return fmt.Errorf("%s of %d: no order of %d calls explains the answers, see %s", m.name, subject, len(list), draw(model, info))
	case porcupine.Unknown:
		return fmt.Errorf("%s of %d: no order of %d calls was found in %v, nor that there is none", m.name, subject, len(list), checkLimit)
	}
	return nil
}

// draw writes a page that shows the calls and the longest order found, and returns its name.
func draw(model porcupine.Model, info porcupine.LinearizationInfo) string {
	f, err := os.CreateTemp("", "history-*.html")
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if err := porcupine.Visualize(model, info, f); err != nil {
		return err.Error()
	}
	return f.Name()
}
