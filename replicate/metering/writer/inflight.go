package writer

import (
	"net/http"
	"sync"

	"github.com/julienschmidt/httprouter"
)

// maxInFlight is how many messages of one node are answered at the same time. An edge sends two and a report;
// messages of a process that has ended may still be held open.
const maxInFlight = 64

// inFlight counts the messages of each node that are being answered: each may take some megabytes.
type inFlight struct {
	mu    sync.Mutex
	nodes map[string]int
}

// enter reports whether there is room for one more message of a node. leave frees it.
func (f *inFlight) enter(node string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes[node] >= maxInFlight {
		return false
	}
	if f.nodes == nil {
		f.nodes = map[string]int{}
	}
	f.nodes[node]++
	return true
}

func (f *inFlight) leave(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes[node]--; f.nodes[node] == 0 {
		delete(f.nodes, node)
	}
}

// ofEdge lets messages of edges through, each with its node's token and not too many at once.
func (w *Writer) ofEdge(serve httprouter.Handle) httprouter.Handle {
	return func(rw http.ResponseWriter, r *http.Request, p httprouter.Params) {
		node, ok := w.edgeOf(r)
		if !ok {
			w.fail(rw, r, ErrUnauthorized)
			return
		}
		if !w.inFlight.enter(node) {
			w.crowds.note(func(count int) {
				w.config.Logger.Warn("a node sends more messages at once than an edge does: some are refused", "node", node, "refused", count)
			})
			w.fail(rw, r, &throttledError{text: "too many messages of this node are under way"})
			return
		}
		defer w.inFlight.leave(node)
		serve(rw, r, p)
	}
}
