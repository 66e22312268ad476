package writer

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// fenceAfter is how many messages of a node may be refused before all are. An honest node sends
	// none that is malformed, or that the ledger can't store; each of the latter costs a reload.
	fenceAfter = 5
	// offencesLast is how long a node must send nothing of that kind before its count restarts at 0.
	offencesLast = 10 * time.Minute
)

// errNotStored is the answer to a message that the ledger's database refuses: it will do so again.
var errNotStored = fmt.Errorf("%w: the ledger can't store it", ErrMalformed)

// offenders counts, by node, messages that no honest node sends, and fences nodes that send several.
// A new token or a new start of the writer ends the fence.
type offenders struct {
	now func() time.Time
	log *slog.Logger

	mu    sync.Mutex
	nodes map[string]offences
}

type offences struct {
	count int
	last  time.Time
}

func newOffenders(now func() time.Time, log *slog.Logger) *offenders {
	return &offenders{now: now, log: log, nodes: map[string]offences{}}
}

// note counts a message of a node that was refused with err.
func (o *offenders) note(node string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, now := o.nodes[node], o.now()
	if known.count < fenceAfter && now.Sub(known.last) > offencesLast {
		known.count = 0
	}
	known.count, known.last = known.count+1, now
	o.nodes[node] = known
	switch {
	case known.count < fenceAfter:
		o.log.Warn("a message of a node is refused: no node should send it", "node", node, "count", known.count, "error", err)
	case known.count == fenceAfter:
		o.log.Error("a node is fenced: its messages are nonsense. Look at it, then give it a new token, or retire it", "node", node, "error", err)
	}
}

// fence fences a node at once.
func (o *offenders) fence(node string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes[node] = offences{count: fenceAfter, last: o.now()}
	o.log.Error("a node is fenced: no honest node reports as much. Look at it, then give it a new token, or retire it", "node", node, "error", err)
}

// fenced reports whether all messages of a node are refused.
func (o *offenders) fenced(node string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.nodes[node].count >= fenceAfter
}

// forgive lifts the fence of a node.
func (o *offenders) forgive(node string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.nodes, node)
}

// count is the number of fenced nodes.
func (o *offenders) count() (fenced int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.nodes {
		if n.count >= fenceAfter {
			fenced++
		}
	}
	return fenced
}
