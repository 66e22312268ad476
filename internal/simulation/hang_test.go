package simulation

import "runtime"

// mayHang decides whether a call to an edge's disk hangs. It does only in a process that runs.
func (p *process) mayHang(oneIn int) bool {
	s := p.edge.sim
	return p.edge.process == p && !p.dead && s.depth < maxDepth && s.faulty(oneIn)
}

// hang runs other steps while a call to the edge's disk does not return: also steps of this edge that need
// no sync, while a sync hangs.
func (p *process) hang(kind fault) {
	s := p.edge.sim
	s.count(kind)
	s.note("%s: %s", p.edge.name, faultNames[kind])
	writing, syncing := p.writing, p.syncing
	p.writing, p.syncing = kind == diskWriteHangs || writing, true
	s.depth++
	elsewhere(func() {
		for range 1 + s.random.IntN(8) {
			s.step()
		}
	})
	s.depth--
	p.writing, p.syncing = writing, syncing
}

// elsewhere runs a function in a goroutine of its own, and waits for it: the locks that the hanging call
// holds are not those of the steps meanwhile.
func elsewhere(f func()) {
	returned, ended := false, make(chan struct{})
	go func() {
		defer close(ended)
		f()
		returned = true
	}()
	<-ended
	if !returned { // a failed test ends its goroutine
		runtime.Goexit()
	}
}

// waits has a write hang now and then, and reports whether the process ended meanwhile.
func (p *process) waits(oneIn int) bool {
	if p.mayHang(oneIn) {
		p.hang(diskWriteHangs)
	}
	return p.dead
}

// whileWriting is a step of an edge of which a write hangs: nothing goes on there, but it may end.
func (s *sim) whileWriting(e *edge) {
	switch s.random.IntN(12) {
	case 0:
		s.count(edgeCrash)
		s.note("%s crashes", e.name)
		e.kill()
	case 1:
		s.cutPower(e)
	}
}
