package reference

import (
	"runtime"
	"sync"
)

// keptBytes bounds the pages that are kept. All pages take 1 MB for one base URL; when requests with made-up hosts fill
// the rest, all are dropped.
const keptBytes = 4 << 20

// renderer makes pages and keeps them. At most half of the processors make pages at a time, so that a stranger who asks
// for them under ever new hosts leaves the others to lookups. It is safe for concurrent use.
type renderer struct {
	making chan struct{}
	mu     sync.Mutex
	kept   map[rendering][]byte
	bytes  int
}

// rendering is what the content of a page depends on.
type rendering struct {
	name   string // of the template
	about  string // the problem code that it describes, if it describes one
	base   string
	zipped bool
}

func newRenderer() *renderer {
	return &renderer{making: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), kept: map[rendering][]byte{}}
}

// page returns a kept page, or makes it. The caller must not change it.
func (r *renderer) page(of rendering, render func() ([]byte, error)) ([]byte, error) {
	if content, ok := r.look(of); ok {
		return content, nil
	}
	r.making <- struct{}{}
	defer func() { <-r.making }()
	if content, ok := r.look(of); ok {
		return content, nil
	}
	content, err := render()
	if err == nil {
		r.keep(of, content)
	}
	return content, err
}

func (r *renderer) look(of rendering) (content []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	content, ok = r.kept[of]
	return content, ok
}

func (r *renderer) keep(of rendering, content []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+len(content) > keptBytes {
		clear(r.kept)
		r.bytes = 0
	}
	r.bytes += len(content) - len(r.kept[of])
	r.kept[of] = content
}
